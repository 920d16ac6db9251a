"""What recall judges of a head: kept in its document, so that no revision is read for it."""

from datetime import UTC, datetime
from typing import Any

import orjson

from providers import documents
from providers.documents import DAMAGE
from providers.errors import StoredDataInvalidError
from providers.making import new_content, new_facet, new_revision
from providers.model import (
    Content,
    Kind,
    MemoryFacet,
    MemoryKind,
    OriginTier,
    Record,
    Revision,
    Sensitivity,
    State,
    Trust,
)

_TAGS = 14
FILTERED = 18
"""Where in a head's document stands what ``filtered`` gives; the time of creation is behind it."""

_text = documents.taken(str)
_UNKNOWN = datetime.min.replace(tzinfo=UTC)


def filtered(now: Revision) -> list[object] | None:
    """Return what recall filters memories by that only their facet says."""
    facet = now.facet
    if facet is None or now.kind is not Kind.MEMORY:
        return None
    return [
        facet.namespace,
        facet.memory_kind,
        facet.subject,
        facet.epoch,
        facet.sensitivity,
        facet.origin_tier,
        _moment(facet.expire_time),
        _moment(facet.invalidate_time),
    ]


def _moment(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat()


def to_judged(tag: str, record_id: str, document: bytes) -> Record:
    """Return of a head what recall judges, and nothing else: no text, no time but its creation's.

    Raises:
        StoredDataInvalidError: It is no head, or one of another record. Not retryable.
    """
    try:
        values = orjson.loads(document)
        kept, own_id, revision, revision_id, agent_id, kind, state, trust, _, importance = values[
            :10
        ]
        now = _revision(
            record_id=_text(own_id),
            revision=revision,
            revision_id=_text(revision_id),
            agent_id=_text(agent_id),
            kind=Kind(kind),
            state=State(state),
            trust=Trust(trust),
            content=_content(importance, values[_TAGS]),
            facet=_facet(values[FILTERED]),
        )
        record = Record(now, documents.to_time(values[FILTERED + 1]))
    except DAMAGE:
        raise StoredDataInvalidError("a stored head is damaged") from None
    if (kept, own_id) != (tag, record_id):
        raise StoredDataInvalidError("a stored head is of another record")
    return record


def _revision(**known: Any) -> Revision:
    return new_revision(
        previous_revision_id=None,
        source_run_id=None,
        source_session_id=None,
        promoted_decision_id=None,
        superseded_by_record_id=None,
        reason=None,
        change_kind=None,
        actor_fingerprint=None,
        create_time=_UNKNOWN,
        **known,
    )


def _content(importance: Any, tags: Any) -> Content:
    if type(importance) not in (int, float) or type(tags) is not list:
        raise TypeError
    told = tuple(map(_text, tags))
    return new_content(
        type="", title=None, content="", rationale=None, importance=importance, tags=told
    )


def _facet(values: Any) -> MemoryFacet | None:
    if values is None:
        return None
    namespace, kind, subject, epoch, sensitivity, tier, expires, ended = values
    return new_facet(
        namespace=_text_or_none(namespace),
        memory_kind=None if kind is None else MemoryKind(kind),
        subject=_text_or_none(subject),
        epoch=_text_or_none(epoch),
        sensitivity=None if sensitivity is None else Sensitivity(sensitivity),
        origin_tier=None if tier is None else OriginTier(tier),
        expire_time=None if expires is None else documents.to_time(expires),
        invalidate_time=None if ended is None else documents.to_time(ended),
    )


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(_text(value))

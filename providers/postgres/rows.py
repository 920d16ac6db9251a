"""Between the vocabulary's dataclasses and what the statements take and give."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from providers.errors import StoredDataInvalidError
from providers.model import (
    AcceptedEffect,
    BeliefType,
    ChangeKind,
    Content,
    DeliveryPolicy,
    IdempotencyReceipt,
    Kind,
    MemoryFacet,
    MemoryKind,
    OriginTier,
    Portability,
    ReceiptKey,
    Record,
    Revision,
    RevisionRef,
    Sensitivity,
    SourceType,
    State,
    Trust,
)
from providers.requests import ChainLink, KeyHolder

_COUNT_MAX = 2**31 - 1

SNAPSHOT_WIDTH = 23
"""How many columns of a row make up a revision."""

_KINDS = {each.value: each for each in Kind}
_STATES = {each.value: each for each in State}
_TRUSTS = {each.value: each for each in Trust}
_CHANGES: dict[str | None, ChangeKind | None] = {each.value: each for each in ChangeKind}
_CHANGES[None] = None


def _of(kind: type) -> Callable[[Any], Any]:
    def take(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return take


_text = _of(str)


def _number(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise TypeError
    return value


def _time(value: Any) -> datetime:
    return datetime.fromisoformat(value).astimezone(UTC)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _COUNT_MAX:
        raise TypeError
    return value


def _stored_time(value: datetime) -> datetime:
    if value.tzinfo is None:  # the driver's way to say that it is infinite
        raise TypeError
    return value


def _words(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, value))


_FACET: Mapping[str, Callable[[Any], Any]] = {
    "memory_kind": MemoryKind,
    "delivery_policy": DeliveryPolicy,
    "namespace": _of(str),
    "subject": _of(str),
    "belief_type": BeliefType,
    "source": _of(str),
    "source_type": SourceType,
    "origin_tier": OriginTier,
    "sensitivity": Sensitivity,
    "expire_time": _time,
    "confidence": _number,
    "epoch": _of(str),
    "portability": Portability,
    "metadata": _of(dict),
    "corroboration": _count,
    "last_reinforce_time": _time,
    "flagged": _of(bool),
    "invalidate_time": _time,
    "invalidation_reason": _of(str),
}


# -------------------- to the store


def to_json(value: object) -> str:
    """Write a value as JSON, mappings of any sort included.

    Raises:
        TypeError: It holds a surrogate, a number of more than 64 bits, or no JSON at all.
    """
    return orjson.dumps(value, default=_plain).decode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def revision_columns(revision: Revision) -> dict[str, object]:
    """Return a revision by column name."""
    content = revision.content
    return {
        "record_id": revision.record_id,
        "revision": revision.revision,
        "revision_id": revision.revision_id,
        "previous_revision_id": revision.previous_revision_id,
        "agent_id": revision.agent_id,
        "kind": revision.kind,
        "type": content.type,
        "title": content.title,
        "content": content.content,
        "rationale": content.rationale,
        "importance": content.importance,
        "tags": content.tags,
        "facet": None if revision.facet is None else _facet_document(revision.facet),
        "state": revision.state,
        "trust": revision.trust,
        "source_run_id": revision.source_run_id,
        "source_session_id": revision.source_session_id,
        "promoted_decision_id": revision.promoted_decision_id,
        "superseded_by_record_id": revision.superseded_by_record_id,
        "reason": revision.reason,
        "change_kind": revision.change_kind,
        "actor_fingerprint": revision.actor_fingerprint,
        "create_time": revision.create_time,
    }


def _facet_document(facet: MemoryFacet) -> dict[str, object]:
    values = ((name, getattr(facet, name)) for name in _FACET)
    return {name: value for name, value in values if value is not None}


def effect_columns(effect: AcceptedEffect) -> dict[str, object]:
    """Return an effect by column name."""
    return {
        "run_id": effect.run_id,
        "sequence": effect.sequence,
        "receipt_id": effect.receipt_id,
        "receipt": effect.receipt,
        "accept_time": effect.accept_time,
    }


# -------------------- from the store


def to_revision(row: Sequence[Any], *, brief: bool = False) -> Revision:
    """Return the revision that the columns of a row hold, in the order of the statements.

    With ``brief`` what a brief page leaves out is left out of the facet; else the row has it so.

    Raises:
        StoredDataInvalidError: They hold none. Not retryable.
    """
    (
        record_id,
        revision,
        revision_id,
        previous_revision_id,
        agent_id,
        kind,
        type_,
        title,
        content,
        rationale,
        importance,
        tags,
        facet,
        state,
        trust,
        source_run_id,
        source_session_id,
        promoted_decision_id,
        superseded_by_record_id,
        reason,
        change_kind,
        actor_fingerprint,
        create_time,
    ) = row
    if revision < 1 or (previous_revision_id is None) != (revision == 1):
        raise StoredDataInvalidError("a stored revision's number and link do not fit")
    try:
        return Revision(
            record_id=record_id,
            agent_id=agent_id,
            kind=_KINDS[kind],
            revision=revision,
            revision_id=revision_id,
            previous_revision_id=previous_revision_id,
            content=Content(
                type=type_,
                title=title,
                content=content,
                rationale=rationale,
                importance=importance,
                tags=_words(tags),
            ),
            facet=None if facet is None else _to_facet(facet, brief=brief),
            state=_STATES[state],
            trust=_TRUSTS[trust],
            source_run_id=source_run_id,
            source_session_id=source_session_id,
            promoted_decision_id=promoted_decision_id,
            superseded_by_record_id=superseded_by_record_id,
            reason=reason,
            change_kind=_CHANGES[change_kind],
            actor_fingerprint=actor_fingerprint,
            create_time=_stored_time(create_time),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise StoredDataInvalidError("a stored revision holds an unknown value") from error


def to_record(row: Sequence[Any], create_time: datetime, *, brief: bool = False) -> Record:
    """Return the head that the columns of a row hold; see ``to_revision``.

    Raises:
        StoredDataInvalidError: They hold none. Not retryable.
    """
    current = to_revision(row, brief=brief)
    try:
        return Record(current, _stored_time(create_time))
    except TypeError as error:
        raise StoredDataInvalidError("a stored head's time is no time") from error


def _to_facet(text: str, *, brief: bool) -> MemoryFacet:
    document = orjson.loads(text)
    if brief:
        document.pop("metadata", None)
    return MemoryFacet(**{name: _FACET[name](value) for name, value in document.items()})


def to_receipt(text: str | None, key: ReceiptKey) -> IdempotencyReceipt | None:
    """Return the receipt that a statement gave as a JSON list, or ``None``.

    Raises:
        StoredDataInvalidError: It is none. Not retryable.
    """
    if text is None:
        return None
    try:
        method, fingerprint, refs, effect_id, outcome, create_time = orjson.loads(text)
        return IdempotencyReceipt(
            key=key,
            method=_of(str)(method),
            fingerprint=_of(str)(fingerprint),
            refs=tuple(RevisionRef(_of(str)(name), _of(int)(number)) for name, number in refs),
            effect_id=effect_id,
            outcome=_of(dict)(outcome),
            create_time=_time(create_time),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise StoredDataInvalidError("a stored receipt is damaged") from error


def to_holders(text: str | None) -> dict[str, KeyHolder]:
    """Return what keys hold; a key that is free is left out."""
    listed = [] if text is None else orjson.loads(text)
    return {
        key: KeyHolder(record_id, tombstone_kind)
        for key, record_id, tombstone_kind in listed
        if record_id is not None or tombstone_kind is not None
    }


def to_counters(text: str | None) -> dict[str, int]:
    """Return counters by name."""
    return {} if text is None else dict(orjson.loads(text))


def to_chain(text: str | None) -> tuple[ChainLink, ...]:
    """Return the links of a chain in walking order.

    Raises:
        StoredDataInvalidError: A link is of an unknown kind or state. Not retryable.
    """
    if text is None:
        return ()
    try:
        return tuple(
            ChainLink(record_id, agent_id, Kind(kind), State(state), superseded_by)
            for record_id, agent_id, kind, state, superseded_by in orjson.loads(text)
        )
    except ValueError as error:
        raise StoredDataInvalidError("a stored head holds an unknown value") from error

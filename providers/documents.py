"""Records, receipts and effects as JSON documents, and back with every value checked (G-7).

What is wrong with a stored value is not chained to its refusal: the text would hold the value.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from providers.errors import StoredDataInvalidError
from providers.making import new_content, new_facet, new_revision
from providers.model import (
    AcceptedEffect,
    BeliefType,
    ChangeKind,
    DeliveryPolicy,
    IdempotencyReceipt,
    Kind,
    MemoryFacet,
    MemoryKind,
    OriginTier,
    Portability,
    ReceiptKey,
    Revision,
    RevisionRef,
    Sensitivity,
    SourceType,
    State,
    Trust,
)

DAMAGE = (LookupError, TypeError, ValueError, OverflowError, AttributeError)
"""What it is to take apart something that was stored and is damaged. Never chained: the text of
one would hold stored values."""

_COUNT_MAX = 2**31 - 1

_KINDS = {each.value: each for each in Kind}
_STATES = {each.value: each for each in State}
_TRUSTS = {each.value: each for each in Trust}
_CHANGES: dict[str | None, ChangeKind | None] = {each.value: each for each in ChangeKind}
_CHANGES[None] = None


def taken(kind: type) -> Callable[[Any], Any]:
    """Return what gives a value back that is exactly of this type, and raises TypeError else."""

    def take(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return take


_text = taken(str)


def _texts(values: Collection[Any]) -> tuple[str, ...]:
    for each in values:
        if type(each) is not str:
            raise TypeError
    return tuple(values)


def to_time(value: Any) -> datetime:
    """Return the time that a text of ISO 8601 with a zone says, in UTC.

    Raises:
        TypeError, ValueError, OverflowError: It says none.
    """
    return known_time(datetime.fromisoformat(value)).astimezone(UTC)


def known_time(value: datetime) -> datetime:
    """Return a time that has a zone; some drivers leave it off what is infinite.

    Raises:
        TypeError: It has none.
    """
    if value.tzinfo is None:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise TypeError
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _COUNT_MAX:
        raise TypeError
    return value


_FACET: Mapping[str, Callable[[Any], Any]] = {
    "memory_kind": MemoryKind,
    "delivery_policy": DeliveryPolicy,
    "namespace": _text,
    "subject": _text,
    "belief_type": BeliefType,
    "source": _text,
    "source_type": SourceType,
    "origin_tier": OriginTier,
    "sensitivity": Sensitivity,
    "expire_time": to_time,
    "confidence": _number,
    "epoch": _text,
    "portability": Portability,
    "metadata": taken(dict),
    "corroboration": _count,
    "last_reinforce_time": to_time,
    "flagged": taken(bool),
    "invalidate_time": to_time,
    "invalidation_reason": _text,
}

# -------------------- to the store


def to_json(value: object) -> bytes:
    """Write a value as JSON, mappings of any sort included.

    Raises:
        TypeError: It holds a surrogate, a number of more than 64 bits, or no JSON at all.
    """
    return orjson.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def revision_columns(revision: Revision) -> dict[str, object]:
    """Return a revision by column name, in the order that ``make_revision`` takes."""
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


def receipt_document(receipt: IdempotencyReceipt) -> tuple[object, ...]:
    """Return all of a receipt but its key, in the order that ``to_receipt`` takes."""
    refs = [(ref.record_id, ref.revision) for ref in receipt.refs]
    return (
        receipt.method,
        receipt.fingerprint,
        refs,
        receipt.effect_id,
        receipt.outcome,
        receipt.create_time,
    )


# -------------------- from the store


def make_revision(row: Sequence[Any], facet: MemoryFacet | None) -> Revision:
    """Return the revision of these columns, texts and numbers already known to be such.

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
        _,
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
        return new_revision(
            record_id=record_id,
            agent_id=agent_id,
            kind=_KINDS[kind],
            revision=revision,
            revision_id=revision_id,
            previous_revision_id=previous_revision_id,
            content=new_content(
                type=type_,
                title=title,
                content=content,
                rationale=rationale,
                importance=importance,
                tags=_texts(tags),
            ),
            facet=facet,
            state=_STATES[state],
            trust=_TRUSTS[trust],
            source_run_id=source_run_id,
            source_session_id=source_session_id,
            promoted_decision_id=promoted_decision_id,
            superseded_by_record_id=superseded_by_record_id,
            reason=reason,
            change_kind=_CHANGES[change_kind],
            actor_fingerprint=actor_fingerprint,
            create_time=known_time(create_time),
        )
    except (KeyError, TypeError, AttributeError):
        raise StoredDataInvalidError("a stored revision holds an unknown value") from None


def to_facet(document: Any) -> MemoryFacet:
    """Return the facet that a JSON object holds.

    Raises:
        AttributeError, KeyError, TypeError, ValueError, OverflowError: It holds none.
    """
    return new_facet(**{name: _FACET[name](value) for name, value in document.items()})


def to_receipt(document: Any, key: ReceiptKey) -> IdempotencyReceipt:
    """Return the receipt that a JSON list holds.

    Raises:
        StoredDataInvalidError: It holds none. Not retryable.
    """
    try:
        method, fingerprint, refs, effect_id, outcome, create_time = document
        return IdempotencyReceipt(
            key=key,
            method=_text(method),
            fingerprint=_text(fingerprint),
            refs=tuple(RevisionRef(_text(name), taken(int)(number)) for name, number in refs),
            effect_id=None if effect_id is None else _text(effect_id),
            outcome=taken(dict)(outcome),
            create_time=to_time(create_time),
        )
    except (TypeError, ValueError, OverflowError):
        raise StoredDataInvalidError("a stored receipt is damaged") from None


_RECEIPT_VALUES = (str, int, type(None))


def to_effect(values: Sequence[Any]) -> AcceptedEffect:
    """Return the effect of: run, sequence, receipt id, its receipt as an object, accept time.

    Raises:
        StoredDataInvalidError: They hold none. Not retryable.
    """
    try:
        run_id, sequence, receipt_id, receipt, accept_time = values
        if any(type(value) not in _RECEIPT_VALUES for value in taken(dict)(receipt).values()):
            raise TypeError
        return AcceptedEffect(
            receipt_id=_text(receipt_id),
            run_id=_text(run_id),
            sequence=taken(int)(sequence),
            receipt=receipt,
            accept_time=known_time(accept_time),
        )
    except (TypeError, ValueError, AttributeError):
        raise StoredDataInvalidError("a stored effect is damaged") from None

"""How memories change by the write engine: told again, replaced, forgotten. Heads in, heads out."""

from dataclasses import replace
from typing import Final

from broker.domain.errors import TokenBoundError
from broker.domain.records import TICK, Stamp, state_not_allowed, successor
from broker.memory.holding import is_refuted
from providers.entries import RecallEntry, TermVector
from providers.model import (
    ChangeKind,
    HeadPut,
    Kind,
    MemoryFacet,
    OriginTier,
    Record,
    Revision,
    State,
    Trust,
)

CONFIDENCE_STEP: Final = 0.1
CONFIDENCE_DEFAULT: Final = 0.5
"""That of a belief which never said how sure it is, before it is told again."""

NOTHING: Final = RecallEntry(TermVector({}, 0))
"""The entry of what no query finds."""


def reinforced(record: Record, *, stamp: Stamp) -> HeadPut:
    """Return the head told once more: content, trust, tier and state stay (002-07)."""
    before = record.current
    facet = _facet(before)
    confidence = facet.confidence if facet.confidence is not None else CONFIDENCE_DEFAULT
    put = successor(record, before, reason=None, change_kind=ChangeKind.REINFORCED, stamp=stamp)
    told = replace(
        facet,
        corroboration=facet.corroboration + 1,
        confidence=min(1.0, confidence + CONFIDENCE_STEP),
        last_reinforce_time=put.record.current.create_time,
    )
    return _with_facet(put, told)


def gave_way(record: Record, replacement: Revision, *, stamp: Stamp) -> HeadPut:
    """Return the head replaced by another memory, which is older by a tick (000-17, R2)."""
    before = record.current
    put = successor(
        record,
        replace(before, state=State.SUPERSEDED, superseded_by_record_id=replacement.record_id),
        reason=None,
        change_kind=ChangeKind.SUPERSEDED,
        stamp=replace(stamp, now=max(stamp.now, replacement.create_time + TICK)),
    )
    return _ended(put, "superseded")


def forgotten(record: Record, *, reason: str | None, stamp: Stamp) -> HeadPut:
    """Return the head that no read finds any more (R1, 003-05).

    Raises:
        StateNotAllowedError: no memory. Not retryable.
    """
    before = record.current
    check_forgettable(before)
    put = successor(
        record,
        replace(before, state=State.FORGOTTEN),
        reason=reason,
        change_kind=ChangeKind.FORGOTTEN,
        stamp=stamp,
    )
    return replace(_ended(put, "forgotten"), entry=NOTHING)


def check_forgettable(revision: Revision) -> None:
    """Refuse to forget what is no memory.

    Raises:
        StateNotAllowedError: not retryable.
    """
    if revision.kind is not Kind.MEMORY:
        raise state_not_allowed(revision, "forgotten")


def check_may_forget(revision: Revision, *, bound: bool) -> None:
    """Refuse a bound token that would forget what somebody has confirmed or refused.

    Raises:
        TokenBoundError: not retryable with this token.
    """
    if bound and revision.trust is not Trust.PENDING:
        raise TokenBoundError("a bound token forgets only memories of trust PENDING")


def _ended(put: HeadPut, reason: str) -> HeadPut:
    current = put.record.current
    facet = _facet(current)
    if is_refuted(current):  # what it said before stays barred for that reason
        reason = facet.invalidation_reason or reason
    ended = replace(facet, invalidate_time=current.create_time, invalidation_reason=reason)
    return _with_facet(put, ended)


def _with_facet(put: HeadPut, facet: MemoryFacet) -> HeadPut:
    current = replace(put.record.current, facet=facet)
    return replace(put, record=replace(put.record, current=current))


def _facet(revision: Revision) -> MemoryFacet:
    return revision.facet or MemoryFacet(origin_tier=OriginTier.EXTERNAL)

"""The verbs that change a record's state or trust, each as heads in, head out, or a refusal.

The table of what is allowed stands in ``ALLOWED``; what is not in it is STATE_NOT_ALLOWED.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from broker.domain.authority import Authorized, Permission
from broker.domain.errors import PermissionMissingError, TokenBoundError
from broker.domain.facets import at_least_as_sensitive, capped_tier
from broker.domain.records import Stamp, state_not_allowed, successor
from broker.domain.requests import RejectKind
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


class Verb(StrEnum):
    """What can be done to a record beside editing it; the value completes "cannot be …"."""

    ARCHIVE = "archived"
    UNARCHIVE = "taken back"
    SUPERSEDE = "superseded"
    RESTORE = "restored"
    APPROVE = "approved"
    REJECT = "rejected"
    REOPEN = "reopened"


Allowed = Mapping[Verb, Mapping[Kind, frozenset[tuple[State, Trust]]]]

_ANY_TRUST: Final = frozenset(Trust)
_UNDECIDED: Final = frozenset({Trust.PENDING, Trust.LEGACY})
_DECIDED: Final = frozenset({Trust.APPROVED, Trust.REJECTED})


def _when(state: State, trusts: frozenset[Trust] = _ANY_TRUST) -> frozenset[tuple[State, Trust]]:
    return frozenset((state, trust) for trust in trusts)


_BOTH_RESTORABLE: Final = frozenset(
    pair for state in (State.ACTIVE, State.ARCHIVED, State.SUPERSEDED) for pair in _when(state)
)

ALLOWED: Final[Allowed] = {
    Verb.ARCHIVE: {
        Kind.MEMORY: _when(State.ACTIVE),
        Kind.SESSION_CONTEXT: _when(State.ACTIVE),
        Kind.DECISION: _when(State.ACTIVE),
    },
    Verb.UNARCHIVE: {
        Kind.MEMORY: _when(State.ARCHIVED),
        Kind.SESSION_CONTEXT: _when(State.ARCHIVED),
    },
    Verb.SUPERSEDE: {Kind.DECISION: _when(State.ACTIVE)},
    Verb.RESTORE: {Kind.MEMORY: _BOTH_RESTORABLE, Kind.DECISION: _BOTH_RESTORABLE},
    Verb.APPROVE: {
        Kind.MEMORY: _when(State.ACTIVE, _UNDECIDED),
        Kind.DECISION: _when(State.ACTIVE, _UNDECIDED),
    },
    Verb.REJECT: {
        Kind.MEMORY: _when(State.ACTIVE),
        Kind.DECISION: _when(State.ACTIVE),
        Kind.PROPOSAL: _when(State.PENDING),
    },
    Verb.REOPEN: {
        Kind.MEMORY: _when(State.ACTIVE, _DECIDED),
        Kind.DECISION: _when(State.ACTIVE, _DECIDED),
    },
}


def check_allowed(revision: Revision, verb: Verb) -> None:
    """Refuse a verb that the record's kind, state and trust do not allow.

    Raises:
        StateNotAllowedError: names kind, state and trust. Not retryable.
    """
    if (revision.state, revision.trust) not in ALLOWED[verb].get(revision.kind, frozenset()):
        raise state_not_allowed(revision, verb)


def check_may_judge(revision: Revision, authorized: Authorized) -> None:
    """Refuse to judge a memory without the right to: WriteProjects and a token bound to nothing.

    Decisions and proposals need no more than what every record method needs.

    Raises:
        TokenBoundError, PermissionMissingError: not retryable.
    """
    if revision.kind is not Kind.MEMORY:
        return
    if authorized.call.caller.bound:
        raise TokenBoundError("judging a memory needs a token that is bound to nothing")
    if not authorized.grants_write:
        raise PermissionMissingError(Permission.WRITE_PROJECTS)


def archived(record: Record, *, reason: str | None, stamp: Stamp) -> HeadPut:
    """Return the head put aside; trust is kept."""
    check_allowed(record.current, Verb.ARCHIVE)
    after = replace(record.current, state=State.ARCHIVED)
    kind = _by_kind(record, ChangeKind.ARCHIVED, ChangeKind.DECISION_ARCHIVED)
    return successor(record, after, reason=reason, change_kind=kind, stamp=stamp)


def unarchived(record: Record, *, reason: str | None, stamp: Stamp) -> HeadPut:
    """Return the head taken back; trust is kept."""
    check_allowed(record.current, Verb.UNARCHIVE)
    after = replace(record.current, state=State.ACTIVE)
    return successor(record, after, reason=reason, change_kind=ChangeKind.UNARCHIVED, stamp=stamp)


def approved(record: Record, *, reason: str | None, stamp: Stamp) -> HeadPut:
    """Return the head confirmed."""
    check_allowed(record.current, Verb.APPROVE)
    after = replace(record.current, trust=Trust.APPROVED)
    kind = _by_kind(record, ChangeKind.APPROVED, ChangeKind.DECISION_APPROVED)
    return successor(record, after, reason=reason, change_kind=kind, stamp=stamp)


def rejected(
    record: Record, *, reject_kind: RejectKind | None, reason: str | None, stamp: Stamp
) -> HeadPut:
    """Return the head refused: trust REJECTED, and a proposal's state too.

    The facet says since when and why it is out of use.
    """
    before = record.current
    check_allowed(before, Verb.REJECT)
    put = successor(
        record,
        replace(
            before,
            trust=Trust.REJECTED,
            state=State.REJECTED if before.kind is Kind.PROPOSAL else before.state,
        ),
        reason=reason,
        change_kind=_by_kind(record, ChangeKind.REJECTED, proposal=ChangeKind.PROPOSAL_REJECTED),
        stamp=stamp,
    )
    after = put.record.current
    facet = replace(
        _facet(after),
        invalidate_time=after.create_time,
        invalidation_reason="rejected" if reject_kind is None else f"rejected_{reject_kind}",
    )
    return replace(put, record=replace(put.record, current=replace(after, facet=facet)))


def reopened(record: Record, *, reason: str | None, stamp: Stamp) -> HeadPut:
    """Return the head with trust back at pending, in use again."""
    before = record.current
    check_allowed(before, Verb.REOPEN)
    facet = before.facet
    if facet is not None:
        facet = replace(facet, invalidate_time=None, invalidation_reason=None)
    after = replace(before, trust=Trust.PENDING, facet=facet)
    return successor(record, after, reason=reason, change_kind=ChangeKind.REOPENED, stamp=stamp)


def restored(
    record: Record, source: Revision, *, reason: str | None, tier_cap: OriginTier, stamp: Stamp
) -> HeadPut:
    """Return a new head with the content set of an earlier revision: active, pending, no link.

    REJECTED survives. The facet is kept, but for this: the text that comes back is as sensitive as
    it was, the tier is no higher than that of who restores, and what is not rejected is in use
    again.
    """
    before = record.current
    check_allowed(before, Verb.RESTORE)
    facet = at_least_as_sensitive(before.facet, source.facet)
    facet = facet if facet is None else capped_tier(facet, tier_cap)
    rejected = before.trust is Trust.REJECTED
    if facet is not None and not rejected:
        facet = replace(facet, invalidate_time=None, invalidation_reason=None)
    after = replace(
        before,
        content=source.content,
        facet=facet,
        state=State.ACTIVE,
        trust=Trust.REJECTED if rejected else Trust.PENDING,
        superseded_by_record_id=None,
    )
    return successor(
        record,
        after,
        reason=reason or f"restored from revision {source.revision}",
        change_kind=_by_kind(record, ChangeKind.UPDATED, ChangeKind.DECISION_RESTORED),
        stamp=stamp,
    )


def _facet(revision: Revision) -> MemoryFacet:
    return revision.facet or MemoryFacet(origin_tier=OriginTier.EXTERNAL)


def _by_kind(
    record: Record,
    other: ChangeKind,
    decision: ChangeKind | None = None,
    *,
    proposal: ChangeKind | None = None,
) -> ChangeKind:
    if record.current.kind is Kind.DECISION and decision is not None:
        return decision
    if record.current.kind is Kind.PROPOSAL and proposal is not None:
        return proposal
    return other

"""How records begin and change: heads and checked requests in, heads out, or a refusal. No I/O.

The table of states and verbs stands in the API comments; what is not listed there is
STATE_NOT_ALLOWED.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from broker.domain.errors import (
    RecordNotFoundError,
    StaleRevisionError,
    StateNotAllowedError,
)
from broker.domain.facets import OPERATOR_SOURCES, capped_tier
from providers.making import new_revision
from providers.model import (
    ChangeKind,
    Content,
    HeadPut,
    Kind,
    MemoryFacet,
    OriginTier,
    Record,
    Revision,
    State,
    Trust,
)

TICK: Final = timedelta(microseconds=1)
"""How much younger than the one before a revision is at least."""

_EDITABLE: Final = {
    Kind.MEMORY: frozenset({State.ACTIVE, State.ARCHIVED}),
    Kind.SESSION_CONTEXT: frozenset({State.ACTIVE, State.ARCHIVED}),
    Kind.DECISION: frozenset({State.ACTIVE}),
    Kind.PROPOSAL: frozenset[State](),
}


@dataclass(frozen=True, slots=True)
class Stamp:
    """What one write is stamped with: the broker's time, a source of new ids, and the actor."""

    now: datetime
    new_id: Callable[[], str]
    actor_fingerprint: str


def visible(record: Record | None, agent_id: str) -> Record:
    """Return the head if it is this agent's and not forgotten.

    Raises:
        RecordNotFoundError: the same for every cause (004-56). Not retryable.
    """
    if (
        record is None
        or record.current.agent_id != agent_id
        or record.current.state is State.FORGOTTEN
    ):
        raise RecordNotFoundError
    return record


def check_expected(record: Record, expected_revision: int) -> None:
    """Refuse a write that saw another revision.

    Raises:
        StaleRevisionError: read again first (004-55).
    """
    if record.current.revision != expected_revision:
        raise StaleRevisionError(record.current.revision)


def created(
    *,
    kind: Kind,
    agent_id: str,
    run_id: str,
    content: Content,
    facet: MemoryFacet | None,
    stamp: Stamp,
) -> HeadPut:
    """Return the first revision of a memory or session context (004-51)."""
    first = new_revision(
        record_id=stamp.new_id(),
        agent_id=agent_id,
        kind=kind,
        revision=1,
        revision_id=stamp.new_id(),
        previous_revision_id=None,
        content=content,
        facet=facet,
        state=State.ACTIVE,
        trust=_first_trust(kind, facet),
        source_run_id=run_id,
        source_session_id=None,
        promoted_decision_id=None,
        superseded_by_record_id=None,
        reason=None,
        change_kind=ChangeKind.CREATED,
        actor_fingerprint=stamp.actor_fingerprint,
        create_time=stamp.now,
    )
    return HeadPut(Record(first, create_time=stamp.now), expected_revision=None)


def _first_trust(kind: Kind, facet: MemoryFacet | None) -> Trust:
    if kind is Kind.SESSION_CONTEXT:
        return Trust.APPROVED
    accepted = facet is not None and facet.source_type in OPERATOR_SOURCES
    return Trust.APPROVED if accepted else Trust.PENDING


def updated(
    record: Record,
    *,
    content: Content,
    facet: MemoryFacet | None,
    reason: str | None,
    tier_cap: OriginTier,
    stamp: Stamp,
) -> HeadPut:
    """Return the head after an edit.

    The state stays, trust follows from what changed, the tier is no higher than the editor's.

    Raises:
        StateNotAllowedError: proposals, and decisions that are not active, cannot be edited. Not
        retryable.
    """
    before = record.current
    if before.state not in _EDITABLE[before.kind]:
        raise state_not_allowed(before, "edited")
    if facet is not None and (content, facet) != (before.content, before.facet):
        facet = capped_tier(facet, tier_cap)
    return successor(
        record,
        replace(before, content=content, facet=facet, trust=_edited_trust(before, content, facet)),
        reason=reason,
        change_kind=ChangeKind.UPDATED,
        stamp=stamp,
    )


def _edited_trust(before: Revision, content: Content, facet: MemoryFacet | None) -> Trust:
    """REJECTED survives every edit; a memory or decision that says something else is pending."""
    if before.trust is Trust.REJECTED or before.kind is Kind.SESSION_CONTEXT:
        return before.trust
    if before.kind is Kind.DECISION:
        changed = _binding_text(before.content) != _binding_text(content)
    else:
        changed = (before.content, before.facet) != (content, facet)
    return Trust.PENDING if changed else before.trust


def _binding_text(content: Content) -> tuple[object, ...]:
    return content.title, content.content, content.rationale, content.tags


def successor(
    record: Record,
    after: Revision,
    *,
    reason: str | None,
    change_kind: ChangeKind,
    stamp: Stamp,
) -> HeadPut:
    """Return the head that follows a record: next number, new id, linked, stamped (004-52).

    Time never stands still inside a chain: a revision is at least 1 microsecond younger than the
    one before.
    """
    before = record.current
    revision = replace(
        after,
        revision=before.revision + 1,
        revision_id=stamp.new_id(),
        previous_revision_id=before.revision_id,
        reason=reason,
        change_kind=change_kind,
        actor_fingerprint=stamp.actor_fingerprint,
        create_time=max(stamp.now, before.create_time + TICK),
    )
    return HeadPut(Record(revision, record.create_time), expected_revision=before.revision)


def state_not_allowed(revision: Revision, verb: str) -> StateNotAllowedError:
    """Return the refusal of a verb, naming kind, state and trust."""
    return StateNotAllowedError(
        f"a {revision.kind} that is {revision.state} with trust {revision.trust} cannot be {verb}",
        metadata={
            "kind": revision.kind.value.upper(),
            "state": revision.state.value.upper(),
            "trust": revision.trust.value.upper(),
        },
    )

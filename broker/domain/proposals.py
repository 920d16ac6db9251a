"""What is asked about proposals, and how one begins and becomes a decision (004-70..72). No I/O."""

from dataclasses import dataclass, replace
from typing import Final

from broker.domain.authority import Authorized
from broker.domain.delivery import DeliveryOutcome
from broker.domain.effects import accepted_effect
from broker.domain.errors import RecordNotFoundError
from broker.domain.records import Stamp, check_expected, state_not_allowed, successor, visible
from broker.domain.requests import ContentInput, ScopeInput
from providers.model import (
    AcceptedEffect,
    ChangeKind,
    Content,
    HeadPut,
    Kind,
    Record,
    Revision,
    State,
    Trust,
)

_UNDECIDED: Final = (State.PENDING, Trust.PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateProposal:
    """Asks for a new proposal."""

    scope: ScopeInput
    idempotency_key: str
    content: ContentInput


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteProposal:
    """Asks for a proposal to become a decision."""

    scope: ScopeInput
    idempotency_key: str
    proposal_id: str
    expected_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What one promotion writes: both heads, and the effect that was accepted."""

    proposal: HeadPut
    decision: HeadPut
    effect: AcceptedEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """Both heads as a promotion left them, its receipt, and how the delivery came out."""

    project_id: str
    proposal: Record
    decision: Record
    receipt_id: str
    replayed: bool
    delivery: DeliveryOutcome


def proposed(*, agent_id: str, run_id: str, content: Content, stamp: Stamp) -> HeadPut:
    """Return the first revision of a proposal: pending, trusted by nobody (004-51)."""
    first = Revision(
        record_id=stamp.new_id(),
        agent_id=agent_id,
        kind=Kind.PROPOSAL,
        revision=1,
        revision_id=stamp.new_id(),
        previous_revision_id=None,
        content=content,
        facet=None,
        state=State.PENDING,
        trust=Trust.PENDING,
        source_run_id=run_id,
        source_session_id=None,
        promoted_decision_id=None,
        superseded_by_record_id=None,
        reason=None,
        change_kind=ChangeKind.PROPOSAL_CREATED,
        actor_fingerprint=stamp.actor_fingerprint,
        create_time=stamp.now,
    )
    return HeadPut(Record(first, create_time=stamp.now), expected_revision=None)


def promotable(record: Record | None, request: PromoteProposal) -> Record:
    """Return the proposal a request means, at the revision it expects, still undecided.

    Raises:
        RecordNotFoundError: absent, of another agent or run, or no proposal (004-70). Not
            retryable.
        StaleRevisionError: at another revision. Read it again first.
        StateNotAllowedError: decided already. Not retryable.
    """
    proposal = visible(record, request.scope.agent_id)
    head = proposal.current
    if head.kind is not Kind.PROPOSAL or head.source_run_id != request.scope.run_id:
        raise RecordNotFoundError
    check_expected(proposal, request.expected_revision)
    if (head.state, head.trust) != _UNDECIDED:
        raise state_not_allowed(head, "promoted")
    return proposal


def promoted(proposal: Record, authorized: Authorized, *, sequence: int, stamp: Stamp) -> Promotion:
    """Return all that makes a decision of a proposal (004-71).

    The decision says what the proposal says, at revision 1, active and approved. ``sequence`` is
    the place of its effect in the run's stream.
    """
    before = proposal.current
    decision_id = stamp.new_id()
    decision = replace(
        before,
        record_id=decision_id,
        kind=Kind.DECISION,
        revision=1,
        revision_id=stamp.new_id(),
        previous_revision_id=None,
        state=State.ACTIVE,
        trust=Trust.APPROVED,
        reason=None,
        change_kind=ChangeKind.CREATED,
        actor_fingerprint=stamp.actor_fingerprint,
        create_time=stamp.now,
    )
    return Promotion(
        proposal=successor(
            proposal,
            replace(before, state=State.PROMOTED, promoted_decision_id=decision_id),
            reason=None,
            change_kind=ChangeKind.PROPOSAL_PROMOTED,
            stamp=stamp,
        ),
        decision=HeadPut(Record(decision, create_time=stamp.now), expected_revision=None),
        effect=accepted_effect(
            authorized,
            decision=decision,
            receipt_id=stamp.new_id(),
            sequence=sequence,
            accept_time=stamp.now,
        ),
    )

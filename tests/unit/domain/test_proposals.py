"""What a proposal must be to be promoted, and what comes of it."""

from dataclasses import replace
from datetime import timedelta
from itertools import count, product
from typing import Any

import pytest

from broker.domain.errors import (
    BrokerError,
    RecordNotFoundError,
    StaleRevisionError,
    StateNotAllowedError,
)
from broker.domain.proposals import PromoteProposal, promotable, promoted, proposed
from broker.domain.records import Stamp
from broker.domain.requests import ScopeInput
from providers.model import ChangeKind, Content, Kind, Record, State, Trust
from tests.unit.domain.test_effects import AUTHORIZED, NOW

CONTENT = Content(
    type="scope", title="one", content="text", rationale="why", importance=0.9, tags=("a",)
)
REQUEST = PromoteProposal(
    scope=ScopeInput("project", "run", "agent"),
    idempotency_key="key",
    proposal_id="proposal",
    expected_revision=1,
)


def stamp(prefix: str = "new") -> Stamp:
    """Return a stamp with ids that tell their order."""
    numbers = count(1)
    return Stamp(NOW, lambda: f"{prefix}-{next(numbers)}", "a" * 64)


def proposal() -> Record:
    """Return a proposal nobody decided on."""
    return proposed(agent_id="agent", run_id="run", content=CONTENT, stamp=stamp("p")).record


def test_only_what_is_undecided_is_promoted() -> None:
    """004-70, §1.1: state and trust PENDING; every other pair is refused, and told."""
    for state, trust in product(State, Trust):
        made = proposal()
        record = replace(made, current=replace(made.current, state=state, trust=trust))
        if (state, trust) == (State.PENDING, Trust.PENDING):
            assert promotable(record, REQUEST) is record
            continue
        wanted = RecordNotFoundError if state is State.FORGOTTEN else StateNotAllowedError
        with pytest.raises(wanted) as refused:
            promotable(record, REQUEST)
        if wanted is StateNotAllowedError:
            assert refused.value.metadata["state"] == state.value.upper()


@pytest.mark.parametrize(
    "changes", [{"agent_id": "other"}, {"source_run_id": "other"}, {"source_run_id": None}]
)
def test_whose_and_where(changes: dict[str, Any]) -> None:
    """004-70, 004-56: of another agent or run; the same as absent, before the revision is told."""
    made = proposal()
    record = replace(made, current=replace(made.current, **changes))
    for found in (record, None):
        for expected in (1, 2):
            with pytest.raises(RecordNotFoundError):
                promotable(found, replace(REQUEST, expected_revision=expected))


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.PROPOSAL])
def test_what_is_no_proposal(kind: Kind) -> None:
    """004-70: a record of another kind is not found."""
    made = proposal()
    with pytest.raises(BrokerError) as refused:
        promotable(replace(made, current=replace(made.current, kind=kind)), REQUEST)
    assert isinstance(refused.value, RecordNotFoundError)


def test_a_stale_revision_is_told() -> None:
    """004-55: with the current one."""
    with pytest.raises(StaleRevisionError) as refused:
        promotable(proposal(), replace(REQUEST, expected_revision=2))
    assert refused.value.metadata == {"current_revision": "1"}


def test_what_a_promotion_is_made_of() -> None:
    """004-71, 004-72: proposal promoted and linked, decision at 1, effect at its place."""
    before = proposal()
    made = promoted(before, AUTHORIZED, sequence=5, stamp=stamp())
    after, decision, effect = made.proposal, made.decision, made.effect
    head = after.record.current
    assert (after.expected_revision, head.revision) == (1, 2)
    assert (head.state, head.trust) == (State.PROMOTED, Trust.PENDING)
    assert head.change_kind is ChangeKind.PROPOSAL_PROMOTED
    assert head.previous_revision_id == before.current.revision_id
    assert head.create_time == before.current.create_time + timedelta(microseconds=1)
    first = decision.record.current
    assert head.promoted_decision_id == first.record_id != head.record_id
    assert decision.expected_revision is None
    assert (first.kind, first.revision, first.previous_revision_id) == (Kind.DECISION, 1, None)
    assert (first.state, first.trust) == (State.ACTIVE, Trust.APPROVED)
    assert (first.promoted_decision_id, first.superseded_by_record_id) == (None, None)
    assert first.content == CONTENT == head.content
    assert (first.agent_id, first.source_run_id) == ("agent", "run")
    assert (effect.sequence, effect.run_id) == (5, "run")
    assert effect.receipt["record_id"] == effect.receipt["effect_id"] == first.record_id
    ids = [first.record_id, first.revision_id, head.revision_id, effect.receipt_id]
    assert len(set(ids)) == len(ids)

"""How a memory is told again, replaced and forgotten."""

from dataclasses import replace
from datetime import timedelta

import pytest

from broker.domain.errors import StateNotAllowedError, TokenBoundError
from broker.memory.changes import (
    NOTHING,
    check_may_forget,
    forgotten,
    gave_way,
    reinforced,
)
from providers.model import BeliefType, ChangeKind, Kind, MemoryFacet, State, Trust
from tests.unit.domain.test_records import NOW, head, stamp

TICK = timedelta(microseconds=1)
LATER = NOW + timedelta(seconds=1)
BELIEF = MemoryFacet(belief_type=BeliefType.FACT, confidence=0.9, corroboration=2)


@pytest.mark.parametrize("trust", list(Trust))
def test_told_again(trust: Trust) -> None:
    """002-07: one revision; content, state and trust stay, the counters go up, 1.0 is the most."""
    record = head(trust=trust, facet=BELIEF)
    put = reinforced(record, stamp=stamp(LATER))
    before, after = record.current, put.record.current
    assert put.expected_revision == 1
    assert put.entry is None
    assert (after.content, after.state, after.trust) == (before.content, before.state, trust)
    assert after.change_kind is ChangeKind.REINFORCED
    assert after.facet == replace(
        BELIEF, corroboration=3, confidence=1.0, last_reinforce_time=after.create_time
    )


@pytest.mark.parametrize(("stated", "then"), [(None, 0.6), (0.5, 0.6), (0.95, 1.0), (1.0, 1.0)])
def test_confidence_grows_by_a_tenth(stated: float | None, then: float) -> None:
    """002-07: by 0.1, capped at 1.0."""
    record = head(facet=replace(BELIEF, confidence=stated))
    facet = reinforced(record, stamp=stamp(LATER)).record.current.facet
    assert facet is not None
    assert facet.confidence == pytest.approx(then)


def test_gave_way() -> None:
    """000-17, 002-08: the old one is superseded, linked, invalidated, and younger than the new."""
    record, replacement = head(facet=BELIEF), head().current
    replacement = replace(replacement, record_id="new", create_time=LATER)
    after = gave_way(record, replacement, stamp=stamp(NOW)).record.current
    assert (after.state, after.superseded_by_record_id) == (State.SUPERSEDED, "new")
    assert after.change_kind is ChangeKind.SUPERSEDED
    assert after.create_time == LATER + TICK
    assert after.facet is not None
    assert after.facet.invalidate_time == after.create_time
    assert after.facet.invalidation_reason == "superseded"


@pytest.mark.parametrize("state", [State.ACTIVE, State.ARCHIVED, State.SUPERSEDED])
def test_forgotten(state: State) -> None:
    """R1: no read finds it any more, and its entry is emptied."""
    after = forgotten(head(state=state), reason="asked for", stamp=stamp(LATER))
    current = after.record.current
    assert (current.state, current.change_kind) == (State.FORGOTTEN, ChangeKind.FORGOTTEN)
    assert current.reason == "asked for"
    assert current.facet is not None
    assert current.facet.invalidation_reason == "forgotten"
    assert after.entry == NOTHING


@pytest.mark.parametrize("kind", [Kind.DECISION, Kind.PROPOSAL, Kind.SESSION_CONTEXT])
def test_only_memories_are_forgotten(kind: Kind) -> None:
    """R1: what binds a project is not forgotten by an agent."""
    with pytest.raises(StateNotAllowedError):
        forgotten(head(kind=kind), reason=None, stamp=stamp(LATER))


@pytest.mark.parametrize("trust", list(Trust))
def test_a_bound_token_forgets_what_nobody_judged(trust: Trust) -> None:
    """000-26: an agent takes back nothing that somebody has judged."""
    revision = head(trust=trust).current
    check_may_forget(revision, bound=False)
    if trust is Trust.PENDING:
        check_may_forget(revision, bound=True)
    else:
        with pytest.raises(TokenBoundError):
            check_may_forget(revision, bound=True)

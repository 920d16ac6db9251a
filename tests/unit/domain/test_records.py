"""How records begin and change."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, product
from typing import Any

import pytest

from broker.domain.errors import RecordNotFoundError, StaleRevisionError, StateNotAllowedError
from broker.domain.records import Stamp, check_expected, created, updated, visible
from providers.model import (
    ChangeKind,
    Content,
    Kind,
    MemoryFacet,
    OriginTier,
    Record,
    SourceType,
    State,
    Trust,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CONTENT = Content(type="note", title="t", content="c", rationale="r", importance=0.5, tags=("a",))
ACTOR = "f" * 64


def stamp(now: datetime = NOW) -> Stamp:
    """Return a stamp whose ids count."""
    numbers = count(1)
    return Stamp(now, lambda: f"id-{next(numbers)}", ACTOR)


def head(
    kind: Kind = Kind.MEMORY,
    state: State = State.ACTIVE,
    trust: Trust = Trust.APPROVED,
    facet: MemoryFacet | None = None,
) -> Record:
    """Return a head of the given kind, state and trust."""
    put = created(
        kind=kind, agent_id="agent", run_id="run", content=CONTENT, facet=facet, stamp=stamp()
    )
    return Record(replace(put.record.current, state=state, trust=trust), put.record.create_time)


def edit(record: Record, content: Content = CONTENT, **changes: object) -> Record:
    """Return the head after an edit."""
    given: dict[str, object] = {
        "content": content,
        "facet": record.current.facet,
        "reason": None,
        "tier_cap": OriginTier.AGENT,
        "stamp": stamp(NOW + timedelta(seconds=1)),
    }
    return updated(record, **(given | changes)).record  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "source_type", "trust"),
    [
        (Kind.MEMORY, None, Trust.PENDING),
        (Kind.MEMORY, SourceType.CHAT, Trust.PENDING),
        (Kind.MEMORY, SourceType.OPERATOR, Trust.APPROVED),
        (Kind.MEMORY, SourceType.MANUAL, Trust.APPROVED),
        (Kind.SESSION_CONTEXT, None, Trust.APPROVED),
    ],
)
def test_first_revision(kind: Kind, source_type: SourceType | None, trust: Trust) -> None:
    """004-51: active, revision 1, no link; trust by kind and by an accepted operator source."""
    facet = None if source_type is None else MemoryFacet(source_type=source_type)
    put = created(
        kind=kind, agent_id="agent", run_id="run", content=CONTENT, facet=facet, stamp=stamp()
    )
    first = put.record.current
    assert put.expected_revision is None
    assert (first.state, first.trust) == (State.ACTIVE, trust)
    assert (first.revision, first.previous_revision_id) == (1, None)
    assert first.record_id != first.revision_id
    assert (first.change_kind, first.actor_fingerprint) == (ChangeKind.CREATED, ACTOR)
    assert first.source_run_id == "run"
    assert put.record.create_time == first.create_time == NOW


def test_an_edit_appends_a_linked_revision() -> None:
    """004-52: next number, new id, link to the one before, whole snapshot, record time kept."""
    before = head()
    after = edit(before, replace(CONTENT, content="other"), reason="why")
    assert after.current.revision == 2
    assert after.current.previous_revision_id == before.current.revision_id
    assert after.current.revision_id != before.current.revision_id
    assert after.current.change_kind is ChangeKind.UPDATED
    assert (after.current.reason, after.current.content.content) == ("why", "other")
    assert after.create_time == before.create_time


def test_time_never_stands_still_in_a_chain() -> None:
    """004-52: a clock that stands or goes back still gives later revisions."""
    before = head()
    for now in (NOW, NOW - timedelta(hours=1)):
        after = edit(before, stamp=stamp(now))
        assert after.current.create_time == NOW + timedelta(microseconds=1)


EDITABLE = {
    (Kind.MEMORY, State.ACTIVE),
    (Kind.MEMORY, State.ARCHIVED),
    (Kind.SESSION_CONTEXT, State.ACTIVE),
    (Kind.SESSION_CONTEXT, State.ARCHIVED),
    (Kind.DECISION, State.ACTIVE),
}


@pytest.mark.parametrize(("kind", "state", "trust"), list(product(Kind, State, Trust)))
def test_what_can_be_edited(kind: Kind, state: State, trust: Trust) -> None:
    """004-47, 004-55: every kind, state and trust; an edit keeps the state, all else is refused."""
    record = head(kind, state, trust)
    if (kind, state) in EDITABLE:
        assert edit(record, replace(CONTENT, content="other")).current.state is state
        return
    with pytest.raises(StateNotAllowedError) as refused:
        edit(record)
    assert refused.value.metadata == {
        "kind": kind.name,
        "state": state.name,
        "trust": trust.name,
    }


CHANGES: dict[str, Any] = {
    "type": "other",
    "title": "other",
    "content": "other",
    "rationale": "other",
    "importance": 0.9,
    "tags": ("b",),
}


@pytest.mark.parametrize("field", CHANGES)
@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.SESSION_CONTEXT, Kind.DECISION])
def test_trust_after_an_edit(kind: Kind, field: str) -> None:
    """004-51 and ours: a memory goes to pending with any change, a decision with what it says."""
    after = edit(head(kind), replace(CONTENT, **{field: CHANGES[field]}))
    says = field in ("title", "content", "rationale", "tags")
    pending = kind is Kind.MEMORY or (kind is Kind.DECISION and says)
    assert after.current.trust is (Trust.PENDING if pending else Trust.APPROVED)


@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.DECISION])
def test_rejected_survives_an_edit_and_nothing_changed_keeps_trust(kind: Kind) -> None:
    """000-25: a rejected record stays rejected; an edit that changes nothing changes no trust."""
    rejected = edit(head(kind, trust=Trust.REJECTED), replace(CONTENT, content="other"))
    assert rejected.current.trust is Trust.REJECTED
    assert edit(head(kind)).current.trust is Trust.APPROVED


def test_a_facet_change_is_an_edit_of_a_memory() -> None:
    """What is known about a memory is part of what was approved."""
    record = head(facet=MemoryFacet(subject="a", origin_tier=OriginTier.AGENT))
    after = edit(record, facet=MemoryFacet(subject="b", origin_tier=OriginTier.AGENT))
    assert after.current.trust is Trust.PENDING


def test_an_edit_lowers_the_tier_to_its_editor() -> None:
    """000-08: text of an agent never keeps the tier of the operator whose text it replaced."""
    facet = MemoryFacet(source_type=SourceType.OPERATOR, origin_tier=OriginTier.OPERATOR)
    record = head(facet=facet)
    other = replace(CONTENT, content="other")
    by_agent = edit(record, other).current.facet
    assert by_agent is not None and by_agent.origin_tier is OriginTier.AGENT
    by_operator = edit(record, other, tier_cap=OriginTier.OPERATOR).current.facet
    assert by_operator is not None and by_operator.origin_tier is OriginTier.OPERATOR
    unchanged = edit(record).current.facet
    assert unchanged is not None and unchanged.origin_tier is OriginTier.OPERATOR


def test_visibility_is_one_answer() -> None:
    """004-56: absent, another agent's and forgotten are told apart by nothing."""
    assert visible(head(), "agent").current.agent_id == "agent"
    messages = set()
    for record, agent in (
        (None, "agent"),
        (head(), "other"),
        (head(state=State.FORGOTTEN), "agent"),
    ):
        with pytest.raises(RecordNotFoundError) as refused:
            visible(record, agent)
        messages.add((refused.value.message, tuple(refused.value.metadata.items())))
    assert len(messages) == 1


def test_a_stale_write_is_told_the_current_revision() -> None:
    """004-55: with the revision that is current."""
    record = edit(head())
    check_expected(record, 2)
    for seen in (1, 3):
        with pytest.raises(StaleRevisionError) as refused:
            check_expected(record, seen)
        assert refused.value.metadata == {"current_revision": "2"}

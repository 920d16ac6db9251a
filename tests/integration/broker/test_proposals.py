"""Proposals over the wire: how they begin, are promoted once and whole, and are refused."""

import asyncio
from typing import Any, Final

import pytest

from broker.api.v1 import effect_pb2, record_pb2
from tests.fixtures.decisions import head, id_of, written
from tests.fixtures.desk import Desk, desk
from tests.fixtures.record_calls import (
    ARCHIVE,
    DELIVER,
    EFFECT,
    GET,
    LIST,
    PENDING,
    PROMOTE,
    PROPOSE,
    REJECT,
    RESTORE,
    SEARCH,
    UPDATE,
    Refused,
)
from tests.fixtures.stand_records import stored

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

GONE: Final = ("NOT_FOUND", "RECORD_NOT_FOUND")
FULL: Final = record_pb2.RECORD_VIEW_FULL


async def proposed(desk: Desk, key: str = "key-proposal", **changes: Any) -> record_pb2.Record:
    """Make a proposal."""
    reply = await desk.done(PROPOSE, idempotency_key=key, **changes)
    proposal: record_pb2.Record = reply.proposal
    return proposal


async def counted(desk: Desk) -> dict[str, int]:
    """Return how many rows of each kind the project has."""
    tables = ("records", "revisions", "receipts", "effects", "counters")
    return {table: await desk.stand.rows(f"memory.{table}", desk.project) for table in tables}


async def test_a_proposal_begins_pending(desk: Desk) -> None:
    """004-46, 004-51, B4.2: revision 1, trusted by nobody, hidden from a search until asked for."""
    proposal = await proposed(desk)
    assert proposal.kind == record_pb2.RECORD_KIND_PROPOSAL
    assert proposal.state == record_pb2.RECORD_STATE_PENDING
    assert (proposal.trust, proposal.revision) == (record_pb2.TRUST_PENDING, 1)
    assert (proposal.source_run_id, proposal.source_session_id) == ("run-a", "")
    assert (proposal.type, proposal.title, list(proposal.tags)) == (
        "architectural",
        "the sky",
        ["sky"],
    )
    assert await desk.head(proposal.record_id) == proposal
    assert (await desk.revision(proposal)).change_kind == record_pb2.CHANGE_KIND_PROPOSAL_CREATED
    assert not (await desk.done(SEARCH)).records
    found = await desk.done(SEARCH, states=[record_pb2.RECORD_STATE_PENDING], view=FULL)
    assert list(found.records) == [proposal]
    again = await desk.done(PROPOSE)
    assert (again.replayed, again.proposal) == (True, proposal)
    reused = await desk.told(PROPOSE, title="another")
    assert reused.reason == "IDEMPOTENCY_KEY_REUSED"


@pytest.mark.memories("postgres", "redis")
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": " \t"}, "title"),
        ({"title": "t" * 513}, "title"),
        ({"content": " "}, "content"),
        ({"content": "c" * 40_001}, "content"),
        ({"rationale": "r" * 8_001}, "rationale"),
        ({"type": ""}, "type"),
        ({"type": "t" * 65}, "type"),
        ({"importance": 1.5}, "importance"),
        ({"tags": [str(n) for n in range(33)]}, "tags"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "k" * 129}, "idempotency_key"),
    ],
)
async def test_fields_of_a_proposal(desk: Desk, changes: dict[str, Any], field: str) -> None:
    """004-48, 004-61: each bad field is named, and nothing is written."""
    refused = await desk.told(PROPOSE, **changes)
    assert (refused.code, refused.reason) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert [*refused.violations] == [field]
    assert await desk.stand.rows("memory.records", desk.project) == 0


async def test_the_largest_proposal(desk: Desk) -> None:
    """004-48: every field at its limit, promoted and read back as it was."""
    texts: dict[str, Any] = {
        "type": "t" * 64,
        "title": "空" * 512,
        "content": "🌍" * 40_000,
        "rationale": "r" * 8_000,
        "tags": sorted(f"{n:064}" for n in range(32)),
        "importance": 0.0,
    }
    proposal = await proposed(desk, **texts)
    promoted = await desk.done(PROMOTE, proposal_id=proposal.record_id)
    for name, text in texts.items():
        value = getattr(promoted.decision, name)
        assert (list(value) if name == "tags" else value) == text


async def test_promotion_makes_a_decision(desk: Desk) -> None:
    """004-71, 004-72, B4.2, P10: both histories, the receipt and the intent, of one commit."""
    proposal = await proposed(desk)
    promoted = await desk.done(PROMOTE, proposal_id=proposal.record_id)
    before, after, decision = proposal, promoted.proposal, promoted.decision
    assert not promoted.replayed
    assert (after.state, after.trust) == (
        record_pb2.RECORD_STATE_PROMOTED,
        record_pb2.TRUST_PENDING,
    )
    assert (after.revision, after.previous_revision_id) == (2, before.revision_id)
    assert after.promoted_decision_id == decision.record_id
    assert decision.kind == record_pb2.RECORD_KIND_DECISION
    assert (decision.state, decision.trust) == (
        record_pb2.RECORD_STATE_ACTIVE,
        record_pb2.TRUST_APPROVED,
    )
    assert (decision.revision, decision.previous_revision_id) == (1, "")
    assert (decision.promoted_decision_id, decision.superseded_by_record_id) == ("", "")
    for name in ("type", "title", "content", "rationale", "importance", "tags"):
        assert getattr(decision, name) == getattr(proposal, name)
    for name in ("source_run_id", "source_session_id", "agent_id", "project_id"):
        assert getattr(decision, name) == getattr(proposal, name)
    kinds = [each.change_kind for each in (await history(desk, after.record_id))]
    assert kinds == [
        record_pb2.CHANGE_KIND_PROPOSAL_PROMOTED,
        record_pb2.CHANGE_KIND_PROPOSAL_CREATED,
    ]
    kinds = [each.change_kind for each in (await history(desk, decision.record_id))]
    assert kinds == [record_pb2.CHANGE_KIND_CREATED]
    assert await desk.head(decision.record_id) == decision
    assert await counted(desk) == {
        "records": 2,
        "revisions": 3,
        "receipts": 2,
        "effects": 1,
        "counters": 1,
    }
    assert promoted.delivery.state == effect_pb2.DELIVERY_STATE_DELIVERED


async def history(desk: Desk, record_id: str) -> list[record_pb2.Revision]:
    """Return every revision, newest first."""
    return list((await desk.done(LIST, record_id=record_id)).revisions)


async def test_a_promotion_is_replayed(desk: Desk) -> None:
    """004-62, 004-63, 004-75: the original reply, also after the decision moved on."""
    proposal = await proposed(desk)
    first = await desk.done(PROMOTE, proposal_id=proposal.record_id)
    await desk.changed(ARCHIVE, first.decision)
    again = await desk.done(PROMOTE, proposal_id=proposal.record_id)
    assert again.replayed
    assert (again.proposal, again.decision) == (first.proposal, first.decision)
    assert again.receipt_id == first.receipt_id
    assert again.delivery.SerializeToString(deterministic=True) == (
        first.delivery.SerializeToString(deterministic=True)
    )
    assert desk.stand.events.counts[desk.project] == 1
    for changes in ({"expected_revision": 2}, {"proposal_id": "other"}):
        given = {"proposal_id": proposal.record_id} | changes
        assert (await desk.told(PROMOTE, **given)).reason == "IDEMPOTENCY_KEY_REUSED"


async def test_what_cannot_be_promoted(desk: Desk) -> None:
    """004-70, 004-56: of another agent or run, absent, or no proposal: one answer; zero rows."""
    proposal = await proposed(desk)
    memory = await desk.made()
    decision = head()
    await written(desk.stand, desk.project, [decision])
    await desk.made(key="key-b", run="run-b")  # pins the run
    rows = await stored(desk.stand, [desk.project])
    given: list[dict[str, Any]] = [
        {"proposal_id": "absent"},
        {"proposal_id": memory.record_id},
        {"proposal_id": id_of(decision)},
        {"proposal_id": proposal.record_id, "agent": "agent-b"},
        {"proposal_id": proposal.record_id, "run": "run-b"},
        {"proposal_id": proposal.record_id, "run": "run-b", "expected_revision": 7},
    ]
    told = [await desk.told(PROMOTE, **each) for each in given]
    assert {(each.code, each.reason) for each in told} == {GONE}
    assert len({each.message for each in told}) == 1
    stale = await desk.told(PROMOTE, proposal_id=proposal.record_id, expected_revision=2)
    assert (stale.reason, stale.metadata) == ("REVISION_STALE", {"current_revision": "1"})
    for value in (0, -1):
        refused = await desk.told(PROMOTE, proposal_id=proposal.record_id, expected_revision=value)
        assert [*refused.violations] == ["expected_revision"]
    assert await stored(desk.stand, [desk.project]) == rows
    assert desk.stand.events.counts[desk.project] == 0


async def test_what_was_decided_stays_decided(desk: Desk) -> None:
    """004-L8, P10: promoted or rejected, a proposal cannot be processed again."""
    one, other = await proposed(desk, "key-1"), await proposed(desk, "key-2")
    await desk.done(PROMOTE, proposal_id=one.record_id)
    rejected = await desk.changed(REJECT, other)
    assert rejected.state == record_pb2.RECORD_STATE_REJECTED
    for number, record_id in enumerate((one.record_id, other.record_id)):
        for rpc in (PROMOTE, REJECT, ARCHIVE, UPDATE, RESTORE):
            named = "proposal_id" if rpc == PROMOTE else "record_id"
            refused = await desk.told(
                rpc,
                **{named: record_id},
                expected_revision=2,
                idempotency_key=f"again-{rpc}-{number}",
            )
            assert refused.reason == "STATE_NOT_ALLOWED", rpc
    assert (await counted(desk))["effects"] == 1


async def test_a_run_without_a_pin(desk: Desk) -> None:
    """004-30: promotion and effect reads need a pin that is there, and make none."""
    for rpc in (PROMOTE, EFFECT, DELIVER, PENDING):
        refused = await desk.told(rpc)
        assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "BINDING_MISSING")
    assert await desk.stand.rows("knowledge.pins", desk.project) == 0


async def test_racing_promotions_have_one_effect(desk: Desk) -> None:
    """004-71, 004-62: one key once; of several keys one wins, and the others see it done."""
    proposal = await proposed(desk)
    keys = [f"key-{n % 4}" for n in range(24)]
    replies = await asyncio.gather(
        *(desk.call(PROMOTE, proposal_id=proposal.record_id, idempotency_key=key) for key in keys)
    )
    told = [reply for reply in replies if not isinstance(reply, Refused)]
    assert {reply.receipt_id for reply in told} == {told[0].receipt_id}
    assert {reply.decision.record_id for reply in told} == {told[0].decision.record_id}
    assert len(told) == 6, "every call with the winner's key"
    reasons = {reply.reason for reply in replies if isinstance(reply, Refused)}
    assert reasons == {"REVISION_STALE"}
    assert (await counted(desk))["effects"] == 1
    assert len(desk.stand.events.facts[desk.project]) == 1


async def test_rejecting_races_promoting(desk: Desk) -> None:
    """004-55, 004-71: one of the two happens, whole."""
    for number in range(8):
        proposal = await proposed(desk, f"key-{number}")
        changes = {"idempotency_key": f"decide-{number}", "expected_revision": 1}
        promoting, rejecting = await asyncio.gather(
            desk.call(PROMOTE, proposal_id=proposal.record_id, **changes),
            desk.call(
                REJECT,
                record_id=proposal.record_id,
                **changes | {"idempotency_key": f"reject-{number}"},
            ),
        )
        assert isinstance(promoting, Refused) is not isinstance(rejecting, Refused)
        current = await desk.done(GET, record_id=proposal.record_id)
        assert current.record.revision == 2
        was_promoted = current.record.state == record_pb2.RECORD_STATE_PROMOTED
        assert was_promoted is not isinstance(promoting, Refused)
        assert bool(current.record.promoted_decision_id) is was_promoted


async def test_sixty_four_promotions_at_once(desk: Desk) -> None:
    """004-71, 004-73: in sixty-four runs of one project; every one of them is delivered."""
    runs = [f"run-{n}" for n in range(64)]
    proposals = await asyncio.gather(
        *(desk.done(PROPOSE, run=run, idempotency_key=f"key-{run}") for run in runs)
    )
    promoted = await asyncio.gather(
        *(
            desk.done(
                PROMOTE,
                run=run,
                proposal_id=made.proposal.record_id,
                idempotency_key=f"promote-{run}",
            )
            for run, made in zip(runs, proposals, strict=True)
        )
    )
    states = {each.delivery.state for each in promoted}
    assert states == {effect_pb2.DELIVERY_STATE_DELIVERED}
    sequences = sorted(each.delivery.acknowledgement.sequence for each in promoted)
    assert sequences == [*range(1, 65)]
    waiting = [(await desk.done(PENDING, run=run)).effects for run in runs]
    assert not any(waiting)

"""The verbs over the wire: the table, who may judge, what survives, replays and stale calls."""

import asyncio
from itertools import product
from typing import Any, Final

import pytest

from broker.api.v1 import record_pb2
from broker.domain.lifecycle import Verb
from broker.owners.v1 import projects_config_service_pb2 as owners
from providers.model import Kind, State, Trust
from tests.fixtures.authority_rows import bent, granting, projects_grant
from tests.fixtures.decisions import decisions, head, id_of, written
from tests.fixtures.desk import Desk, desk
from tests.fixtures.record_calls import (
    APPROVE,
    ARCHIVE,
    CHANGES,
    REJECT,
    REOPEN,
    RESTORE,
    SUPERSEDE,
    UNARCHIVE,
    UPDATE,
    Refused,
)
from tests.fixtures.seeds import seed
from tests.fixtures.stand_records import stored
from tests.unit.domain.test_lifecycle import EXPECTED

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

GONE: Final = ("NOT_FOUND", "RECORD_NOT_FOUND")
PENDING: Final = record_pb2.TRUST_PENDING
APPROVED: Final = record_pb2.TRUST_APPROVED
REJECTED: Final = record_pb2.TRUST_REJECTED
ACTIVE: Final = record_pb2.RECORD_STATE_ACTIVE
ARCHIVED: Final = record_pb2.RECORD_STATE_ARCHIVED
SUPERSEDED: Final = record_pb2.RECORD_STATE_SUPERSEDED
JUDGING: Final = (APPROVE, REJECT, REOPEN)
VERBS: Final = {
    ARCHIVE: Verb.ARCHIVE,
    UNARCHIVE: Verb.UNARCHIVE,
    SUPERSEDE: Verb.SUPERSEDE,
    RESTORE: Verb.RESTORE,
    APPROVE: Verb.APPROVE,
    REJECT: Verb.REJECT,
    REOPEN: Verb.REOPEN,
}
STATES: Final = {
    Kind.MEMORY: (State.ACTIVE, State.ARCHIVED),
    Kind.SESSION_CONTEXT: (State.ACTIVE, State.ARCHIVED),
    Kind.DECISION: (State.ACTIVE, State.ARCHIVED, State.SUPERSEDED),
    Kind.PROPOSAL: (State.PENDING, State.REJECTED),
}
"""The states a record of each kind can be stored in."""
BEFORE: Final = [
    (kind, state, trust)
    for kind, states in STATES.items()
    for state, trust in product(states, Trust)
]


def name_of(enum: Any, value: int, prefix: str) -> str:
    """Return the name of a value as the domain writes it."""
    return str(enum.Name(value)).removeprefix(prefix).lower()


# -------------------- the table


def test_no_verb_is_left_out() -> None:
    """004-57: every changing RPC has its verb in the table."""
    assert set(VERBS) == set(CHANGES)
    assert set(VERBS.values()) == set(Verb)


@pytest.mark.memories("postgres", "redis")
@pytest.mark.parametrize("rpc", CHANGES)
async def test_table(desk: Desk, rpc: str) -> None:
    """004-57, 000-24: every kind, state and trust, allowed or refused with all three named."""
    await desk.made()  # pins the run
    (serving,) = await decisions(desk.stand, desk.project)
    puts = [
        head(
            kind,
            state=state,
            trust=trust,
            superseded_by_record_id=serving if state is State.SUPERSEDED else None,
        )
        for kind, state, trust in BEFORE
    ]
    await written(desk.stand, desk.project, puts)
    replies = [  # one after the other: many writes of decisions at once contend for their graph
        await desk.call(
            rpc,
            record_id=id_of(put),
            replacement_record_id=serving,
            idempotency_key=f"change-{number}",
            reason="why",
        )
        for number, put in enumerate(puts)
    ]
    for (kind, state, trust), put, reply in zip(BEFORE, puts, replies, strict=True):
        wanted = EXPECTED.get((VERBS[rpc], kind, state, trust))
        if wanted is None:
            assert (reply.code, reply.reason) == ("FAILED_PRECONDITION", "STATE_NOT_ALLOWED")
            told = {"kind": kind, "state": state, "trust": trust}
            assert reply.metadata == {key: word.upper() for key, word in told.items()}
            assert reply.precondition
            assert (await desk.head(id_of(put))).revision == 1
        else:
            assert not isinstance(reply, Refused), (kind, state, trust, reply.info)
            after, trust_after, change = wanted
            if rpc == RESTORE and trust is Trust.REJECTED:
                trust_after = trust
            await _is_after(desk, reply.record, after, trust_after, change)


async def _is_after(
    desk: Desk, after: record_pb2.Record, state: State, trust: Trust, change: Any
) -> None:
    assert after.revision == 2
    assert name_of(record_pb2.RecordState, after.state, "RECORD_STATE_") == state
    assert name_of(record_pb2.Trust, after.trust, "TRUST_") == trust
    revision = await desk.revision(after)
    assert name_of(record_pb2.ChangeKind, revision.change_kind, "CHANGE_KIND_") == change
    assert revision.reason == "why"
    assert bool(after.superseded_by_record_id) == (state is State.SUPERSEDED)


# -------------------- replays and stale calls


@pytest.mark.parametrize("rpc", CHANGES)
async def test_replay_and_stale(desk: Desk, rpc: str) -> None:
    """004-55, 004-62..64: a replay tells what was then; a refused call leaves its key free."""
    named = await seed(desk.stand, desk.channel, rpc, desk.project)
    expected = named.get("expected_revision", 1)
    for wrong in (expected + 1, expected + 7):
        stale = await desk.told(rpc, **(named | {"expected_revision": wrong}))
        assert (stale.code, stale.reason) == ("ABORTED", "REVISION_STALE")
        assert stale.metadata == {"current_revision": str(expected)}
    first = await desk.done(rpc, **named)
    assert (first.replayed, first.record.revision) == (False, expected + 1)
    again = await desk.done(rpc, **named)
    assert (again.replayed, again.record) == (True, first.record)
    moved = await desk.changed(RESTORE, first.record, idempotency_key="key-later")
    assert moved.revision == expected + 2
    kept = await stored(desk.stand, [desk.project])
    later = await desk.done(rpc, **named)
    assert (later.replayed, later.record) == (True, first.record)
    for other in ({"reason": "other"}, {"agent": "agent-b"}, {"expected_revision": expected + 2}):
        reused = await desk.told(rpc, **(named | other))
        assert reused.reason == "IDEMPOTENCY_KEY_REUSED"
    assert await stored(desk.stand, [desk.project]) == kept


@pytest.mark.parametrize("rpc", CHANGES)
async def test_two_at_once(desk: Desk, rpc: str) -> None:
    """004-55: of two who saw the same revision one changes it, the other is told."""
    named = await seed(desk.stand, desk.channel, rpc, desk.project)
    replies = await asyncio.gather(
        *(desk.call(rpc, **named, idempotency_key=f"key-{side}") for side in "ab")
    )
    (lost,) = (reply for reply in replies if isinstance(reply, Refused))
    assert lost.reason == "REVISION_STALE"
    assert (await desk.head(named["record_id"])).revision == named.get("expected_revision", 1) + 1


@pytest.mark.parametrize("rpc", [*CHANGES, UPDATE])
async def test_forgotten(desk: Desk, rpc: str) -> None:
    """004-56: what was forgotten is absent to every verb, in the same bytes."""
    await desk.made()
    forgotten, serving = head(Kind.MEMORY, state=State.FORGOTTEN), head()
    await written(desk.stand, desk.project, [forgotten, serving])
    for wanted in (id_of(forgotten), "absent"):
        changes = {"record_id": wanted, "replacement_record_id": id_of(serving)}
        reply = await desk.told(rpc, **changes)
        assert (reply.code, reply.reason, reply.metadata) == (*GONE, {})


# -------------------- who may judge

READER: Final = projects_grant(
    owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE, owners.PERMISSION_READ_RUN_SELECTION
)
MISSING: Final = ("PERMISSION_DENIED", "PERMISSION_MISSING", {"permission": "WriteProjects"})
BOUND: Final[tuple[str, str, dict[str, str]]] = ("PERMISSION_DENIED", "TOKEN_BOUND", {})


def bindings(desk: Desk) -> tuple[dict[str, Any], ...]:
    """Return the claims of bound tokens."""
    return {"project_id": desk.project}, {"project_id": desk.project, "run_id": "run-a"}


@pytest.mark.parametrize("rpc", JUDGING)
async def test_judging_a_memory(desk: Desk, rpc: str) -> None:
    """000-24, 004-08: it takes WriteProjects, at both checks, and an unbound token."""
    named = await seed(desk.stand, desk.channel, rpc, desk.project)
    scripts = desk.stand.owner.scripts
    kept = await stored(desk.stand, [desk.project])
    for claims in bindings(desk):
        reply = await desk.told(rpc, claims, **named)
        assert (reply.code, reply.reason, reply.metadata) == BOUND
    for at in (None, 2):
        scripts[desk.project] = bent(granting(READER), at=at)
        desk.stand.owner.questions[desk.project].clear()
        reply = await desk.told(rpc, **named)
        assert (reply.code, reply.reason, reply.metadata) == MISSING
        reply = await desk.told(rpc, record_id="absent", idempotency_key="key-absent")
        assert (reply.code, reply.reason) == GONE, "a refusal would tell that it is there"
    reply = await desk.told(rpc, bindings(desk)[0], **named)
    assert reply.reason == "TOKEN_BOUND"
    assert await stored(desk.stand, [desk.project]) == kept
    tenant = (owners.RESOURCE_TYPE_TENANT, "tenant-a", (owners.PERMISSION_WRITE_PROJECTS,))
    scripts[desk.project] = bent(granting(READER, tenant))
    await desk.done(rpc, **named)


@pytest.mark.parametrize("rpc", JUDGING)
async def test_a_judgement_is_replayed_to_whoever_may_still_judge(desk: Desk, rpc: str) -> None:
    """004-61, 004-08: authority precedes replay, also where the record's kind demands it."""
    named = await seed(desk.stand, desk.channel, rpc, desk.project)
    scripts = desk.stand.owner.scripts
    first = await desk.done(rpc, **named)
    for claims in bindings(desk):
        reply = await desk.told(rpc, claims, **named)
        assert (reply.code, reply.reason, reply.metadata) == BOUND
    for at in (None, 3):
        scripts[desk.project] = bent(granting(READER), at=at)
        desk.stand.owner.questions[desk.project].clear()
        reply = await desk.told(rpc, **named)
        assert (reply.code, reply.reason, reply.metadata) == MISSING
    del scripts[desk.project]
    again = await desk.done(rpc, **named)
    assert again.replayed
    assert again.record == first.record


@pytest.mark.parametrize("rpc", JUDGING)
@pytest.mark.parametrize("kind", [Kind.DECISION, Kind.PROPOSAL])
async def test_judging_anything_else(desk: Desk, rpc: str, kind: Kind) -> None:
    """004-08, ours: who may write records judges decisions; a proposal can only be rejected."""
    await desk.made()
    state = State.ACTIVE if kind is Kind.DECISION else State.PENDING
    trust = Trust.APPROVED if rpc == REOPEN else Trust.PENDING
    puts = [head(kind, state=state, trust=trust) for _ in range(3)]
    await written(desk.stand, desk.project, puts)
    desk.stand.owner.scripts[desk.project] = bent(granting(READER))
    for number, claims in enumerate(({}, *bindings(desk))):
        reply = await desk.call(
            rpc, claims, record_id=id_of(puts[number]), idempotency_key=f"change-{number}"
        )
        if kind is Kind.PROPOSAL and rpc != REJECT:
            assert reply.reason == "STATE_NOT_ALLOWED"
        else:
            assert reply.record.revision == 2


# -------------------- what an edit does to trust


EDITS: Final[dict[str, tuple[Any, bool]]] = {
    "title": ("the sea", True),
    "content": ("the sky is grey", True),
    "rationale": ("somebody said so", True),
    "tags": (["sky", "sea"], True),
    "importance": (0.9, False),
    "type": ("law", False),
}
SKY: Final = {
    "type": "rule",
    "title": "the sky",
    "content": "the sky is blue",
    "rationale": "it was looked at",
    "importance": 0.5,
    "tags": ["sky"],
}


@pytest.mark.parametrize("field", EDITS)
async def test_an_edited_decision(desk: Desk, field: str) -> None:
    """004-57, ours: retitled, re-tagged or edited it is pending again; the peer keeps it."""
    await desk.made()
    value, says_something_else = EDITS[field]
    (decision,) = await decisions(desk.stand, desk.project)
    approved = await desk.changed(APPROVE, decision)
    same = await desk.changed(UPDATE, approved, **SKY)
    assert same.trust == APPROVED
    edited = await desk.changed(UPDATE, same, **(SKY | {field: value}))
    assert edited.trust == (PENDING if says_something_else else APPROVED)
    assert edited.state == ACTIVE
    rejected = await desk.changed(REJECT, edited)
    again = await desk.changed(UPDATE, rejected, **SKY)
    assert again.trust == REJECTED


@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.DECISION])
async def test_rejected_survives(desk: Desk, kind: Kind) -> None:
    """000-24, 000-25: through edits, the archive and restores; only Reopen ends it."""
    await desk.made()
    put = head(kind, trust=Trust.PENDING)
    await written(desk.stand, desk.project, [put])
    head_now = await desk.changed(REJECT, id_of(put))
    way = [UPDATE, RESTORE, ARCHIVE, RESTORE, ARCHIVE, UNARCHIVE]
    for rpc in way if kind is Kind.MEMORY else way[:-2]:
        head_now = await desk.changed(rpc, head_now)
        assert head_now.trust == REJECTED, rpc
        assert head_now.facet.HasField("invalidate_time"), rpc
    approve = {"record_id": id_of(put), "expected_revision": head_now.revision}
    assert (await desk.told(APPROVE, **approve)).reason == "STATE_NOT_ALLOWED"
    reopened = await desk.changed(REOPEN, head_now)
    assert (reopened.trust, reopened.state) == (PENDING, ACTIVE)
    assert (await desk.changed(APPROVE, reopened)).trust == APPROVED


@pytest.mark.parametrize(
    ("reject_kind", "reason"),
    [
        (0, "rejected"),
        (record_pb2.REJECT_KIND_UNTRUE, "rejected_untrue"),
        (record_pb2.REJECT_KIND_CHANGED, "rejected_changed"),
        (record_pb2.REJECT_KIND_NOT_HERE, "rejected_not_here"),
    ],
)
async def test_reject_kinds(desk: Desk, reject_kind: Any, reason: str) -> None:
    """002-16, 000-24: the facet says since when and why; rejecting again says it anew."""
    record = await desk.made()
    rejected = await desk.changed(REJECT, record, reject_kind=reject_kind)
    assert rejected.facet.invalidation_reason == reason
    assert rejected.facet.invalidate_time == rejected.update_time
    again = await desk.changed(REJECT, rejected, reject_kind=record_pb2.REJECT_KIND_UNTRUE)
    assert again.facet.invalidation_reason == "rejected_untrue"
    reopened = await desk.changed(REOPEN, again)
    assert not reopened.facet.HasField("invalidate_time")
    assert reopened.facet.invalidation_reason == ""


# -------------------- restoring


async def test_restore_a_memory(desk: Desk) -> None:
    """004-52, 000-25: the content of an earlier revision is a new head, pending and active."""
    first = await desk.made(content="one", title="t", tags=["a"], importance=0.9)
    second = await desk.changed(UPDATE, first, content="two")
    archived = await desk.changed(ARCHIVE, second)
    restored = await desk.changed(RESTORE, archived, source_revision=1)
    assert (restored.state, restored.trust, restored.revision) == (ACTIVE, PENDING, 4)
    for field in ("content", "title", "type", "rationale", "importance", "tags"):
        assert getattr(restored, field) == getattr(first, field)
    assert (await desk.revision(restored)).reason == "restored from revision 1"
    assert restored.previous_revision_id == archived.revision_id


async def test_restore_a_superseded_decision(desk: Desk) -> None:
    """004-57: restored it serves again, and links to nobody."""
    await desk.made()
    one, other = await decisions(desk.stand, desk.project, 2)
    superseded = await desk.changed(SUPERSEDE, one, replacement_record_id=other)
    assert (superseded.state, superseded.superseded_by_record_id) == (SUPERSEDED, other)
    restored = await desk.changed(RESTORE, superseded)
    assert (restored.state, restored.superseded_by_record_id) == (ACTIVE, "")
    back = await desk.changed(SUPERSEDE, other, replacement_record_id=one)
    assert back.state == SUPERSEDED, "the link that is gone makes no cycle"


async def test_restore_an_archived_decision(desk: Desk) -> None:
    """004-57: an archived decision comes back by a restore and by nothing else."""
    await desk.made()
    (decision,) = await decisions(desk.stand, desk.project, trust=Trust.APPROVED)
    archived = await desk.changed(ARCHIVE, decision)
    assert (archived.state, archived.trust) == (ARCHIVED, APPROVED)
    named = {"record_id": decision, "expected_revision": 2}
    assert (await desk.told(UNARCHIVE, **named)).reason == "STATE_NOT_ALLOWED"
    restored = await desk.changed(RESTORE, archived)
    assert (restored.state, restored.trust) == (ACTIVE, PENDING)


async def test_restore_from_what_is_not_there(desk: Desk) -> None:
    """004-56: a revision that is absent; a foreign record before it."""
    record = await desk.made()
    named = {"record_id": record.record_id, "source_revision": 9}
    reply = await desk.told(RESTORE, **named)
    assert (reply.code, reply.reason) == ("NOT_FOUND", "REVISION_NOT_FOUND")
    reply = await desk.told(RESTORE, agent="agent-b", **named)
    assert (reply.code, reply.reason) == GONE

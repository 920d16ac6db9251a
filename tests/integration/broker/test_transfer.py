"""Histories on the move: exported, imported elsewhere, exported again (004-82, 004-85, 004-88)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from grpc import aio

from broker.api.v1 import record_pb2, transfer_pb2
from broker.server.bundle_json import canonical_json
from tests.fixtures.broker import Stand
from tests.fixtures.bundles import SUPERSEDED, bundle, history, linked
from tests.fixtures.decisions import decisions
from tests.fixtures.desk import Desk, desk
from tests.fixtures.own_broker import own_broker
from tests.fixtures.record_calls import (
    APPROVE,
    ARCHIVE,
    CREATE,
    EXPORT,
    GET,
    IMPORT,
    LIST,
    RESTORE,
    SEARCH,
    SUPERSEDE,
    UPDATE,
    method,
    raw,
    request,
)
from tests.fixtures.stand_records import stored

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

THERE: Final = {"tenant": "tenant-b"}
"""Another tenant has projects of the same ids, and nothing in them."""
SNIPPET: Final = 256


async def furnished(desk: Desk) -> transfer_pb2.Bundle:
    """Keep one of everything for agent-a, something for agent-b; return the export of agent-a."""
    project = desk.project
    old, new, restored = await decisions(desk.stand, project, 3)
    await decisions(desk.stand, project, 1, agent="agent-b")
    await desk.changed(SUPERSEDE, old, replacement_record_id=new)
    await desk.changed(SUPERSEDE, restored, replacement_record_id=old)
    await desk.changed(RESTORE, restored, reason="it was right")
    facet = record_pb2.MemoryFacet(subject="the sky", confidence=0.25)
    facet.metadata.update({"n": 1, "list": [True, None, {"deep": "ä"}]})
    memory = await desk.made("memory", tags=["sky", "Blue"], facet=facet, content="é\U0001f600\x01")
    memory = await desk.changed(UPDATE, memory, content="green", tags=[])
    await desk.changed(ARCHIVE, memory)
    await desk.made("session", kind=record_pb2.RECORD_KIND_SESSION_CONTEXT)
    await desk.made("foreign", agent="agent-b")
    return await exported(desk)


async def exported(
    desk: Desk, claims: dict[str, Any] | None = None, /, **changes: Any
) -> transfer_pb2.Bundle:
    """Export, by default everything of agent-a."""
    made: transfer_pb2.Bundle = (await desk.done(EXPORT, claims, **changes)).bundle
    return made


def ids(records: Iterable[Any]) -> list[str]:
    """Return the ids of records."""
    return [each.record_id for each in records]


def heads(made: transfer_pb2.Bundle) -> list[record_pb2.Record]:
    """Return the heads of a bundle."""
    return [each.record for each in made.records]


# -------------------- export


async def test_what_a_bundle_holds(desk: Desk) -> None:
    """004-82, 004-85, B4.10: one agent's memories and decisions with all revisions, in order."""
    made = await furnished(desk)
    assert (made.format, made.schema_version) == ("agentweaver.knowledge-transfer.v1", 1)
    assert (made.project_id, made.agent_id) == (desk.project, "agent-a")
    kinds = [(each.kind, each.record_id) for each in heads(made)]
    assert [kind for kind, _ in kinds] == [2, 2, 2, 1]
    assert ids(heads(made)[:3]) == sorted(ids(heads(made)[:3]))
    assert SUPERSEDED in {each.state for each in heads(made)}
    for each in made.records:
        listed = await desk.done(LIST, record_id=each.record.record_id)
        assert list(listed.revisions) == list(each.revisions)[::-1]
        assert (await desk.head(each.record.record_id)) == each.record


async def test_a_proposal_stays(desk: Desk) -> None:
    """004-82, B4.10: the decision that was made of it moves, and names no proposal."""
    made = (await desk.done("CreateProposal")).proposal
    named = {"proposal_id": made.record_id, "expected_revision": made.revision}
    promoted = await desk.done("PromoteProposal", **named)
    bundle_of_it = await exported(desk)
    assert heads(bundle_of_it) == [promoted.decision]
    assert promoted.decision.promoted_decision_id == ""
    replied = await desk.done(IMPORT, THERE, bundle=bundle_of_it)
    with_imported(bundle_of_it, await exported(desk, THERE), replied)
    assert await desk.stand.rows("memory.effects", desk.project) == 1


async def test_stable_bytes(desk: Desk) -> None:
    """004-82: two exports of one state are equal byte for byte; the reply must not be stored."""
    await furnished(desk)
    body = request(EXPORT, desk.project).SerializeToString()
    says = desk.stand.metadata()
    replies = [await raw(desk.channel, method(EXPORT), body, says) for _ in range(3)]
    assert len(set(replies)) == 1 and isinstance(replies[0], bytes)
    stub: aio.UnaryUnaryMultiCallable[bytes, bytes] = desk.channel.unary_unary(method(EXPORT))
    call = stub(body, metadata=says)
    await call
    sent = list(await call.initial_metadata() or ())
    assert ("cache-control", "no-store") in [tuple(pair) for pair in sent]


async def test_nothing_to_export(desk: Desk) -> None:
    """004-85: an agent without records has an empty bundle, whatever others have."""
    await desk.made(agent="agent-b")
    made = await exported(desk)
    assert made == bundle(desk.project)


async def test_named_records_bring_what_they_link_to(desk: Desk) -> None:
    """004-87: the answer is closed under links of any revision, so that it can be imported."""
    whole = await furnished(desk)
    by_state = {each.state: each.record_id for each in heads(whole)[:3]}
    old = by_state[SUPERSEDED]
    (new,) = {each.superseded_by_record_id for each in heads(whole) if each.record_id == old}
    (restored,) = {*ids(heads(whole)[:3])} - {old, new}
    for named, brought in (
        ([new], {new}),
        ([old], {old, new}),
        ([restored], {restored, old, new}),
        ([whole.records[3].record.record_id, new, new], {whole.records[3].record.record_id, new}),
    ):
        some = await exported(desk, record_ids=named)
        assert {*ids(heads(some))} == brought
        assert [each for each in whole.records if each.record.record_id in brought] == [
            *some.records
        ]


@pytest.mark.parametrize("which", ["absent", "foreign", "session"])
async def test_a_named_record_that_cannot_be_exported(desk: Desk, which: str) -> None:
    """004-56: absent, of another agent, or a session context: the same answer."""
    mine = await desk.made("mine")
    foreign = await desk.made("foreign", agent="agent-b")
    session = await desk.made("session", kind=record_pb2.RECORD_KIND_SESSION_CONTEXT)
    named = {"absent": "absent", "foreign": foreign.record_id, "session": session.record_id}
    told = await desk.told(EXPORT, record_ids=[mine.record_id, named[which]])
    assert (told.code, told.reason, told.metadata) == ("NOT_FOUND", "RECORD_NOT_FOUND", {})


async def test_fields_of_an_export(desk: Desk) -> None:
    """004-48, 004-83: at most 25 ids, each of them an id."""
    told = await desk.told(EXPORT, record_ids=["a b", "", "x"])
    assert set(told.violations) == {"record_ids[0]", "record_ids[1]"}
    told = await desk.told(EXPORT, record_ids=[f"r{n}" for n in range(26)])
    assert set(told.violations) == {"record_ids"}


async def test_more_than_a_bundle_holds(desk: Desk) -> None:
    """004-83: 26 records are refused, and some of them named are not."""
    made = [await desk.made(f"key-{n}", content=f"{n}") for n in range(25)]
    assert len((await exported(desk)).records) == 25
    await desk.made("key-25")
    told = await desk.told(EXPORT)
    assert (told.code, told.reason) == ("INVALID_ARGUMENT", "BUNDLE_TOO_LARGE")
    assert told.metadata == {"limit": "records", "max": "25"}
    assert len((await exported(desk, record_ids=ids(made))).records) == 25


async def test_more_bytes_than_a_bundle_holds(desk: Desk) -> None:
    """004-83: measured in the canonical form: text that JSON has to escape takes more there."""
    for n in range(5):
        await desk.made(f"key-{n}", content="\x01" * 40_000)
    told = await desk.told(EXPORT)
    assert told.metadata == {"limit": "bytes", "max": "1048576"}
    assert told.reason == "BUNDLE_TOO_LARGE"


# -------------------- there and back


def with_imported(
    before: transfer_pb2.Bundle, after: transfer_pb2.Bundle, replied: Any, run: str = "run-a"
) -> None:
    """Require the same histories, and on top of each what the import replied."""
    assert ids(heads(after)) == ids(heads(before))
    assert ids(replied.records) == ids(heads(before))
    for old, new, told in zip(before.records, after.records, replied.records, strict=True):
        assert list(new.revisions)[:-1] == list(old.revisions)
        top, last = new.revisions[-1], old.revisions[-1]
        assert top.revision == last.revision + 1
        assert top.previous_revision_id == last.revision_id
        assert top.change_kind == record_pb2.CHANGE_KIND_IMPORTED
        assert (top.state, top.trust) == (record_pb2.RECORD_STATE_ACTIVE, record_pb2.TRUST_PENDING)
        assert (top.superseded_by_record_id, top.source_session_id, top.reason) == ("", "", "")
        assert top.source_run_id == run
        for name in ("type", "title", "content", "rationale", "importance", "tags", "kind"):
            assert getattr(top, name) == getattr(last, name)
        if last.HasField("facet"):
            assert top.facet.origin_tier == record_pb2.ORIGIN_TIER_EXTERNAL
            assert top.facet.metadata == last.facet.metadata
        assert (told.revision_id, told.content) == (top.revision_id, "")
        assert told.snippet == top.content[:SNIPPET]


async def test_there(desk: Desk) -> None:
    """004-82, 004-88, P6, C10, B.11.8: equal histories, and the imported revision on top."""
    before = await furnished(desk)
    replied = await desk.done(IMPORT, THERE | {"sub": "importer"}, bundle=before, run="run-import")
    assert not replied.replayed
    after = await exported(desk, THERE, run="run-b")
    with_imported(before, after, replied, "run-import")
    actors = {each.revisions[-1].actor_fingerprint for each in after.records}
    assert len(actors) == 1
    assert await exported(desk) == before
    await desk.stand.memory.check_whole()


async def test_and_on_from_there(desk: Desk) -> None:
    """004-88: what was imported can be exported and imported again, links of its past included."""
    before = await furnished(desk)
    await desk.done(IMPORT, THERE, bundle=before)
    second = await exported(desk, THERE)
    replied = await desk.done(IMPORT, {"tenant": "tenant-c"}, bundle=second)
    with_imported(second, await exported(desk, {"tenant": "tenant-c"}), replied)


async def test_canonical_file(desk: Desk) -> None:
    """004-82: the file says the same as the bundle, and imports."""
    from broker.server.bundle_json import read_json

    before = await furnished(desk)
    again = read_json(canonical_json(before))
    assert again == before
    await desk.done(IMPORT, THERE, bundle=again)


async def test_what_was_imported_is_a_record_like_others(desk: Desk) -> None:
    """004-54, 004-57, 004-67: found, approved, superseded, restored to its old text, edited."""
    before = await furnished(desk)
    await desk.done(IMPORT, THERE, bundle=before)
    one, other, _ = ids(heads(before)[:3])
    memory = before.records[3]
    await desk.done(APPROVE, THERE, record_id=one, expected_revision=_next(before, one))
    superseding = {"replacement_record_id": one, "expected_revision": _next(before, other)}
    await desk.done(SUPERSEDE, THERE, record_id=other, **superseding)
    named = {"record_id": memory.record.record_id, "expected_revision": memory.record.revision + 1}
    found = await desk.done(SEARCH, THERE, query="GREEN")
    assert ids(found.records) == [memory.record.record_id]
    back = (await desk.done(RESTORE, THERE, **named, source_revision=1)).record
    assert back.content == memory.revisions[0].content
    assert (await desk.done(EXPORT, THERE)).bundle.records[3].record == back


def _next(before: transfer_pb2.Bundle, record_id: str) -> int:
    (revision,) = {each.revision for each in heads(before) if each.record_id == record_id}
    return int(revision) + 1


# -------------------- replays


async def test_a_replay(desk: Desk) -> None:
    """004-62, 004-63, P6: the same reply, also when the records have moved on."""
    before = await furnished(desk)
    first = await desk.done(IMPORT, THERE, bundle=before)
    memory = before.records[3].record
    named = {"record_id": memory.record_id, "expected_revision": memory.revision + 1}
    await desk.done(UPDATE, THERE, **named, content="later")
    again = await desk.done(IMPORT, THERE, bundle=before)
    assert again.replayed
    assert [*again.records] == [*first.records]
    told = await desk.told(IMPORT, THERE, bundle=before, idempotency_key="second")
    assert told.reason == "BUNDLE_CONFLICT"


@pytest.mark.parametrize("change", ["content", "run", "method"])
async def test_a_used_key(desk: Desk, change: str) -> None:
    """004-62: another bundle, another run or another method under one key."""
    made = bundle(desk.project, history(desk.project, "m"))
    await desk.done(IMPORT, bundle=made, idempotency_key="key-1")
    if change == "method":
        told = await desk.told(CREATE, idempotency_key="key-1")
    else:
        other = bundle(desk.project, history(desk.project, "m", content="other"))
        more = {"run": "run-b"} if change == "run" else {"bundle": other}
        told = await desk.told(IMPORT, **({"bundle": made, "idempotency_key": "key-1"} | more))
    assert told.reason == "IDEMPOTENCY_KEY_REUSED"


async def test_a_replay_after_a_restart(stand: Stand, desk: Desk, tmp_path: Path) -> None:
    """004-63, 004-88: by another process over the same store."""
    before = await furnished(desk)
    first = await desk.done(IMPORT, THERE, bundle=before)
    with own_broker(stand, tmp_path, stand.database, memory=stand.memory) as other:
        async with other.channel() as channel:
            there = Desk(other, channel, desk.project)
            again = await there.done(IMPORT, THERE, bundle=before)
    assert again.replayed
    assert [*again.records] == [*first.records]


# -------------------- validate_only


async def test_only_checked(desk: Desk) -> None:
    """004-86: everything is checked, nothing is written, no key is used up, no replay is told."""
    before = await furnished(desk)
    kept = await stored(desk.stand, [desk.project])
    first = await desk.done(IMPORT, THERE, bundle=before, validate_only=True)
    assert await stored(desk.stand, [desk.project]) == kept
    assert not first.replayed
    assert ids(first.records) == ids(heads(before))
    told = await desk.told(IMPORT, bundle=before, validate_only=True)
    assert told.reason == "BUNDLE_CONFLICT"
    done = await desk.done(IMPORT, THERE, bundle=before)
    assert not done.replayed
    told = await desk.told(IMPORT, THERE, bundle=before, validate_only=True)
    assert told.reason == "BUNDLE_CONFLICT"
    link = bundle(desk.project, linked(desk.project, "a", "nowhere"))
    told = await desk.told(IMPORT, bundle=link, validate_only=True)
    assert told.reason == "REPLACEMENT_INVALID"
    assert (await desk.told(GET, THERE, record_id="a")).reason == "RECORD_NOT_FOUND"

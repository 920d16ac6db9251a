"""Callers who write at the same instant, through gRPC, to one broker process and one database."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from grpc import aio

from broker.api.v1 import record_pb2
from tests.fixtures.broker import Stand, records
from tests.fixtures.broker_log import quiet
from tests.fixtures.record_requests import (
    Refused,
    create,
    get,
    history,
    new_record,
    outcome,
    refused,
    update,
)

pytestmark = pytest.mark.memories("postgres", "redis", "valkey", "cosmos")

ROUNDS = 30
EDITORS = 8
EDITS = 6


@pytest.fixture(autouse=True)
def _quiet(stand: Stand) -> Iterator[None]:
    with quiet(stand.broker):
        yield


def without_replayed(reply: Any) -> bytes:
    """Return the bytes of a reply but for ``replayed``."""
    same = type(reply)()
    same.CopyFrom(reply)
    same.replayed = False
    encoded: bytes = same.SerializeToString(deterministic=True)
    return encoded


def assert_one_effect(replies: list[Any]) -> None:
    """Require equal replies, exactly one of which was not replayed."""
    assert [reply for reply in replies if isinstance(reply, Refused)] == []
    assert len({without_replayed(reply) for reply in replies}) == 1
    assert [reply.replayed for reply in replies].count(False) == 1


async def test_fifty_writers_of_one_head_have_one_winner(stand: Stand) -> None:
    """004-52, 004-55: 49 are told the revision that won, and leave no receipt (004-64)."""
    async with stand.channel() as channel:
        stub = records(channel)
        record = await new_record(stand, channel)
        metadata = stand.metadata()
        came = await asyncio.gather(
            *(
                outcome(stub.UpdateRecord(update(record, f"writer-{n}"), metadata=metadata))
                for n in range(50)
            )
        )
        winners = [reply for reply in came if not isinstance(reply, Refused)]
        losers = [reply for reply in came if isinstance(reply, Refused)]
        assert len(winners) == 1
        assert winners[0].record.revision == 2
        assert {(loser.code, loser.reason) for loser in losers} == {
            (grpc.StatusCode.ABORTED, "REVISION_STALE")
        }
        assert {loser.metadata["current_revision"] for loser in losers} == {"2"}
        head = await stub.GetRecord(get(record), metadata=metadata)
        assert head.record == winners[0].record
        assert len(await history(stand, channel, record)) == 2
        assert await stand.rows("memory.receipts", record.project_id) == 2
        # A loser's key is free: the same key may be used for what it was meant for.
        loser = next(n for n, reply in enumerate(came) if isinstance(reply, Refused))
        again = await stub.UpdateRecord(
            update(head.record, f"writer-{loser}"), metadata=stand.metadata()
        )
        assert (again.record.revision, again.replayed) == (3, False)
    await stand.memory.check_whole()


async def test_a_hundred_identical_creates_make_one_record(stand: Stand) -> None:
    """004-62, 004-63: one effect; all replies are equal but for ``replayed``."""
    project = stand.project()
    async with stand.channel() as channel:
        stub = records(channel)
        came = await asyncio.gather(
            *(
                outcome(stub.CreateRecord(create(project), metadata=stand.metadata()))
                for _ in range(100)
            )
        )
    assert_one_effect(came)
    for table in ("records", "revisions", "receipts"):
        assert await stand.rows(f"memory.{table}", project) == 1
    await stand.memory.check_whole()


async def test_a_hundred_identical_updates_make_one_revision(stand: Stand) -> None:
    """004-55, 004-62: the others are replays, none of them is stale."""
    async with stand.channel() as channel:
        stub = records(channel)
        record = await new_record(stand, channel)
        request = update(record, "update")
        came = await asyncio.gather(
            *(outcome(stub.UpdateRecord(request, metadata=stand.metadata())) for _ in range(100))
        )
        assert_one_effect(came)
        assert len(await history(stand, channel, record)) == 2
    await stand.memory.check_whole()


async def test_a_retry_that_races_its_first_attempt_is_never_stale(stand: Stand) -> None:
    """004-55, 004-62: sent at the same instant on two connections, one writes, one replays."""
    async with stand.channel() as first, stand.channel() as second:
        record = await new_record(stand, first)
        metadata = stand.metadata()
        for number in range(ROUNDS):
            request = update(record, f"round-{number}")
            came = await asyncio.gather(
                *(
                    outcome(records(channel).UpdateRecord(request, metadata=metadata))
                    for channel in (first, second)
                )
            )
            assert_one_effect(came)
            assert not isinstance(came[0], Refused)
            assert came[0].record.revision == record.revision + 1
            record = came[0].record
        found = await history(stand, first, record)
    assert len(found) == 1 + ROUNDS
    await stand.memory.check_whole()


async def test_a_retried_create_that_races_its_first_attempt_makes_one_record(
    stand: Stand,
) -> None:
    """004-62: many rounds in one project; every round leaves one record."""
    project = stand.project()
    async with stand.channel() as first, stand.channel() as second:
        for number in range(ROUNDS):
            request = create(project, f"round-{number}")
            came = await asyncio.gather(
                *(
                    outcome(records(channel).CreateRecord(request, metadata=stand.metadata()))
                    for channel in (first, second)
                )
            )
            assert_one_effect(came)
    assert await stand.rows("memory.records", project) == ROUNDS


@pytest.mark.parametrize("method", ["CreateRecord", "UpdateRecord"])
async def test_one_key_with_two_requests_at_once_serves_one(stand: Stand, method: str) -> None:
    """004-62: whichever comes second is refused, also where it has not seen the first's receipt."""
    project = stand.project()
    async with stand.channel() as first, stand.channel() as second:
        record = await new_record(stand, first, project)
        metadata = stand.metadata()
        for number in range(ROUNDS):
            key = f"round-{number}"
            requests: list[Any] = [
                create(project, key, content=content)
                if method == "CreateRecord"
                else update(record, key, content=content)
                for content in ("this", "that")
            ]
            came: list[Any] = await asyncio.gather(
                *(
                    outcome(getattr(records(channel), method)(request, metadata=metadata))
                    for channel, request in zip((first, second), requests, strict=True)
                )
            )
            served = [reply for reply in came if not isinstance(reply, Refused)]
            others = [reply for reply in came if isinstance(reply, Refused)]
            assert [other.reason for other in others] == ["IDEMPOTENCY_KEY_REUSED"]
            assert others[0].code is grpc.StatusCode.FAILED_PRECONDITION
            assert not served[0].replayed
            record = served[0].record
            # Later too, where the receipt is seen before anything is decided.
            lost = requests[came.index(others[0])]
            told = await refused(getattr(records(first), method)(lost, metadata=metadata))
            assert told.reason == "IDEMPOTENCY_KEY_REUSED"
    assert await stand.rows("memory.revisions", project) == 1 + ROUNDS
    await stand.memory.check_whole()


async def test_one_key_for_two_methods_serves_one(stand: Stand) -> None:
    """004-62: the scope of a key does not hold the method."""
    async with stand.channel() as channel:
        stub = records(channel)
        record = await new_record(stand, channel)
        calls: list[Any] = [
            stub.CreateRecord(create(record.project_id, "key"), metadata=stand.metadata()),
            stub.UpdateRecord(update(record, "key"), metadata=stand.metadata()),
        ]
        came = await asyncio.gather(*map(outcome, calls))
    assert [c.reason for c in came if isinstance(c, Refused)] == ["IDEMPOTENCY_KEY_REUSED"]


async def test_a_key_is_each_callers_own_also_at_the_same_instant(stand: Stand) -> None:
    """004-62: twenty actors use one key for one request; twenty records come of it."""
    project = stand.project()
    async with stand.channel() as channel:
        stub = records(channel)
        came = await asyncio.gather(
            *(
                stub.CreateRecord(
                    create(project), metadata=stand.metadata(stand.identity.token(f"actor-{n}"))
                )
                for n in range(20)
            )
        )
    assert {reply.replayed for reply in came} == {False}
    assert len({reply.record.record_id for reply in came}) == 20


async def test_fifty_first_uses_of_a_run_make_one_pin(stand: Stand) -> None:
    """004-28: insert if absent, then compare; nobody is refused, and reads pin as writes do."""
    project = stand.project()
    unknown = record_pb2.Record(project_id=project, record_id="no-record")
    async with stand.channel() as channel:
        stub = records(channel)
        metadata = stand.metadata()
        writes = [
            outcome(stub.CreateRecord(create(project, f"key-{n}"), metadata=metadata))
            for n in range(25)
        ]
        reads = [refused(stub.GetRecord(get(unknown), metadata=metadata)) for _ in range(25)]
        made, read = await asyncio.gather(asyncio.gather(*writes), asyncio.gather(*reads))
    assert [reply for reply in made if isinstance(reply, Refused)] == []
    assert {reply.reason for reply in read} == {"RECORD_NOT_FOUND"}
    assert await stand.rows("knowledge.pins", project) == 1
    assert await stand.rows("memory.records", project) == 25


async def test_editors_of_two_records_lose_no_edit(stand: Stand) -> None:
    """004-52, 004-55: each success is the revision it was told, no other edit is in the history."""
    project = stand.project()
    told: dict[tuple[str, int], str] = {}

    async def edit(channel: aio.Channel, name: str, ids: list[record_pb2.Record]) -> None:
        stub, metadata = records(channel), stand.metadata(stand.identity.token(name))
        for number in range(EDITS):
            record = ids[number % len(ids)]
            while True:
                head = (await stub.GetRecord(get(record), metadata=metadata)).record
                content = f"{name} {number} after {head.revision}"
                request = update(head, f"{name}-{number}", content=content)
                came = await outcome(stub.UpdateRecord(request, metadata=metadata))
                if not isinstance(came, Refused):
                    assert came.record.revision == head.revision + 1
                    told[(record.record_id, came.record.revision)] = content
                    break
                assert came.reason == "REVISION_STALE"
                assert int(came.metadata["current_revision"]) > head.revision

    async with stand.channel() as channel:
        both = [
            (await records(channel).CreateRecord(create(project, key), metadata=stand.metadata()))
            for key in ("left", "right")
        ]
        ids = [reply.record for reply in both]
        # Half of the editors begin with the one, half with the other record.
        await asyncio.gather(
            *(edit(channel, f"editor-{n}", ids[:: 1 - 2 * (n % 2)]) for n in range(EDITORS))
        )
        stored = {
            (record.record_id, revision.revision): revision.content
            for record in ids
            for revision in (await history(stand, channel, record))[1:]
        }
    assert stored == told
    assert len(told) == EDITORS * EDITS
    assert set(Counter(record_id for record_id, _ in told).values()) == {EDITORS * EDITS // 2}
    await stand.memory.check_whole()

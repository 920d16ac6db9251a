"""Replies that get lost after the write was sent: the retry gives the original, or writes once."""

import asyncio
import secrets
from collections import Counter
from typing import Any

import grpc
import pytest
from grpc import aio

from broker.api.v1 import record_pb2
from tests.fixtures.broker import Stand, records
from tests.fixtures.lossy import (
    NOTHING_WRITTEN,
    UNKNOWN,
    behind,
    cuts,
    far,
    in_front,
    link,
    settled,
    through,
    written,
)
from tests.fixtures.memory import Memory
from tests.fixtures.own_broker import own_broker
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_memory import PostgresMemory
from tests.fixtures.record_requests import Refused, create, new_record, outcome, refused, update
from tests.fixtures.tcp_proxy import TcpProxy

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["behind", "far", "in_front", "link"]


# -------------------- between the client and the broker


async def test_a_reply_lost_on_the_way_to_the_client_is_replayed(
    stand: Stand, in_front: TcpProxy
) -> None:
    """004-43, 004-63: create and update went through, the connection broke, the retry replays."""
    project = stand.project()
    mark = secrets.token_hex(8)
    async with through(in_front) as lossy, stand.channel() as channel:
        stub, metadata = records(channel), stand.metadata()
        request = create(project, content=f"one {mark}")
        in_front.lose_reply_to(mark.encode())
        lost = asyncio.create_task(refused(records(lossy).CreateRecord(request, metadata=metadata)))
        await written(stand, project, 1)
        in_front.cut()
        assert (await lost).code is grpc.StatusCode.UNAVAILABLE
        made = await stub.CreateRecord(request, metadata=metadata)
        assert made.replayed

        changed = update(made.record, "update", content=f"two {mark}")
        in_front.lose_reply_to(mark.encode())
        lost = asyncio.create_task(
            refused(records(lossy).UpdateRecord(changed, metadata=metadata, wait_for_ready=True))
        )
        await written(stand, project, 2)
        in_front.cut()
        assert (await lost).code is grpc.StatusCode.UNAVAILABLE
        # The record moves on; the retry still gives what the first attempt wrote.
        moved = await stub.UpdateRecord(update(made.record, "on", expected=2), metadata=metadata)
        again = await stub.UpdateRecord(changed, metadata=metadata)
    assert moved.record.revision == 3
    assert (again.replayed, again.record.revision) == (True, 2)
    assert again.record.content == f"two {mark}"
    assert await stand.rows("memory.revisions", project) == 3
    await stand.memory.check_whole()


@pytest.mark.parametrize("way", ["requests", "replies"])
async def test_a_connection_cut_after_any_byte_leaves_one_record(
    stand: Stand, in_front: TcpProxy, way: str
) -> None:
    """004-43, 004-62: wherever the client's connection breaks, the retry makes it one record."""
    project = stand.project()
    cuts = [0, 9, 24, 60, 200, 450, 700, 760, 820, 900, 1000, 1400]
    async with stand.channel() as channel:
        for number, count in enumerate(cuts):
            request = create(project, f"key-{number}")
            in_front.cut_after(**{way: count})
            async with through(in_front) as lossy:
                first = await outcome(
                    records(lossy).CreateRecord(request, metadata=stand.metadata())
                )
            in_front.heal()
            again = await records(channel).CreateRecord(request, metadata=stand.metadata())
            if isinstance(first, Refused):
                assert first.code is grpc.StatusCode.UNAVAILABLE
            else:
                assert again.record == first.record
                assert again.replayed
    assert await stand.rows("memory.records", project) == len(cuts)
    await stand.memory.check_whole()


# -------------------- between the broker and its memory


async def test_a_commit_whose_answer_is_lost_has_an_unknown_outcome(
    far: Stand, link: TcpProxy
) -> None:
    """004-43, 004-63: the caller is told so and to retry; the retry gives the original."""
    project = far.project()
    mark = secrets.token_hex(8)
    async with far.channel() as channel:
        record = await new_record(far, channel, project)
        request = update(record, "lost", content=mark)
        link.lose_reply_to(mark.encode())
        lost = asyncio.create_task(
            refused(records(channel).UpdateRecord(request, metadata=far.metadata()))
        )
        await written(far, project, 2)
        link.cut()
        told = await lost
        assert (told.code, told.reason) == (grpc.StatusCode.UNAVAILABLE, UNKNOWN)
        assert (told.metadata["outcome"], told.retry) == ("unknown", True)
        again = await records(channel).UpdateRecord(request, metadata=far.metadata())
    assert (again.replayed, again.record.revision, again.record.content) == (True, 2, mark)
    await far.memory.check_whole()


async def test_a_commit_that_nobody_answers_ends_with_the_callers_deadline(
    far: Stand, link: TcpProxy
) -> None:
    """004-43: the deadline's refusal says that the write may have happened; it has."""
    project = far.project()
    mark = secrets.token_hex(8)
    async with far.channel() as channel:
        record = await new_record(far, channel, project)
        request = update(record, "lost", content=mark)
        link.lose_reply_to(mark.encode())
        told = await refused(
            records(channel).UpdateRecord(request, metadata=far.metadata(), timeout=1)
        )
        assert told.code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert told.metadata.get("outcome", "unknown") == "unknown"  # none from the client itself
        link.heal()
        again = await records(channel).UpdateRecord(request, metadata=far.metadata())
    assert (again.replayed, again.record.revision) == (True, 2)


@pytest.mark.parametrize(("way", "step"), [("requests", 100), ("replies", 17)])
async def test_a_connection_to_the_store_cut_after_any_byte_is_told_truly(
    far: Stand, link: TcpProxy, way: str, step: int
) -> None:
    """004-62, 004-101: 'nothing was written' is never said of a write that was."""
    project = far.project()
    reasons: Counter[str] = Counter()
    async with far.channel() as channel:
        stub = records(channel)
        await new_record(far, channel, project)
        for number, count in cuts(reasons, step):
            request = create(project, f"key-{number}")
            link.cut_after(**{way: count})
            first = await outcome(stub.CreateRecord(request, metadata=far.metadata()))
            link.cut_after()
            again = await settled(lambda r=request: stub.CreateRecord(r, metadata=far.metadata()))
            if not isinstance(first, Refused):
                assert (again.replayed, again.record) == (True, first.record)
                continue
            assert first.code is grpc.StatusCode.UNAVAILABLE
            assert first.retry
            reasons[first.reason] += 1
            if first.reason in NOTHING_WRITTEN:
                assert not again.replayed
            else:
                assert first.reason == UNKNOWN
    assert reasons[UNKNOWN] > 0 < reasons["PROVIDER_UNAVAILABLE"]
    assert await far.rows("memory.records", project) == 1 + number + 1
    await far.memory.check_whole()


async def test_a_refusing_store_is_unavailable_and_comes_back(far: Stand, link: TcpProxy) -> None:
    """004-101: typed, retryable, nothing written; served again without a restart."""
    async with far.channel() as channel:
        record = await new_record(far, channel)
        link.refuse()
        told = await refused(
            records(channel).UpdateRecord(update(record, "key"), metadata=far.metadata())
        )
        assert told.reason == "PROVIDER_UNAVAILABLE"
        link.heal()
        made = await settled(
            lambda: records(channel).UpdateRecord(update(record, "key"), metadata=far.metadata())
        )
    assert (made.replayed, made.record.revision) == (False, 2)


# -------------------- connections that the store ends


async def test_idle_connections_that_were_ended_are_replaced(far: Stand, link: TcpProxy) -> None:
    """004-101: at most typed, retryable refusals, and then calls are served as before."""
    async with far.channel() as channel:
        record = await new_record(far, channel)
        assert await far.memory.connections() > 0
        for memory in (far.memory, PostgresMemory(far.database)):
            await memory.disconnect()
        # A run of its own looks for its pin: the broker's own store lost its connections too.
        other = record_pb2.Record(project_id=far.project())
        made = await settled(
            lambda: records(channel).CreateRecord(create(other.project_id), metadata=far.metadata())
        )
        changed = await settled(
            lambda: records(channel).UpdateRecord(update(record, "key"), metadata=far.metadata())
        )
    assert (made.replayed, changed.record.revision) == (False, 2)


async def test_connections_that_are_ended_during_calls_leave_whole_histories(
    far: Stand, link: TcpProxy
) -> None:
    """004-62, 004-101: a hundred writes under ten such blows; each is settled by retries."""
    project = far.project()
    started = asyncio.Semaphore(0)

    async def write(stub: Any, number: int) -> None:
        request = create(project, f"key-{number}", run=f"run-{number % 7}")
        started.release()
        first = await outcome(stub.CreateRecord(request, metadata=far.metadata()))
        again = await settled(lambda: stub.CreateRecord(request, metadata=far.metadata()))
        if not isinstance(first, Refused):
            assert (again.replayed, again.record) == (True, first.record)
        else:
            assert first.reason in {*NOTHING_WRITTEN, UNKNOWN}
            assert not (again.replayed and first.reason in NOTHING_WRITTEN)

    async with far.channel() as channel, asyncio.TaskGroup() as group:
        for blow in range(10):
            for number in range(10):
                group.create_task(write(records(channel), blow * 10 + number))
            for _ in range(10):
                await started.acquire()
            await asyncio.sleep(0.01 * (blow % 4))
            await far.memory.disconnect()
    assert await far.rows("memory.records", project) == 100
    await far.memory.check_whole()


# -------------------- a broker that is killed


async def test_a_broker_killed_in_the_middle_of_a_write_is_not_missed(
    stand: Stand, postgres_database: Database, own_memory: Memory, tmp_path: Any
) -> None:
    """004-43, 004-63: killed before its commit was sent, and after; then started again."""
    with own_broker(stand, tmp_path, postgres_database, memory=own_memory) as own:
        async with own.channel() as channel:
            record = await new_record(own, channel)
            stub = records(channel)
            sent = update(record, "sent")
            async with own_memory.held():
                calls = [outcome(stub.UpdateRecord(sent, metadata=own.metadata()))]
                waiting = asyncio.gather(*calls)
                await own_memory.blocked()
                own.broker.kill()
                (came,) = await waiting
                assert isinstance(came, Refused)
        await own_memory.idle()
        # Now a write that was on its way and had reached nothing yet.
        own.broker.start()
        async with own.channel() as channel:
            again = await records(channel).UpdateRecord(sent, metadata=own.metadata())
            assert (again.replayed, again.record.revision) == (own_memory.outlives_callers, 2)
            asked = await _killed_before_its_commit(own, channel, again.record)
        own.broker.start()
        async with own.channel() as channel:
            made = await records(channel).UpdateRecord(asked, metadata=own.metadata())
            assert (made.replayed, made.record.revision) == (False, 3)
        assert own.broker.stop() == 0
    await own_memory.check_whole()


async def _killed_before_its_commit(
    own: Stand, channel: aio.Channel, record: record_pb2.Record
) -> Any:
    """Kill the broker while it waits for check ② of a write; return the request."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    first = own.owner.counts[record.project_id]

    async def hang(question: Any, answer: Any, context: Any) -> bytes:
        if question.number == first + 2:
            loop.call_soon_threadsafe(asked.set)
            await asyncio.Event().wait()
        encoded: bytes = answer.SerializeToString()
        return encoded

    own.owner.scripts[record.project_id] = hang
    request = update(record, "asked")
    waiting = asyncio.create_task(
        outcome(records(channel).UpdateRecord(request, metadata=own.metadata()))
    )
    await asked.wait()
    own.broker.kill()
    assert isinstance(await waiting, Refused)
    del own.owner.scripts[record.project_id]
    return request

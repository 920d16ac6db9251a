"""Peers that do not answer: every call ends in time and says what is known of its outcome."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.fixtures.broker import Stand, records
from tests.fixtures.broker_log import quiet
from tests.fixtures.own_broker import Settings, own_broker, patient
from tests.fixtures.postgres import Database, PostgresBackend
from tests.fixtures.postgres_memory import PostgresMemory
from tests.fixtures.record_requests import create, get, new_record, refused, update

DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED
ROUNDING = 0.1  # gRPC rounds what it puts on the wire up


@pytest.fixture(scope="module")
def slow_owner(
    stand: Stand, postgres_backend: PostgresBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stand]:
    """A broker that gives its owner 10 s, and where it waits for locks a minute to them."""
    database: Database = asyncio.run(postgres_backend.database())
    memory = stand.memory.beside(database)

    def change(settings: Settings) -> None:
        patient(settings)
        if isinstance(memory, PostgresMemory):
            settings["providers"][0]["options"]["lock_ms"] = 60_000

    directory = tmp_path_factory.mktemp("slow")
    with own_broker(stand, directory, database, change, memory=memory) as own:
        yield own
    asyncio.run(postgres_backend.drop(database))


async def hang(*_: Any) -> bytes:
    """Never answer."""
    await asyncio.Event().wait()
    return b""


async def hang_at_the_second(question: Any, answer: Any, _: Any) -> bytes:
    """Answer check ① only."""
    if question.number > 1:
        await asyncio.Event().wait()
    encoded: bytes = answer.SerializeToString()
    return encoded


async def test_a_frozen_owner_is_unavailable_within_its_own_time(stand: Stand) -> None:
    """004-14: 2 s of the owner's end before the 5 s of a read and the 10 s of a write do."""
    frozen, silent, late = (stand.project() for _ in range(3))
    with quiet(stand.broker):
        async with stand.channel() as channel:
            stub, metadata = records(channel), stand.metadata()
            record = await new_record(stand, channel, late)
            stand.owner.questions[late].clear()
            commits = stand.provider_calls("commit")
            stand.owner.scripts |= {
                frozen: hang,
                silent: hang_at_the_second,
                late: hang_at_the_second,
            }
            came = await asyncio.gather(
                refused(stub.CreateRecord(create(frozen), metadata=metadata)),
                refused(stub.CreateRecord(create(silent), metadata=metadata)),
                refused(stub.GetRecord(get(record), metadata=metadata)),
            )
    assert {(each.code, each.reason, each.retry) for each in came} == {
        (grpc.StatusCode.UNAVAILABLE, "AUTHORITY_UNAVAILABLE", True)
    }
    assert stand.provider_calls("commit") == commits
    assert await stand.rows("memory.records", silent) == 0
    assert await stand.rows("knowledge.pins", frozen) == 0


@pytest.mark.memories("redis")  # that stand asks by single RPCs; a stream has no deadline
async def test_the_callers_deadline_is_handed_on_to_the_owner(stand: Stand) -> None:
    """Api 1: the owner sees no more time than the caller has left, at both checks."""
    project = stand.project()
    seen: list[float] = []

    async def look(_: Any, answer: Any, context: Any) -> bytes:
        seen.append(context.time_remaining())
        await asyncio.sleep(3 * ROUNDING)
        encoded: bytes = answer.SerializeToString()
        return encoded

    stand.owner.scripts[project] = look
    async with stand.channel() as channel:
        request = create(project)
        stub = records(channel)
        await stub.CreateRecord(request, metadata=stand.metadata(), timeout=1.8)
    assert len(seen) == 2
    assert all(left <= 1.8 + ROUNDING for left in seen)
    assert seen[1] < seen[0] - ROUNDING


async def test_the_callers_deadline_ends_the_call_and_the_question(stand: Stand) -> None:
    """Api 1: the call ends with the caller's time, and the owner is not asked any longer."""
    project = stand.project()
    left = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def wait(*_: Any) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            loop.call_soon_threadsafe(left.set)
        return b""

    stand.owner.scripts[project] = wait
    async with stand.channel() as channel:
        call = records(channel).CreateRecord(
            create(project), metadata=stand.metadata(), timeout=0.5
        )
        assert (await refused(call)).code is DEADLINE
        await left.wait()
    assert stand.owner.counts[project] == 1


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_calls_without_a_deadline_get_one_and_long_ones_are_cut(slow_owner: Stand) -> None:
    """Api 1: 5 s for a read, 10 s for a write; what was sent has an unknown outcome.

    The owner is told of them where it is asked by single RPCs: a stream has no deadline.
    """
    own = slow_owner
    frozen, hot = own.project(), own.project()
    seen: list[float | None] = []

    async def look_and_hang(_: Any, __: Any, context: Any) -> bytes:
        seen.append(context.time_remaining())
        return await hang()

    with quiet(own.broker):
        async with own.channel() as channel:
            stub, metadata = records(channel), own.metadata()
            record = await new_record(own, channel, hot)
            own.owner.scripts[frozen] = look_and_hang
            lost = get(record)
            lost.scope.project_id = frozen
            async with own.memory.held():
                reads = [
                    refused(stub.GetRecord(lost, metadata=metadata, timeout=timeout))
                    for timeout in (None, 100.0)
                ]
                write = refused(stub.UpdateRecord(update(record, "key"), metadata=metadata))
                reading, writing = await asyncio.gather(asyncio.gather(*reads), write)
            again = await stub.UpdateRecord(update(record, "key"), metadata=metadata)
    assert len(seen) == 2
    if isinstance(own.memory, PostgresMemory):  # that stand asks by streams
        assert seen == [None, None]
    else:
        assert all(left is not None and left <= 5.0 + ROUNDING for left in seen)
    told = {(each.code, each.reason, each.metadata["outcome"]) for each in reading}
    assert told == {(DEADLINE, "DEADLINE_EXCEEDED", "not_applied")}
    assert writing.reason in {"DEADLINE_EXCEEDED", "COMMIT_OUTCOME_UNKNOWN"}
    assert writing.metadata["outcome"] == "unknown"
    assert again.record.revision == 2
    await own.memory.check_whole()


async def test_a_lock_that_is_held_too_long_is_told_as_contention(
    stand: Stand, postgres_database: Database, tmp_path: Path
) -> None:
    """004-60: a lock held by somebody else: bounded waits, retryable, nothing written."""

    def brief(settings: Settings) -> None:
        settings["providers"][0]["options"]["lock_ms"] = 50

    with own_broker(stand, tmp_path, postgres_database, brief) as own:
        async with own.channel() as channel:
            stub, metadata = records(channel), own.metadata()
            record = await new_record(own, channel)
            async with own.memory.held():
                waiting = asyncio.create_task(
                    refused(stub.UpdateRecord(update(record, "key"), metadata=metadata))
                )
                await own.memory.blocked()
                told = await waiting
            assert (told.code, told.reason) == (grpc.StatusCode.ABORTED, "CONCURRENT_WRITE")
            assert told.retry
            made = await stub.UpdateRecord(update(record, "key"), metadata=metadata)
        assert (made.replayed, made.record.revision) == (False, 2)

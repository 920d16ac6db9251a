"""The store frozen, and killed: on a server of this file's own, with a broker of its own."""

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tests.fixtures.broker import Stand, records
from tests.fixtures.own_broker import NOT_SERVING, SERVING, health_becomes
from tests.fixtures.postgres import PostgresBackend
from tests.fixtures.record_requests import (
    Refused,
    create,
    get,
    new_record,
    outcome,
    refused,
    update,
)
from tests.fixtures.stoppable import Stoppable, stoppable

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")


@pytest.fixture(scope="module")
def store(
    stand: Stand, postgres_backend: PostgresBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stoppable]:
    """A broker of this file's own, on a server that nobody else uses."""
    with stoppable(stand, postgres_backend, tmp_path_factory.mktemp("own")) as running:
        yield running


async def settled(call: Any) -> Any:
    """Return what a call, or its retries with the same key, came to at last."""
    while isinstance(came := await outcome(call()), Refused):
        assert came.code is grpc.StatusCode.UNAVAILABLE, came
        await asyncio.sleep(0.05)
    return came


async def test_a_frozen_store_ends_calls_in_time_and_nothing_is_done_twice(
    store: Stoppable,
) -> None:
    """004-101: reads and first uses end with their deadlines, health flips, retries settle it."""
    own = store.stand
    async with own.channel() as channel:
        stub, metadata = records(channel), own.metadata()
        record = await new_record(own, channel)
        other = own.project()
        changes = [update(record, f"key-{n}") for n in range(4)]
        await health_becomes(channel, SERVING)
        with store.frozen():
            writes = [
                refused(stub.UpdateRecord(each, metadata=metadata, timeout=3)) for each in changes
            ]
            read = refused(stub.GetRecord(get(record), metadata=metadata))
            first = get(record)
            first.scope.project_id = other
            unpinned = refused(stub.GetRecord(first, metadata=metadata))
            unready = asyncio.create_task(health_becomes(channel, NOT_SERVING))
            told = await asyncio.gather(read, unpinned, *writes)
            await unready
        await health_becomes(channel, SERVING)
        assert told[0].reason in {"DEADLINE_EXCEEDED", "PROVIDER_UNAVAILABLE"}
        away = "STORAGE_UNAVAILABLE" if store.pins_too else "PROVIDER_UNAVAILABLE"
        assert told[1].reason in {"DEADLINE_EXCEEDED", away}
        assert {each.code for each in told[2:]} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        again = [await outcome(stub.UpdateRecord(each, metadata=metadata)) for each in changes]
        served = [reply for reply in again if not isinstance(reply, Refused)]
        assert len(served) == 1
        assert served[0].record.revision == 2
        stale = {reply.reason for reply in again if isinstance(reply, Refused)}
        assert stale == {"REVISION_STALE"}
        await stub.CreateRecord(create(other), metadata=metadata)
    await own.memory.check_whole()


async def test_a_killed_store_keeps_every_acknowledged_write(store: Stoppable) -> None:
    """004-43, 004-63: killed under forty writers; what was acknowledged is there, the rest once."""
    own = store.stand
    project = own.project()
    begun = asyncio.Semaphore(0)

    async def write(stub: Any, number: int) -> None:
        request = create(project, f"key-{number}")
        first = await outcome(stub.CreateRecord(request, metadata=own.metadata()))
        begun.release()
        again = await settled(lambda: stub.CreateRecord(request, metadata=own.metadata()))
        if isinstance(first, Refused):
            assert first.code is grpc.StatusCode.UNAVAILABLE
        else:
            assert (again.replayed, again.record) == (True, first.record)

    async with own.channel() as channel:
        await new_record(own, channel, project)
        async with asyncio.TaskGroup() as group:
            for number in range(40):
                group.create_task(write(records(channel), number))
            for _ in range(10):
                await begun.acquire()
            await store.restart()
        await health_becomes(channel, SERVING)
    assert await own.rows("memory.records", project) == 41
    await own.memory.check_whole()
    assert own.broker.stop() == 0

"""How workers and their supervisor end, on purpose and not: no acknowledged write is lost."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc import aio

from broker.api.v1 import record_service_pb2 as pb
from tests.fixtures.broker import Stand, records
from tests.fixtures.broker_log import complaints
from tests.fixtures.own_broker import gate
from tests.fixtures.postgres import Database
from tests.fixtures.record_requests import create, scope
from tests.fixtures.shipped_config import OPTIONS
from tests.integration.workers.crew import (
    NOT_SERVING,
    SERVING,
    Crew,
    crew_of,
    frozen,
    is_there,
    settings_for,
    until,
)

WRITERS = 8


class Writer:
    """Writes records one after the other, each under a key of its own, until it is stopped."""

    def __init__(self, crew: Crew, project: str, name: str) -> None:
        self._crew, self._project, self._name = crew, project, name
        self.acknowledged: dict[str, pb.CreateRecordResponse] = {}
        self.keys = 0
        self.stopping = False

    async def run(self) -> None:
        """Write through a connection of its own, with retries as the shipped config has them.

        A key is used until it is acknowledged, so there is one record for each.
        """
        options = (*OPTIONS, ("grpc.use_local_subchannel_pool", 1))
        async with aio.insecure_channel(self._crew.broker.address, options=options) as channel:
            while not self.stopping:
                key, self.keys = f"{self._name}-{self.keys}", self.keys + 1
                self.acknowledged[key] = await self._write(channel, key)

    async def _write(self, channel: aio.Channel, key: str) -> pb.CreateRecordResponse:
        while True:
            try:
                return await records(channel).CreateRecord(
                    create(self._project, key), metadata=self._crew.metadata()
                )
            except aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise


async def test_a_worker_killed_under_load_loses_no_acknowledged_write(crew: Crew) -> None:
    """The other worker goes on, a new one comes, and every key has exactly one record."""
    project = crew.project()
    victim, survivor = crew.serving().values()
    writers = [Writer(crew, project, f"writer-{number}") for number in range(WRITERS)]
    async with crew.channels() as channels:
        running = [asyncio.create_task(writer.run()) for writer in writers]
        await until(lambda: all(len(writer.acknowledged) > 3 for writer in writers))
        crew.kill(victim)
        (channel,) = channels[survivor]
        await records(channel).CreateRecord(create(project, "meanwhile"), metadata=crew.metadata())
        await until(lambda: len(crew.serving()) == 2 and victim not in crew.serving().values())
        done = [len(writer.acknowledged) for writer in writers]
        await until(
            lambda: all(len(w.acknowledged) > n + 3 for w, n in zip(writers, done, strict=True))
        )
        for writer in writers:
            writer.stopping = True
        await asyncio.gather(*running)
    async with crew.own_channel() as channel:
        for writer in writers:
            for key, reply in writer.acknowledged.items():
                found = await records(channel).GetRecord(
                    pb.GetRecordRequest(scope=scope(project), record_id=reply.record.record_id),
                    metadata=crew.metadata(),
                )
                assert found.record == reply.record, key
    keys = sum(writer.keys for writer in writers) + 1
    assert await crew.rows("memory.records", project) == keys
    assert victim in {line["child_pid"] for line in crew.lines("process_ended")}
    async with crew.channels() as channels:
        assert survivor in channels and victim not in channels and len(channels) == 2


@pytest.fixture
def own_crew(stand: Stand, postgres_database: Database, tmp_path: Path) -> Iterator[Crew]:
    """Two workers for one test, that wait long for the owner."""
    settings = settings_for(stand, postgres_database)
    settings["owner"]["timeout_seconds"] = 10.0
    with crew_of(stand, postgres_database, settings, tmp_path) as running:
        yield running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_both_workers_and_every_call_gets_its_reply(
    number: signal.Signals, own_crew: Crew
) -> None:
    """Health says so at once, to those who ask whether to send calls and to nobody else."""
    crew, project = own_crew, own_crew.project()
    pids = set(crew.serving().values())
    async with crew.channels(each=2) as channels:
        held = gate(crew, project, 1)
        calls = [
            asyncio.ensure_future(
                records(channel).CreateRecord(
                    create(project, f"{pid}-{index}"), metadata=crew.metadata()
                )
            )
            for pid, open_channels in channels.items()
            for index, channel in enumerate(open_channels)
        ]
        await held.holds(len(calls))
        assert crew.broker.process is not None
        crew.broker.process.send_signal(number)
        await crew.health_becomes({"": NOT_SERVING, "live": SERVING})
        assert not any(call.done() for call in calls)
        held.open = True
        replies = await asyncio.gather(*calls)
    assert [reply.replayed for reply in replies] == [False] * 4
    assert await asyncio.to_thread(crew.broker.process.wait) == 0
    assert await crew.rows("memory.records", project) == 4
    assert not any(is_there(pid) for pid in pids)
    assert {line["exit_code"] for line in crew.lines("process_ended")} == {0}
    assert complaints(crew.broker) == []


@pytest.mark.parametrize("are_frozen", [False, True])
async def test_workers_end_with_their_supervisor_and_still_give_their_replies(
    are_frozen: bool, own_crew: Crew
) -> None:
    """``kill -9`` of the supervisor is a drain: nobody is left behind, on the port either.

    Those that were stopped at that moment are thawed, and drain like the others.
    """
    crew, project = own_crew, own_crew.project()
    children = {line["child_pid"] for line in crew.lines("process_started")}
    async with crew.channels() as channels:
        held = gate(crew, project, 1)
        calls = [
            records(channel).CreateRecord(create(project, str(pid)), metadata=crew.metadata())
            for pid, (channel,) in channels.items()
        ]
        waiting = asyncio.gather(*calls)
        await held.holds(2)
        with frozen(children if are_frozen else ()):
            crew.broker.kill()
            await until(lambda: len(crew.lines("supervisor_gone")) == 2)
            held.open = True
            assert [reply.replayed for reply in await waiting] == [False, False]
            await until(lambda: not any(is_there(pid) for pid in children))
    assert await crew.rows("memory.records", project) == 2


async def test_a_worker_that_is_told_to_end_drains_and_is_replaced(own_crew: Crew) -> None:
    """An operator may renew one worker after the other."""
    (first, _) = own_crew.serving().values()
    os.kill(first, signal.SIGTERM)
    await until(lambda: len(own_crew.serving()) == 2 and first not in own_crew.serving().values())
    ended = {line["child_pid"]: line["exit_code"] for line in own_crew.lines("process_ended")}
    assert ended == {first: 0}


async def test_nobody_takes_the_metrics_port_of_a_worker_that_is_down(own_crew: Crew) -> None:
    """It would keep the next one down, and the broker where all are down at once."""
    victim = own_crew.serving()[0]
    own_crew.kill(victim)
    await until(lambda: bool(own_crew.lines("process_ended")))
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", own_crew.metrics_port)).close()
    await until(lambda: own_crew.serving().get(0, victim) != victim)
    assert own_crew.metric("process_start_time_seconds") > 0
    assert [line["exit_code"] for line in own_crew.lines("process_ended")] == [-signal.SIGKILL]


async def test_the_health_process_is_replaced_at_its_port(own_crew: Crew) -> None:
    (shown,) = {
        line["child_pid"] for line in own_crew.lines("process_started") if line["worker"] is None
    }
    os.kill(shown, signal.SIGKILL)
    await until(lambda: len(own_crew.lines("process_ended")) == 1)
    await own_crew.health_becomes({"": SERVING, "live": SERVING, "provider/native": SERVING})

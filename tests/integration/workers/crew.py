"""A broker of several workers for tests: who serves, and channels to each of them."""

import asyncio
import json
import os
import secrets
import signal
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from broker.api.v1 import record_service_pb2
from tests.fixtures.broker import BrokerProcess, Stand, free_port, records
from tests.fixtures.own_broker import Settings, write_settings
from tests.fixtures.own_broker import settings_for as own_settings
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_memory import PostgresMemory
from tests.fixtures.record_requests import scope

SERVING = "SERVING"
NOT_SERVING = "NOT_SERVING"
TRIES = 64
"""So many connections to two workers, and one of them gets none: once in 10**19 times."""


@dataclass
class Crew(Stand):
    """A broker whose processes are known. ``health_port`` is that of the health service alone."""

    health_port: int

    def lines(self, event: str = "") -> list[dict[str, Any]]:
        """Return the log lines, by default all."""
        complete, _, _ = self.broker.log().rpartition("\n")
        found = (json.loads(line) for line in complete.splitlines() if line[:1] == "{")
        return [line for line in found if event in ("", line["event"])]

    def serving(self) -> dict[int, int]:
        """Return the process ids of the workers that serve, by their numbers."""
        now: dict[int, int] = {}
        for line in self.lines():
            if line["event"] == "process_serves" and line["worker"] is not None:
                now[line["worker"]] = line["child_pid"]
            if line["event"] == "process_ended":
                now.pop(line["worker"], None)
        return now

    def served_by(self, request_id: str) -> set[int]:
        """Return the process ids that logged a call."""
        return {line["pid"] for line in self.lines("call") if line["request_id"] == request_id}

    def supervisor(self) -> int:
        """Return the process id of the supervisor."""
        assert self.broker.process is not None
        return self.broker.process.pid

    def kill(self, pid: int) -> None:
        """End a worker at once."""
        assert pid in self.serving().values()
        os.kill(pid, signal.SIGKILL)

    def own_channel(self) -> aio.Channel:
        """Open a channel with a connection of its own."""
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))
        return aio.insecure_channel(self.broker.address, options=options)

    @asynccontextmanager
    async def channels(self, each: int = 1) -> AsyncIterator[dict[int, list[aio.Channel]]]:
        """Open channels until every worker has so many; give them by process id."""
        found: defaultdict[int, list[aio.Channel]] = defaultdict(list)
        project = self.project()
        async with AsyncExitStack() as stack:
            for _ in range(TRIES):
                channel = await stack.enter_async_context(self.own_channel())
                found[await self._server_of(channel, project)].append(channel)
                pids = set(self.serving().values())
                if set(found) == pids and all(len(found[pid]) >= each for pid in pids):
                    break
            assert set(found) == set(self.serving().values())
            yield {pid: channels[:each] for pid, channels in found.items()}

    async def _server_of(self, channel: aio.Channel, project: str) -> int:
        """Return the process id behind a channel."""
        request_id = secrets.token_hex(8)
        call = records(channel).GetRecord(
            record_service_pb2.GetRecordRequest(scope=scope(project), record_id="none"),
            metadata=self.metadata(x_request_id=request_id),
        )
        assert await call.code() is grpc.StatusCode.NOT_FOUND
        await until(lambda: bool(self.served_by(request_id)))
        (pid,) = self.served_by(request_id)
        return pid

    async def health(self, name: str = "") -> str:
        """Return what the health port says."""
        async with aio.insecure_channel(f"127.0.0.1:{self.health_port}") as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            reply = await stub.Check(
                health_pb2.HealthCheckRequest(service=name), timeout=10, wait_for_ready=True
            )
            return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))

    async def health_becomes(self, wanted: dict[str, str]) -> None:
        """Wait until the health port says all this."""
        while {name: await self.health(name) for name in wanted} != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what other processes do; the test's own time limit bounds it."""
    while not condition():  # noqa: ASYNC110 - what is waited for knows nothing of events
        await asyncio.sleep(0.05)


def is_there(pid: int) -> bool:
    """Tell whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def frozen(pids: Collection[int]) -> Iterator[None]:
    """Stop processes as SIGSTOP does; none of them outlives the context."""
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in filter(is_there, pids):
            os.kill(pid, signal.SIGKILL)


def settings_for(stand: Stand, database: Database, **server: Any) -> Settings:
    """Return the stand's settings for a database, with two workers and a health port."""
    settings = own_settings(stand, database)
    settings["server"] |= {"workers": 2, "health_listen": "127.0.0.1:0", **server}
    return settings


@contextmanager
def crew_of(
    stand: Stand, database: Database, settings: Settings, directory: Path
) -> Iterator[Crew]:
    """Run a broker with these settings, and the owner and identity provider of the stand."""
    first = two_free_ports()
    settings["server"]["metrics_listen"] = f"127.0.0.1:{first}"
    broker = BrokerProcess(write_settings(directory, settings), directory / "broker.log")
    memory, peers = PostgresMemory(database), (stand.owner, stand.events, stand.identity)
    crew = Crew(broker, *peers, database, memory, first, 0)
    try:
        broker.start()
        crew.health_port = crew.lines("health")[-1]["port"]
        yield crew
    finally:
        assert broker.process is not None
        if broker.process.poll() is None:
            broker.stop()


def two_free_ports() -> int:
    """Return a port that nobody listens on, as on the one after it."""
    while True:
        first = free_port()
        if first + 1 == free_port_at(first + 1):
            return first


def free_port_at(port: int) -> int:
    """Return the port if nobody listens on it, else 0."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port

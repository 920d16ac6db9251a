"""The peers as cases: each library in one process, whose operations are measured in turn."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.bench.cases import Ground, Plan, Sample
from tests.bench.peers.environment import ROOT, peers_python
from tests.bench.seeds import READ
from tests.bench.stand import BrokerStand
from tests.fixtures.postgres import Database

POOL = 16
"""Connections of each library: as many as there are calls at once."""
LINE_BYTES_MAX = 64 * 1024 * 1024

LANGGRAPH = "LangGraph in process"
MEM0 = "mem0 in process"
OURS = "ours in process, owner asked once"
OURS_ASKING = "ours in process, owner asked twice a call"


class PeerProcess:
    """A process that ``loop`` leads. Several cases may share it: it starts once."""

    def __init__(self, module: str, python: Callable[[], str]) -> None:
        """Say what it runs; nothing is started."""
        self._module, self._python = f"{__package__}.{module}", python
        self._process: Process | None = None
        self._users = 0

    async def start(self, given: Callable[[], Awaitable[dict[str, Any]]]) -> bool:
        """Start it with what it is given, unless it was; say whether it was started."""
        self._users += 1
        if self._users > 1:
            return False
        command = (await asyncio.to_thread(self._python), "-m", self._module)
        self._process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdin=PIPE, stdout=PIPE, limit=LINE_BYTES_MAX
        )
        await self.ask(do="start", given=await given())
        return True

    async def stop(self) -> bool:
        """End it after its last user; say whether it was ended."""
        self._users -= 1
        process = self._process
        if self._users > 0 or process is None:
            return False
        self._process = None
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        return True

    async def ask(self, **order: object) -> dict[str, Any]:
        """Give an order, and return the answer.

        Raises:
            RuntimeError: The peer failed, or its process is gone.
        """
        assert self._process is not None
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._module} ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self._module}: {answer['error']}")
        return answer


class Library:
    """A library over a database of its own."""

    def __init__(self, ground: Ground, module: str) -> None:
        """Say what it is; nothing is started."""
        self._ground, self._module = ground, module
        self._database: Database | None = None
        self.process = PeerProcess(module, peers_python)

    async def start(self) -> None:
        """Start it, unless it was."""
        await self.process.start(self._given)

    async def stop(self) -> None:
        """End it after its last user."""
        if await self.process.stop() and self._database is not None:
            await self._ground.postgres.drop(self._database)

    async def _given(self) -> dict[str, Any]:
        directory = self._ground.directory / self._module
        await asyncio.to_thread(directory.mkdir)
        self._database = await self._ground.postgres.empty_database()
        dsn = self._database.admin_dsn
        return {"dsn": dsn, "directory": str(directory), "pool": POOL, "stock": READ}


class Services:
    """The services of the broker beside a broker that serves, over the same database."""

    def __init__(self, stand: BrokerStand, asks: str) -> None:
        """Say what it is; nothing is started."""
        self._stand, self._asks = stand, asks
        self.process = PeerProcess("ours", lambda: sys.executable)

    async def start(self) -> None:
        """Start it and the broker, unless they were."""
        await self._stand.start()
        await self.process.start(self._given)

    async def stop(self) -> None:
        """End it after its last user."""
        await self.process.stop()
        await self._stand.stop()

    async def _given(self) -> dict[str, Any]:
        return {
            "settings": str(self._stand.settings_file),
            "bearer": self._stand.bearer,
            "ids": await self._stand.seeded("read"),
            "asks": self._asks,
        }


@dataclass
class PeerCase:
    """One operation of a peer.

    Attributes:
        name: What it is called.
        peer: What has it; several cases may share it.
        operation: Its name there.
    """

    name: str
    peer: Library | Services
    operation: str

    async def start(self) -> None:
        """See ``Case``."""
        await self.peer.start()

    async def run(self, concurrency: int, calls: int) -> Sample:
        """See ``Case``. The process holds the load too: its CPU time is that of both."""
        answer = await self.peer.process.ask(
            do="run", operation=self.operation, concurrency=concurrency, calls=calls
        )
        return Sample(calls, answer["seconds"], tuple(answer["latencies"]), answer["cpu_s"])

    async def stop(self) -> None:
        """See ``Case``."""
        await self.peer.stop()


def peer_plans(ground: Ground, stand: BrokerStand) -> list[Plan]:
    """Return every case of a peer, with as many calls as take a second or two.

    Args:
        ground: What they stand on.
        stand: A broker that keeps memory in PostgreSQL.
    """
    langgraph, mem0 = Library(ground, "langgraph_store"), Library(ground, "mem0_memory")
    asked_once, asking = Services(stand, "once"), Services(stand, "owner")
    listed: list[tuple[str, Library | Services, Mapping[str, int]]] = [
        (LANGGRAPH, langgraph, {"put": 1_600, "get": 1_600, "search": 400}),
        (MEM0, mem0, {"add": 120, "get": 800, "search": 120}),
        (OURS, asked_once, {"create": 400, "get": 800, "search": 400}),
        (OURS_ASKING, asking, {"create": 200, "get": 400, "search": 200}),
    ]
    return [
        Plan(PeerCase(f"{name}: {operation}", peer, operation), calls)
        for name, peer, operations in listed
        for operation, calls in operations.items()
    ]

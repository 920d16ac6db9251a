"""The commit of one session note in Redis: by the adapter, and by redis-benchmark without one.

A note without tags, since its arguments hold no NUL: a command line can carry none.
"""

import asyncio
import shutil
from dataclasses import dataclass
from typing import Any

from providers.redis import commit
from providers.redis.keys import writes_key
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Committed
from tests.bench.cases import Ground, Sample, timed
from tests.bench.seeds import noted
from tests.bench.texts import TENANT
from tests.fixtures.redis_memory import RedisMemory, fresh_resource

RANDOM = "__rand_int__"
"""What redis-benchmark puts a number of twelve digits in place of, another one each time."""
KEYSPACE = 2_000_000_000
SECONDS = 60.0
_PERCENTILES = (("p50_latency_ms", 50), ("p95_latency_ms", 45), ("p99_latency_ms", 4))
_WRITTEN = 0.99
_SLOWEST = "max_latency_ms"


def program() -> str | None:
    """Return where redis-benchmark is; None: this machine has none."""
    return shutil.which("redis-benchmark")


@dataclass
class RedisCommitCase:
    """The adapter's commit, with all its checks, over TLS."""

    name: str
    ground: Ground
    _provider: RedisMemoryProvider | None = None

    async def start(self) -> None:
        """See ``Case``."""
        memory = RedisMemory(fresh_resource(self.ground.redis), {TENANT})
        self._provider = RedisMemoryProvider(memory.backend.options())

    async def run(self, concurrency: int, calls: int) -> Sample:
        """See ``Case``."""
        assert self._provider is not None
        provider, writes = self._provider, [noted("write") for _ in range(calls)]

        async def call(number: int) -> None:
            told = await provider.commit(writes[number], timeout=SECONDS)
            if told != Committed():
                raise RuntimeError(f"{self.name}: {told}")

        return await timed(calls, concurrency, call)

    async def stop(self) -> None:
        """See ``Case``."""
        if self._provider is not None:
            await self._provider.close()


@dataclass
class RedisBenchmarkCase:
    """The same script with such arguments, over TLS, sent by redis-benchmark."""

    name: str
    ground: Ground
    program: str
    _command: tuple[bytes, ...] = ()
    _counter: str = ""

    async def start(self) -> None:
        """See ``Case``."""
        memory = RedisMemory(fresh_resource(self.ground.redis), {TENANT})
        self._counter = writes_key(memory.backend.prefix)
        provider = RedisMemoryProvider(memory.backend.options())
        await provider.ready(timeout=SECONDS)  # loads the scripts
        calls: Any = provider._calls
        link = await calls.connections.lender.take()
        try:
            command = calls._command(link, commit.encode(noted("write", RANDOM)))
            self._command = tuple(
                each if isinstance(each, bytes) else str(each).encode() for each in command
            )
        finally:
            calls.connections.lender.give(link)
            await provider.close()

    async def run(self, concurrency: int, calls: int) -> Sample:
        """See ``Case``."""
        before = self._written()
        said = await self._said("-c", str(concurrency), "-n", str(calls), "--csv")
        # It takes every answer for a good one; a few meet a number that was drawn before.
        if self._written() - before < calls * _WRITTEN:
            raise RuntimeError("what redis-benchmark sends is refused")
        try:
            figures = _figures(said)
            return Sample(calls, calls / figures["rps"], _latencies(figures))
        except (IndexError, KeyError, ValueError) as error:
            raise RuntimeError(f"redis-benchmark failed:\n{said}") from error

    async def stop(self) -> None:
        """See ``Case``."""

    def _written(self) -> int:
        """Return how many write sets the store says that it took."""
        return int(self.ground.redis.execute("HGET", self._counter, "count") or 0)

    async def _said(self, *options: str) -> str:
        server = self.ground.redis
        who = ("--user", server.runtime_user, "-a", server.runtime_password)
        where = ("-h", "localhost", "-p", str(server.port), "--tls")
        trusted = ("--cacert", str(server.ca_file), "-r", str(KEYSPACE))
        process = await asyncio.create_subprocess_exec(
            *(self.program, *where, *who, *trusted, *options),
            *self._command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complained = await process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"redis-benchmark failed:\n{complained.decode()}")
        return said.decode()


def _figures(said: str) -> dict[str, float]:
    """Return the figures by their names. Before them stands the command, with quotes in it."""
    names, *_, told = said.strip().splitlines()
    wanted = [each.strip('"') for each in names.split(",")[1:]]
    values = [float(each.strip('"')) for each in told.split(",")[-len(wanted) :]]
    return dict(zip(wanted, values, strict=True))


def _latencies(figures: dict[str, float]) -> tuple[float, ...]:
    """Return a hundred latencies that have the percentiles which were told."""
    listed = [figures[name] for name, times in _PERCENTILES for _ in range(times)]
    return tuple(each / 1_000 for each in (*listed, figures[_SLOWEST]))

"""Redis and Valkey as backends: an emptied server for each law, reached through a proxy."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from broker.devstack.redis import Flavour, RedisServer
from providers.conformance.declaration import MARKER_HAZARDS, Declaration, Hazard, StoreFact
from providers.conformance.harness import Bench, Harness
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, ResourceIdentity
from providers.redis.keys import base_key, marker_key, project_digest
from providers.redis.negotiate import CAPABILITIES
from providers.redis.provider import RedisMemoryProvider
from tests.fixtures.process_clock import ProcessClock
from tests.fixtures.redis import RESOURCE, RedisBackend, fresh
from tests.fixtures.redis_proxy import RedisProxy

RECALL_RECORDS_MAX = 200
HAZARDS = MARKER_HAZARDS | {
    Hazard.AOF,
    Hazard.EVICTION,
    Hazard.REPLICA,
    Hazard.EXPIRING_KEY,
    Hazard.RIGHTS,
}


def declaration(flavour: Flavour) -> Declaration:
    """Return what both are said to do."""
    return Declaration(
        backend=str(flavour),
        capabilities=CAPABILITIES,
        absent_capabilities={},
        facts=frozenset(StoreFact),
        absent_facts={},
        hazards=HAZARDS,
        # Of a provider that is made so; in use it is fifty times as many.
        recall_records_max=RECALL_RECORDS_MAX,
    )


class RedisBench(Bench):
    """One resource, and a provider that reaches it through a proxy."""

    def __init__(self, flavour: Flavour, backend: RedisBackend, proxy: RedisProxy) -> None:
        self._flavour = flavour
        self._backend = backend
        self._server = backend.server
        self._proxy = proxy
        self._provider = self._made(endpoint=proxy.endpoint)
        self._others: list[RedisMemoryProvider] = []
        self._clock = ProcessClock("providers.redis")

    def _made(self, **given: object) -> RedisMemoryProvider:
        options = self._backend.options(**given)
        return RedisMemoryProvider(options, recall_records_max=RECALL_RECORDS_MAX)

    @property
    def declaration(self) -> Declaration:
        return declaration(self._flavour)

    @property
    def resource(self) -> ResourceIdentity:
        return RESOURCE

    @property
    def provider(self) -> IMemoryProvider:
        return self._provider

    async def another(self) -> IMemoryProvider:
        self._others.append(self._made())
        return self._others[-1]

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.kill)
        await asyncio.to_thread(self._server.start)

    async def freeze(self) -> None:
        self._server.freeze()

    async def thaw(self) -> None:
        self._server.thaw()

    async def lose_replies(self, *, to_writes: bool = False) -> None:
        self._proxy.lose_replies()

    async def keep_replies(self) -> None:
        self._proxy.keep_replies()

    def round_trips(self) -> int:
        return self._proxy.round_trips

    async def corrupt(self, project: ProjectKey, record_id: str) -> None:
        base = base_key(self._backend.prefix, project_digest(project))
        for name in ("heads", "revisions"):
            for field, value in self._server.execute("HGETALL", base + name).items():
                if field.rpartition(b"/")[2] == record_id.encode():
                    damaged = value.replace(b'"active"', b'"melted"')
                    assert damaged != value
                    self._server.execute("HSET", base + name, field, damaged)

    async def skew(self, seconds: float) -> None:
        self._clock.skew(seconds)

    async def spoil(self, hazard: Hazard) -> None:
        marker = marker_key(self._backend.prefix)
        run = self._server.execute
        spoiled: dict[Hazard, Callable[[], object]] = {
            Hazard.MARKER: lambda: run("DEL", marker),
            Hazard.IDENTITY: lambda: run("SET", marker, '["another-resource",1]'),
            Hazard.GENERATION: lambda: run("SET", marker, '["redis-resource",2]'),
            Hazard.AOF: lambda: run("CONFIG", "SET", "appendfsync", "everysec"),
            Hazard.EVICTION: lambda: run("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"),
            Hazard.REPLICA: lambda: run("REPLICAOF", "127.0.0.1", "1"),
            Hazard.EXPIRING_KEY: lambda: run("SET", "somebody-else's", "cache", "EX", "1000"),
            Hazard.RIGHTS: lambda: self._server.set_acl("~* +@all -config -script"),
        }
        spoiled[hazard]()

    async def close(self) -> None:
        """Undo faults and close the providers."""
        self._clock.right()
        self._server.thaw()
        for provider in (self._provider, *self._others):
            await provider.close()


class RedisHarness(Harness):
    """Opens benches on the server of this worker."""

    def __init__(self, flavour: Flavour, server: RedisServer) -> None:
        self._flavour = flavour
        self._server = server

    @property
    def declaration(self) -> Declaration:
        return declaration(self._flavour)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bench]:
        with fresh(self._server) as backend:
            proxy = backend.proxy()
            async with proxy.listening():
                bench = RedisBench(self._flavour, backend, proxy)
                try:
                    yield bench
                finally:
                    await bench.close()


def from_request(flavour: Flavour) -> Callable[[pytest.FixtureRequest], Harness]:
    """Return what makes the harness of a test; the server starts with the first."""
    return lambda request: RedisHarness(flavour, request.getfixturevalue(f"{flavour}_server"))

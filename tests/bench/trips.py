"""How often the broker speaks to its store and to its owner for each call: counted, not timed."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from broker.devstack.provider import Provider
from tests.bench.calls import MEASURED
from tests.bench.cases import Ground
from tests.bench.stand import BrokerStand
from tests.fixtures.postgres_proxy import PostgresProxy
from tests.fixtures.redis_memory import RedisMemory
from tests.fixtures.redis_proxy import RedisProxy
from tests.fixtures.service_thread import ServerThread

CALLS: Final = 10
UNHURRIED: Final = """
import broker.readiness
broker.readiness.LOOK_SECONDS = 3600.0
from broker.__main__ import main
main()
"""
"""A broker that looks at its readiness once an hour, so that all that is counted is of calls."""


@dataclass(frozen=True)
class Trips:
    """Round trips for each call: to the store that keeps memory, and to the owner."""

    store: float
    owner: float


class CountedStand(BrokerStand):
    """A broker with a proxy before its store, which counts."""

    command = (sys.executable, "-c", UNHURRIED)

    def __init__(self, ground: Ground, provider: Provider) -> None:
        """Say what it is; nothing is started."""
        super().__init__(ground, provider)
        self._proxy: PostgresProxy | RedisProxy | None = None
        self._thread: ServerThread | None = None

    async def options(self) -> dict[str, Any]:
        """See ``BrokerStand``: they lead through the proxy."""
        given = await super().options()
        if isinstance(self.memory, RedisMemory):
            redis = self.memory.backend.proxy()
            self._listen(redis)
            return {**given, "endpoint": redis.endpoint}
        parts = urlsplit(given["dsn"])
        postgres = PostgresProxy((parts.hostname or "", parts.port or 0))
        self._listen(postgres)
        return {**given, "dsn": postgres.dsn(given["dsn"])}

    async def stop(self) -> None:
        """See ``BrokerStand``."""
        await super().stop()
        if self._thread is not None:
            self._thread.stop()

    def _listen(self, proxy: PostgresProxy | RedisProxy) -> None:
        """Run the proxy in a thread of its own, as starts and ends of a broker are waited for."""

        @asynccontextmanager
        async def serving() -> AsyncIterator[int]:
            async with proxy.listening():
                yield proxy.port

        self._proxy, self._thread = proxy, ServerThread(serving)

    def count(self) -> Trips:
        """Return how many trips there were so far."""
        assert self._proxy is not None and self.neighbours is not None
        return Trips(self._proxy.round_trips, self.neighbours.asked())


async def counted(ground: Ground, provider: Provider) -> Mapping[str, Trips]:
    """Return the trips of each call that is measured, by its name.

    The first calls of a kind, which open connections and remember bindings, are not counted.
    """
    stand, found = CountedStand(ground, provider), {}
    try:
        await stand.start()
        for name, (rpc, make) in MEASURED.items():
            requests = await make(stand, 2 * CALLS)
            await stand.run(rpc, requests[:CALLS], 1)
            before = stand.count()
            await stand.run(rpc, requests[CALLS:], 1)
            after = stand.count()
            found[name] = Trips(
                (after.store - before.store) / CALLS, (after.owner - before.owner) / CALLS
            )
    finally:
        await stand.stop()
    return found

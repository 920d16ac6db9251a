"""How often the broker speaks to its store and to its owner for each call: counted, not timed."""

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from broker.devstack.provider import Provider
from tests.bench.calls import MEASURED
from tests.bench.cases import Ground
from tests.bench.stand import BrokerStand
from tests.fixtures.postgres_proxy import PostgresProxy, proxied
from tests.fixtures.redis_memory import RedisMemory
from tests.fixtures.redis_proxy import RedisProxy

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
        self._proxies = AsyncExitStack()
        self._proxy: PostgresProxy | RedisProxy | None = None

    async def options(self) -> dict[str, Any]:
        """See ``BrokerStand``: they lead through the proxy."""
        given = await super().options()
        if isinstance(self.memory, RedisMemory):
            proxy = self.memory.backend.proxy()
            await self._proxies.enter_async_context(proxy.listening())
            self._proxy = proxy
            return {**given, "endpoint": proxy.endpoint}
        before = await self._proxies.enter_async_context(proxied(given["dsn"]))
        self._proxy = before
        return {**given, "dsn": before.dsn(given["dsn"])}

    async def stop(self) -> None:
        """See ``BrokerStand``."""
        await super().stop()
        await self._proxies.aclose()

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

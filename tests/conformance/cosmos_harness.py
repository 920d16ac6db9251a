"""Cosmos DB as a backend: a container for each law, on the stand-in through a proxy.

Where another account is given, what only the stand-in can do is a gap.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from broker.devstack.cosmos import CosmosServer
from providers.conformance.declaration import (
    MARKER_HAZARDS,
    Declaration,
    Hazard,
    Sizes,
    StoreFact,
)
from providers.conformance.harness import Bench, Harness
from providers.cosmos import keys
from providers.cosmos.negotiate import CAPABILITIES
from providers.cosmos.provider import CosmosMemoryProvider
from providers.cosmos.rows import pack, unpack
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, ResourceIdentity
from tests.fixtures.cosmos_account import Account, is_given
from tests.fixtures.cosmos_proxy import BATCH, CosmosProxy, proxy_to
from tests.fixtures.cosmos_resource import (
    CONTAINER,
    POLICY,
    RESOURCE,
    CosmosResource,
    cosmos_resource,
)
from tests.fixtures.process_clock import ProcessClock

ONLY_THERE = frozenset(
    {StoreFact.DURABLE, StoreFact.FREEZABLE, StoreFact.LOSES_REPLIES, StoreFact.COUNTED}
)
FOREIGN = ONLY_THERE if is_given() else frozenset()

DECLARATION = Declaration(
    backend="cosmos (given)" if FOREIGN else "cosmos (stand-in)",
    capabilities=CAPABILITIES,
    absent_capabilities={},
    facts=frozenset(StoreFact) - FOREIGN,
    absent_facts=dict.fromkeys(FOREIGN, "the given account is not ours to stop or to read along"),
    hazards=MARKER_HAZARDS | {Hazard.PARTITION_KEY, Hazard.TTL, Hazard.INDEX, Hazard.NAME},
    # A batch has at most 100 operations and 2 MB.
    sizes=Sizes(heads=49, keys=96, text_bytes=768 * 1024, record_bytes=256 * 1024),
    trips={"commit": 2, "export": 2, "deliver": 2},
    # Of a provider that is made so; in use it is ten times as many.
    recall_records_max=200,
)
COUNTED = ("query", "batch", "create", "replace", "delete", "upsert")
"""Not the point reads: they are of the marker, at most one in 30 seconds outside of tests."""


def _provider(resource: CosmosResource, **options: object) -> CosmosMemoryProvider:
    most = DECLARATION.recall_records_max or 0
    return CosmosMemoryProvider(resource.options(**options), recall_records_max=most)


class CosmosBench(Bench):
    """One container, and a provider that reaches it, on the stand-in through a proxy."""

    def __init__(self, resource: CosmosResource, proxy: CosmosProxy | None = None) -> None:
        self._resource = resource
        self._proxy = proxy
        way = {} if proxy is None else {"endpoint": f"https://127.0.0.1:{proxy.port}"}
        self._provider = _provider(resource, **way)
        self._others: list[CosmosMemoryProvider] = []
        # Not the SDK: who dates requests wrongly is let in by no account.
        self._clock = ProcessClock("providers.cosmos", libraries=False)

    @property
    def declaration(self) -> Declaration:
        return DECLARATION

    @property
    def resource(self) -> ResourceIdentity:
        return RESOURCE

    @property
    def provider(self) -> IMemoryProvider:
        return self._provider

    async def another(self) -> IMemoryProvider:
        self._others.append(_provider(self._resource))
        return self._others[-1]

    async def restart(self) -> None:
        await asyncio.to_thread(self._resource.server.kill)
        await asyncio.to_thread(self._resource.server.start)

    async def freeze(self) -> None:
        self._resource.server.freeze()

    async def thaw(self) -> None:
        self._resource.server.thaw()

    async def lose_replies(self, *, to_writes: bool = False) -> None:
        assert self._proxy is not None
        if to_writes:
            self._proxy.lose_replies_from(BATCH)
        else:
            self._proxy.lose_replies()

    async def keep_replies(self) -> None:
        assert self._proxy is not None
        self._proxy.keep_replies()

    def round_trips(self) -> int:
        counts = self._resource.server.control.counts()
        return sum(counts.get(kind, 0) for kind in COUNTED)

    async def corrupt(self, project: ProjectKey, record_id: str) -> None:
        partition = keys.partition_of(project)
        container = self._resource.container
        head = await container.read_item(keys.head_id(record_id), partition)
        brief = ["melted" if each == "active" else each for each in unpack(head["brief"])]
        assert brief != unpack(head["brief"])
        await container.replace_item(head["id"], {**head, "brief": pack(brief)})

    async def skew(self, seconds: float) -> None:
        self._clock.skew(seconds)

    async def spoil(self, hazard: Hazard) -> None:
        resource = self._resource
        other = ResourceIdentity("another-resource", RESOURCE.generation)
        later = ResourceIdentity(RESOURCE.resource_id, RESOURCE.generation + 1)
        spoiled: dict[Hazard, Callable[[], Awaitable[Any]]] = {
            Hazard.MARKER: lambda: resource.container.delete_item(
                keys.MARKER_ID, keys.MARKER_PARTITION
            ),
            Hazard.IDENTITY: lambda: resource.mark(other),
            Hazard.GENERATION: lambda: resource.mark(later),
            Hazard.PARTITION_KEY: self._repartition,
            Hazard.TTL: lambda: resource.change(default_ttl=3_600),
            Hazard.INDEX: lambda: resource.change(
                indexing_policy=POLICY | {"compositeIndexes": POLICY["compositeIndexes"][1:]}
            ),
            Hazard.NAME: lambda: resource.database.delete_container(CONTAINER),
        }
        await spoiled[hazard]()

    async def _repartition(self) -> None:
        """Make the container anew with another key; whoever opens it next finds that one."""
        await self._resource.make_anew("/tenantId")
        await self._provider.close()
        self._provider = _provider(self._resource)

    async def close(self) -> None:
        """Undo faults and close the providers."""
        self._clock.right()
        if not FOREIGN:
            self._resource.server.thaw()
        for provider in (self._provider, *self._others):
            await provider.close()


class CosmosHarness(Harness):
    """Opens benches on the stand-in of this worker, or in the given account."""

    def __init__(self, account: Account) -> None:
        self._account = account

    @property
    def declaration(self) -> Declaration:
        return DECLARATION

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bench]:
        async with AsyncExitStack() as stack:
            resource = await stack.enter_async_context(cosmos_resource(self._account))
            proxy = None
            if isinstance(self._account, CosmosServer):
                proxy = proxy_to(self._account)
                await stack.enter_async_context(proxy.listening())
            bench = CosmosBench(resource, proxy)
            stack.push_async_callback(bench.close)
            yield bench


def from_request(request: pytest.FixtureRequest) -> Harness:
    """Make the harness of a test; the stand-in, or the emulator, starts with the first."""
    return CosmosHarness(request.getfixturevalue("given_account" if FOREIGN else "cosmos"))

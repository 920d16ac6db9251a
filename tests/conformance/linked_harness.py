"""The reference behind a link that can freeze, lose replies, crash and count.

It is no backend: it lets the laws that need such facts be tried, and be seen to fail, without a
server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from providers.conformance.declaration import Declaration, StoreFact
from providers.conformance.harness import Bench, Harness
from providers.conformance.reference import ReferenceMemoryProvider, ReferenceStore
from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectFound,
    EffectRequest,
    LeaseRequest,
    PendingEffects,
    PendingEffectsRequest,
)
from providers.errors import (
    OutcomeUnknownError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound
from providers.interface import IMemoryProvider
from providers.model import WriteSet
from providers.recall import (
    IndexRequest,
    Recalled,
    RecallRequest,
    TaggedRequest,
    Unindexed,
    UnindexedRequest,
)
from providers.requests import (
    Candidates,
    CandidatesRequest,
    CommitOutcome,
    Loaded,
    LoadRequest,
    Negotiated,
    RevisionsPage,
    RevisionsRequest,
    SearchPage,
    SearchRequest,
)
from providers.rules import check_code
from tests.conformance import reference_harness
from tests.conformance.reference_harness import RESOURCE, ReferenceBench

T = TypeVar("T")
DOWN_SECONDS = 0.1

DECLARATION = replace(
    reference_harness.DECLARATION,
    backend="linked",
    facts=frozenset(StoreFact),
    absent_facts={},
    recall_records_max=200,
)


def _thawed() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class Server:
    """The far end, which all links share."""

    store: ReferenceStore
    thawed: asyncio.Event = field(default_factory=_thawed)
    up: bool = True
    crashes: int = 0

    async def restart(self) -> None:
        self.up = False
        self.crashes += 1
        await asyncio.sleep(DOWN_SECONDS)
        self.up = True


@dataclass
class Link:
    """The way of one provider to the server."""

    server: Server
    loses_replies: bool = False
    trips: int = 0

    async def carry(self, call: Callable[[], Awaitable[T]], *, timeout: float) -> T:
        """Send a request and bring its reply, if there is one to bring."""
        try:
            async with asyncio.timeout(timeout):
                await self.server.thawed.wait()
                return await self.exchange(call)
        except TimeoutError as error:
            raise ProviderTimeoutError("no reply in time") from error

    async def write(self, call: Callable[[], Awaitable[T]], *, timeout: float) -> T:
        """Carry a write: once it was sent, no reply means that nobody knows."""
        sent = self.trips
        try:
            return await self.carry(call, timeout=timeout)
        except ProviderTimeoutError as error:
            if self.trips == sent:
                raise
            raise OutcomeUnknownError("sent, and no reply in time") from error

    async def exchange(self, call: Callable[[], Awaitable[T]]) -> T:
        if not self.server.up:
            raise ProviderUnavailableError("the server is down")
        self.trips += 1
        crashes = self.server.crashes
        await asyncio.sleep(0)
        reply = await call()
        await asyncio.sleep(0)
        if self.loses_replies:
            await asyncio.Event().wait()
        if self.server.crashes != crashes:
            raise OutcomeUnknownError("the connection broke")
        return reply


class LinkedProvider(ReferenceMemoryProvider):
    """The reference, every call of which goes over a link."""

    recall_records_max = DECLARATION.recall_records_max

    def __init__(self, link: Link) -> None:
        super().__init__(link.server.store, RESOURCE)
        self._link = link

    async def negotiate(self, *, timeout: float) -> Negotiated:
        self._check_open()
        call = super().negotiate
        return await self._link.carry(lambda: call(timeout=timeout), timeout=timeout)

    async def ready(self, *, timeout: float) -> None:
        self._check_open()
        call = super().ready
        await self._link.carry(lambda: call(timeout=timeout), timeout=timeout)

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        self._check_open()
        call = super().load
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        self._check_open()
        call = super().revisions
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        self._check_open()
        call = super().search
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        self._check_open()
        call = super().candidates
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        self._check_open()
        call = super().recall
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        self._check_open()
        call = super().tagged
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        self._check_open()
        call = super().unindexed
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def index(self, request: IndexRequest, *, timeout: float) -> int:
        self._check_open()
        self._check_entries(request)
        call = super().index
        return await self._link.write(lambda: call(request, timeout=timeout), timeout=timeout)

    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        self._check_open()
        call = super().export
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        self._check_open()
        call = super().tombstones
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def effect(self, request: EffectRequest, *, timeout: float) -> EffectFound:
        self._check_open()
        call = super().effect
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        self._check_open()
        call = super().pending_effects
        return await self._link.carry(lambda: call(request, timeout=timeout), timeout=timeout)

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        self._check_open()
        self._check_rules(write_set)
        call = super().commit
        return await self._link.write(lambda: call(write_set, timeout=timeout), timeout=timeout)

    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        self._check_open()
        call = super().acquire
        return await self._link.write(lambda: call(request, timeout=timeout), timeout=timeout)

    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        self._check_open()
        call = partial(super().acknowledge, acknowledgement=acknowledgement)
        return await self._link.write(lambda: call(request, timeout=timeout), timeout=timeout)

    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        self._check_open()
        check_code(code)
        call = partial(super().release, code=code)
        return await self._link.write(lambda: call(request, timeout=timeout), timeout=timeout)


class LinkedBench(ReferenceBench):
    """A server of its own for each law."""

    def __init__(self, make: Callable[[Link], ReferenceMemoryProvider]) -> None:
        super().__init__()
        self.server = Server(self.store)
        self.link = Link(self.server)
        self._open = make
        self._provider = make(self.link)

    @property
    def declaration(self) -> Declaration:
        return DECLARATION

    async def another(self) -> IMemoryProvider:
        return self._open(Link(self.server))

    async def restart(self) -> None:
        await self.server.restart()

    async def freeze(self) -> None:
        self.server.thawed.clear()

    async def thaw(self) -> None:
        self.server.thawed.set()

    async def lose_replies(self, *, to_writes: bool = False) -> None:
        self.link.loses_replies = True

    async def keep_replies(self) -> None:
        self.link.loses_replies = False

    def round_trips(self) -> int:
        return self.link.trips


class LinkedHarness(Harness):
    """Opens benches with a link."""

    def __init__(self, make: Callable[[Link], ReferenceMemoryProvider] = LinkedProvider) -> None:
        self._make = make

    @property
    def declaration(self) -> Declaration:
        return DECLARATION

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bench]:
        bench = LinkedBench(self._make)
        try:
            yield bench
        finally:
            bench.clock.right()

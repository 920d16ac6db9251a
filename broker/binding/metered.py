"""Counts and times what a provider is asked."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

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

T = TypeVar("T")

Observe = Callable[[str, str, float], None]
"""Takes an operation, ``ok`` or the name of an error type, and seconds."""


class MeteredProvider(IMemoryProvider):
    """A provider that tells of each round trip how it ended and how long it took."""

    def __init__(self, provider: IMemoryProvider, observe: Observe) -> None:
        """Take the provider and who is told."""
        self._provider = provider
        self._observe = observe
        self.commits_unseen = provider.commits_unseen

    async def negotiate(self, *, timeout: float) -> Negotiated:
        """See ``IMemoryProvider.negotiate``."""
        return await self._told("negotiate", self._provider.negotiate(timeout=timeout))

    async def ready(self, *, timeout: float) -> None:
        """See ``IMemoryProvider.ready``."""
        await self._told("ready", self._provider.ready(timeout=timeout))

    async def close(self) -> None:
        """See ``IMemoryProvider.close``."""
        await self._provider.close()

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        """See ``IMemoryProvider.load``."""
        return await self._told("load", self._provider.load(request, timeout=timeout))

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        """See ``IMemoryProvider.commit``."""
        return await self._told("commit", self._provider.commit(write_set, timeout=timeout))

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        """See ``IMemoryProvider.revisions``."""
        return await self._told("revisions", self._provider.revisions(request, timeout=timeout))

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.search``."""
        return await self._told("search", self._provider.search(request, timeout=timeout))

    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        """See ``IMemoryProvider.candidates``."""
        return await self._told("candidates", self._provider.candidates(request, timeout=timeout))

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        """See ``IMemoryProvider.recall``."""
        return await self._told("recall", self._provider.recall(request, timeout=timeout))

    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.tagged``."""
        return await self._told("tagged", self._provider.tagged(request, timeout=timeout))

    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        """See ``IMemoryProvider.unindexed``."""
        return await self._told("unindexed", self._provider.unindexed(request, timeout=timeout))

    async def index(self, request: IndexRequest, *, timeout: float) -> int:
        """See ``IMemoryProvider.index``."""
        return await self._told("index", self._provider.index(request, timeout=timeout))

    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        """See ``IMemoryProvider.export``."""
        return await self._told("export", self._provider.export(request, timeout=timeout))

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        """See ``IMemoryProvider.tombstones``."""
        return await self._told("tombstones", self._provider.tombstones(request, timeout=timeout))

    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        """See ``IMemoryProvider.acquire``."""
        return await self._told("acquire", self._provider.acquire(request, timeout=timeout))

    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        """See ``IMemoryProvider.acknowledge``."""
        work = self._provider.acknowledge(request, acknowledgement=acknowledgement, timeout=timeout)
        return await self._told("acknowledge", work)

    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        """See ``IMemoryProvider.release``."""
        work = self._provider.release(request, code=code, timeout=timeout)
        return await self._told("release", work)

    async def effect(self, request: EffectRequest, *, timeout: float) -> EffectFound:
        """See ``IMemoryProvider.effect``."""
        return await self._told("effect", self._provider.effect(request, timeout=timeout))

    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        """See ``IMemoryProvider.pending_effects``."""
        work = self._provider.pending_effects(request, timeout=timeout)
        return await self._told("pending_effects", work)

    async def _told(self, operation: str, work: Awaitable[T]) -> T:
        started = time.perf_counter()
        outcome = "cancelled"
        try:
            result = await work
            outcome = "ok"
        except Exception as error:
            outcome = type(error).__name__
            raise
        finally:
            self._observe(operation, outcome, time.perf_counter() - started)
        return result

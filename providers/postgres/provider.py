"""``postgres.native-memory`` behind the contract."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
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
    UnscopedEffectFound,
    UnscopedEffectRequest,
    UnscopedEffects,
)
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound
from providers.interface import IMemoryProvider
from providers.model import ResourceIdentity, WriteSet
from providers.postgres import commit as writer
from providers.postgres import delivery, errors, export, reader, recall
from providers.postgres.candidates import candidates
from providers.postgres.connections import Connection, Connections
from providers.postgres.gathering import HeadReader, is_one_head
from providers.postgres.negotiate import negotiate
from providers.postgres.options import PostgresOptions
from providers.postgres.search import search
from providers.postgres.statements import warm
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


class PostgresMemoryProvider(IMemoryProvider, UnscopedEffects):
    """Records in schema ``memory`` of one database. The first call opens the pool."""

    commits_unseen = True

    def __init__(self, options: PostgresOptions) -> None:
        """Keep the options; nothing is opened."""
        self._options = options
        self._resource = ResourceIdentity(options.resource_id, options.generation)
        self._connections = Connections(options, warm)
        self._heads = HeadReader(self._connections, self._resource)
        self._deliveries = delivery.Writer(self._connections, self._resource)

    async def negotiate(self, *, timeout: float) -> Negotiated:
        """See ``IMemoryProvider.negotiate``. Looks through a connection of its own."""
        self._connections.check_open()
        try:
            async with asyncio.timeout(timeout):
                async with self._connections.fresh() as connection:
                    return await negotiate(connection, self._options)
        except errors.DRIVER as error:
            raise errors.translate(error) from error

    async def ready(self, *, timeout: float) -> None:
        """See ``IMemoryProvider.ready``."""
        await self._read(partial(reader.ready, resource=self._resource), timeout=timeout)

    async def close(self) -> None:
        """See ``IMemoryProvider.close``."""
        await self._connections.close()

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        """See ``IMemoryProvider.load``."""
        if is_one_head(request):
            return await _told(self._heads.load(request, timeout=timeout))
        work = partial(reader.load, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        """See ``IMemoryProvider.commit``."""
        return await writer.commit(self._connections, self._resource, write_set, timeout)

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        """See ``IMemoryProvider.revisions``."""
        work = partial(reader.revisions, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.search``."""
        work = partial(search, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        """See ``IMemoryProvider.candidates``."""
        work = partial(candidates, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        """See ``IMemoryProvider.recall``."""
        work = partial(recall.recall, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.tagged``."""
        work = partial(recall.tagged, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        """See ``IMemoryProvider.unindexed``."""
        work = partial(recall.unindexed, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def index(self, request: IndexRequest, *, timeout: float) -> int:
        """See ``IMemoryProvider.index``."""
        return await recall.index(self._connections, self._resource, request, timeout)

    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        """See ``IMemoryProvider.export``."""
        work = partial(export.export, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        """See ``IMemoryProvider.tombstones``."""
        work = partial(export.tombstones, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        """See ``IMemoryProvider.acquire``."""
        return await self._deliveries.acquire(request, timeout=timeout)

    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        """See ``IMemoryProvider.acknowledge``."""
        return await self._deliveries.acknowledge(
            request, acknowledgement=acknowledgement, timeout=timeout
        )

    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        """See ``IMemoryProvider.release``."""
        return await self._deliveries.release(request, code=code, timeout=timeout)

    async def effect(self, request: EffectRequest, *, timeout: float) -> EffectFound:
        """See ``IMemoryProvider.effect``."""
        work = partial(delivery.effect, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        """See ``IMemoryProvider.pending_effects``."""
        work = partial(delivery.pending_effects, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def unscoped_effect(
        self, request: UnscopedEffectRequest, *, timeout: float
    ) -> UnscopedEffectFound:
        """See ``UnscopedEffects``."""
        work = partial(delivery.unscoped_effect, resource=self._resource, request=request)
        return await self._read(work, timeout=timeout)

    async def _read(self, work: Callable[[Connection], Awaitable[T]], *, timeout: float) -> T:
        return await _told(self._connections.run(work, timeout=timeout))


async def _told(answer: Awaitable[T]) -> T:
    """Return what was read; what went wrong is told in the contract's words."""
    try:
        return await answer
    except errors.DRIVER as error:
        raise errors.translate(error) from error

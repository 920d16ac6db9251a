"""``cosmos.memory`` behind the contract."""

from providers.cosmos import commit as writer
from providers.cosmos import delivery, export, index, reader, recall
from providers.cosmos.calls import Calls
from providers.cosmos.candidates import candidates
from providers.cosmos.history import revisions
from providers.cosmos.negotiate import RECALL_RECORDS_MAX, negotiate
from providers.cosmos.options import CosmosOptions
from providers.cosmos.search import search
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


class CosmosMemoryProvider(IMemoryProvider):
    """Records in one container of a Cosmos DB account. The first call connects."""

    def __init__(
        self, options: CosmosOptions, *, recall_records_max: int = RECALL_RECORDS_MAX
    ) -> None:
        """Keep the options; nothing is opened.

        Args:
            options: Where the resource is.
            recall_records_max: How many memories of an agent recall looks through (Q-8).
        """
        self._options_revision = options.options_revision
        self._recall_records_max = recall_records_max
        self._calls = Calls(options)

    async def negotiate(self, *, timeout: float) -> Negotiated:
        """See ``IMemoryProvider.negotiate``."""
        return await negotiate(
            self._calls, self._options_revision, self._recall_records_max, timeout
        )

    async def ready(self, *, timeout: float) -> None:
        """See ``IMemoryProvider.ready``."""
        await self._calls.ready(timeout=timeout)

    async def close(self) -> None:
        """See ``IMemoryProvider.close``."""
        await self._calls.connections.close()

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        """See ``IMemoryProvider.load``."""
        return await reader.load(self._calls, request, timeout)

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        """See ``IMemoryProvider.commit``."""
        return await writer.commit(self._calls, write_set, timeout)

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        """See ``IMemoryProvider.revisions``."""
        return await revisions(self._calls, request, timeout)

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.search``."""
        return await search(self._calls, request, timeout)

    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        """See ``IMemoryProvider.candidates``."""
        return await candidates(self._calls, request, timeout)

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        """See ``IMemoryProvider.recall``."""
        return await recall.recall(self._calls, request, self._recall_records_max, timeout)

    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.tagged``."""
        return await recall.tagged(self._calls, request, timeout)

    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        """See ``IMemoryProvider.unindexed``."""
        return await index.unindexed(self._calls, request, timeout)

    async def index(self, request: IndexRequest, *, timeout: float) -> int:
        """See ``IMemoryProvider.index``."""
        return await index.index(self._calls, request, timeout)

    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        """See ``IMemoryProvider.export``."""
        return await export.export(self._calls, request, timeout)

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        """See ``IMemoryProvider.tombstones``."""
        return await export.tombstones(self._calls, request, timeout)

    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        """See ``IMemoryProvider.acquire``."""
        return await delivery.acquire(self._calls, request, timeout)

    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        """See ``IMemoryProvider.acknowledge``."""
        return await delivery.acknowledge(self._calls, request, acknowledgement, timeout)

    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        """See ``IMemoryProvider.release``."""
        return await delivery.release(self._calls, request, code, timeout)

    async def effect(self, request: EffectRequest, *, timeout: float) -> EffectFound:
        """See ``IMemoryProvider.effect``."""
        return await delivery.effect(self._calls, request, timeout)

    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        """See ``IMemoryProvider.pending_effects``."""
        return await delivery.pending_effects(self._calls, request, timeout)

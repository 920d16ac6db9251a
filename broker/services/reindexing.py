"""Makes entries for memories that have none, or that lack the vector of the model in use."""

from typing import Final

from broker.domain.ports import PinQuery, ProjectPins
from broker.services.entries import Entries, Told
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, Record
from providers.recall import EntryPut, IndexRequest, UnindexedRequest

TIMEOUT_S: Final = 60.0
"""Of one page: 100 memories at most."""

_PROBE: Final = "memory"
"""A text whose vector tells which model is in use."""


class NothingKeptError(Exception):
    """A project keeps nothing at a provider: most likely an id is mistyped."""


class Reindexing:
    """Walks through the memories of a project. It may be stopped, repeated, and run by several.

    It writes no revision, and nothing that a caller wrote: an entry is put only while the memory is
    as it was read.
    """

    def __init__(
        self,
        provider_id: str,
        provider: IMemoryProvider,
        entries: Entries,
        pins: ProjectPins,
        *,
        vectors: bool,
    ) -> None:
        """Take the provider, what makes entries, the pins, and whether it keeps vectors."""
        self._provider_id = provider_id
        self._provider = provider
        self._entries = entries
        self._pins = pins
        self._vectors = vectors

    async def run(self, project: ProjectKey) -> int:
        """Return how many entries were put.

        Raises:
            NothingKeptError: no run of the project is pinned to the provider.
            ProviderError: those before are put; run it again.
            StorageUnavailableError: the pins cannot be read; run it again.
        """
        await self._require_pin(project)
        model = await self._model(project)
        after: str | None = None
        put = 0
        while True:
            page = await self._provider.unindexed(
                UnindexedRequest(project=project, after=after, vector_model=model),
                timeout=TIMEOUT_S,
            )
            if not page.records:
                return put
            put += await self._index(project, page.records)
            after = page.records[-1].current.record_id

    async def _require_pin(self, project: ProjectKey) -> None:
        query = PinQuery(
            tenant_id=project.tenant_id,
            project_id=project.project_id,
            provider_id=self._provider_id,
            limit=1,
        )
        if not await self._pins.count(query):
            raise NothingKeptError(
                f"no run of project {project.project_id} of tenant {project.tenant_id}"
                f" keeps memory at {self._provider_id}"
            )

    async def _model(self, project: ProjectKey) -> str | None:
        if not self._vectors:
            return None
        vector, _ = await self._entries.vector(
            _PROBE, tenant_id=project.tenant_id, timeout=TIMEOUT_S
        )
        return None if vector is None else vector.model

    async def _index(self, project: ProjectKey, records: tuple[Record, ...]) -> int:
        told: list[Told] = [(each.current.content, each.current.facet) for each in records]
        entries, _ = await self._entries.of(
            told, tenant_id=project.tenant_id, vectors=self._vectors, timeout=TIMEOUT_S
        )
        puts = tuple(
            EntryPut(
                record_id=record.current.record_id,
                revision_id=record.current.revision_id,
                entry=entry,
            )
            for record, entry in zip(records, entries, strict=True)
        )
        return await self._provider.index(
            IndexRequest(project=project, entries=puts), timeout=TIMEOUT_S
        )

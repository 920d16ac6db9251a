"""The use cases of memories around the in-memory model of a store."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from broker.domain.embedding import Embedded, NoVectors
from broker.domain.memories import (
    DedupInput,
    FilterInput,
    Forget,
    Forgotten,
    MemoryInput,
    Recall,
    Recollected,
    Remember,
    RememberedAll,
)
from broker.domain.requests import ContentInput, FacetInput
from broker.retrieval.fitness import Weights
from broker.services.entries import Entries
from broker.services.forgetting import Forgetting
from broker.services.head_writer import HeadWriter
from broker.services.memories import Memories
from broker.services.recollections import Recollections
from providers.conformance.reference import ReferenceMemoryProvider, ReferenceStore
from providers.entries import Vector
from providers.model import ResourceIdentity
from tests.unit.services.world import CONTENT, SCOPE, World


@dataclass
class Model:
    """Gives the vectors that a test has said, or says why there are none."""

    vectors: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    reason: NoVectors | None = NoVectors.OFF

    @property
    def is_on(self) -> bool:
        """See ``EmbeddingPort``."""
        return self.reason is not NoVectors.OFF

    async def embed(
        self, texts: Sequence[str], *, tenant_id: str, restricted: bool, timeout: float
    ) -> Embedded:
        """See ``EmbeddingPort``."""
        self.asked += texts
        if self.reason is not None:
            return Embedded(reason=self.reason)
        return Embedded(tuple(Vector("model", self.vectors[text]) for text in texts))


class Desk:
    """Remembers, recalls and forgets for one agent."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.world = World()
        resource = ResourceIdentity("resource", 1)
        self.store = ReferenceStore(resource)
        self.provider = ReferenceMemoryProvider(self.store, resource)
        self.world.provider = self.provider  # type: ignore[assignment]
        self.model = Model()
        numbers = count(1)
        self._keys = count(1)
        writer = HeadWriter(self.world.path, self.world, lambda: f"id-{next(numbers):04}")
        entries = Entries(self.model)
        self.memories = Memories(self.world.path, writer, entries)
        self.recollections = Recollections(self.world.path, self.world, entries, Weights())
        self.forgetting = Forgetting(self.world.path, writer)

    async def remember(
        self,
        *contents: str,
        key: str | None = None,
        dedup: DedupInput | None = None,
        expire_days: int = 0,
        title: str = "",
        **facet: Any,
    ) -> RememberedAll:
        """Remember texts, all with the same title and facet."""
        return await self.memories.remember(
            self.world.call(),
            Remember(
                scope=SCOPE,
                idempotency_key=key or f"key-{next(self._keys)}",
                memories=tuple(memory(each, expire_days, title, **facet) for each in contents),
                dedup=dedup or DedupInput(),
                batch=len(contents) != 1,
            ),
        )

    async def recall(self, query: str, **changes: Any) -> Recollected:
        """Recall by a query."""
        given: dict[str, Any] = {
            "limit": 0,
            "mode": None,
            "filter": FilterInput(),
            "as_of": None,
            "include_superseded": False,
            "full": True,
        }
        request = Recall(scope=SCOPE, query=query, **(given | changes))
        return await self.recollections.recall(self.world.call(), request)

    async def texts(self, query: str, **changes: Any) -> list[str]:
        """Return the texts that are recalled, the best first."""
        found = await self.recall(query, **changes)
        return [each.record.current.content.content for each in found.results]

    async def forget(self, record_id: str, revision: int = 1, key: str = "forget") -> Forgotten:
        """Forget a memory."""
        request = Forget(
            scope=SCOPE,
            idempotency_key=key,
            record_id=record_id,
            expected_revision=revision,
            reason="",
        )
        return await self.forgetting.forget(self.world.call(), request)

    def live(self) -> list[str]:
        """Return the texts of all memories that are active."""
        return sorted(
            head.current.content.content
            for shelf in self.store.shelves.values()
            for head in shelf.heads.values()
            if head.current.state == "active"
        )


def memory(text: str, expire_days: int = 0, title: str = "", **facet: Any) -> MemoryInput:
    """Return one memory to take in."""
    content: ContentInput = replace(CONTENT, content=text, title=title)
    return MemoryInput(content=content, facet=FacetInput(**facet), expire_days=expire_days)

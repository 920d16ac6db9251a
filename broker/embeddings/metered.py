"""Counts and times embeddings, by how they came out."""

import time
from collections.abc import Callable, Sequence

from broker.domain.embedding import Embedded
from broker.domain.ports import EmbeddingPort


class MeteredEmbeddings:
    """Passes everything on, and tells ``observe`` the outcome and the seconds."""

    def __init__(self, inner: EmbeddingPort, observe: Callable[[str, float], None]) -> None:
        self._inner = inner
        self._observe = observe

    @property
    def is_on(self) -> bool:
        """Fulfil ``EmbeddingPort``."""
        return self._inner.is_on

    async def embed(
        self, texts: Sequence[str], *, tenant_id: str, restricted: bool, timeout: float
    ) -> Embedded:
        """Fulfil ``EmbeddingPort``."""
        begun = time.perf_counter()
        outcome = "cancelled"
        try:
            embedded = await self._inner.embed(
                texts, tenant_id=tenant_id, restricted=restricted, timeout=timeout
            )
            outcome = "ok" if embedded.reason is None else embedded.reason.value
            return embedded
        finally:
            self._observe(outcome, time.perf_counter() - begun)

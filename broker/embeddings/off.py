"""No embeddings: the port where none are configured."""

from collections.abc import Sequence

from broker.domain.embedding import Embedded, NoVectors, check_texts


class NoEmbeddings:
    """Says of all texts that embeddings are off."""

    is_on = False

    async def embed(
        self, texts: Sequence[str], *, tenant_id: str, restricted: bool, timeout: float
    ) -> Embedded:
        """Fulfil ``EmbeddingPort``."""
        check_texts(texts)
        return Embedded(reason=NoVectors.OFF)

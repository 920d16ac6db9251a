"""Makes what recall finds memories by: term vectors always, vectors where they are to be had."""

from collections.abc import Sequence

from broker.domain.memories import Gap
from broker.domain.ports import EmbeddingPort
from broker.retrieval.terms import term_vector
from broker.services.turns import with_room
from providers.entries import RecallEntry, TermVector, Vector
from providers.model import Content, MemoryFacet, Sensitivity

Told = tuple[Content, MemoryFacet | None]
"""What a memory says: all that an entry is made of."""

Made = tuple[Vector | None, Gap | None]
"""A vector, or why there is none."""


class Entries:
    """Makes entries. No outage of a model is an error: the entry lacks its vector then (001-40)."""

    def __init__(self, embeddings: EmbeddingPort) -> None:
        """Take what makes vectors."""
        self._embeddings = embeddings

    @property
    def asks_a_model(self) -> bool:
        """Whether the texts of memories go to a model."""
        return self._embeddings.is_on

    async def of(
        self, told: Sequence[Told], *, tenant_id: str, vectors: bool, timeout: float
    ) -> tuple[tuple[RecallEntry, ...], Gap | None]:
        """Return an entry for each, and the first reason why one has no vector.

        Args:
            told: At most 100.
            tenant_id: Whose they are.
            vectors: Whether the provider keeps any.
            timeout: Seconds that the model may take.
        """
        kept: Sequence[Made]
        if vectors and self.asks_a_model:
            kept = await self._vectors(told, tenant_id, timeout)
        else:
            kept = [(None, Gap.OFF if vectors else Gap.NOT_KEPT)] * len(told)
        size = sum(len(content.content) for content, _ in told)
        terms = await with_room(lambda: [terms_of(*each) for each in told], size)
        entries = tuple(
            RecallEntry(each, vector) for each, (vector, _) in zip(terms, kept, strict=True)
        )
        return entries, next((gap for _, gap in kept if gap is not None), None)

    async def _vectors(
        self, told: Sequence[Told], tenant_id: str, timeout: float
    ) -> Sequence[Made]:
        """Ask for those of restricted memories apart, since not every model may see them."""
        kept: list[Made] = [(None, None)] * len(told)
        for restricted in (False, True):
            places = [n for n, each in enumerate(told) if _restricted(each) is restricted]
            texts = [_text(told[n][0]) for n in places]
            made = await self._embedded(texts, tenant_id, timeout, restricted=restricted)
            for place, each in zip(places, made, strict=True):
                kept[place] = each
        return kept

    async def vector(self, query: str, *, tenant_id: str, timeout: float) -> Made:
        """Return the vector of a query, or why there is none."""
        return (await self._embedded([query], tenant_id, timeout, restricted=False))[0]

    async def _embedded(
        self, texts: Sequence[str], tenant_id: str, timeout: float, *, restricted: bool
    ) -> Sequence[Made]:
        if not texts:
            return []
        embedded = await self._embeddings.embed(
            texts, tenant_id=tenant_id, restricted=restricted, timeout=timeout
        )
        if embedded.reason is not None:
            return [(None, Gap(embedded.reason.value))] * len(texts)
        return [(vector, None) for vector in embedded.vectors]


def _text(content: Content) -> str:
    return content.content if content.title is None else f"{content.title}\n{content.content}"


def terms_of(content: Content, facet: MemoryFacet | None) -> TermVector:
    """Return the terms of what a memory is found by: title, content, tags, subject."""
    return term_vector(
        title=content.title,
        content=content.content,
        tags=content.tags,
        subject=None if facet is None else facet.subject,
    )


def _restricted(told: Told) -> bool:
    _, facet = told
    return facet is not None and facet.sensitivity is Sensitivity.RESTRICTED

"""Makes what recall finds memories by: term vectors always, vectors where they are to be had."""

from collections.abc import Sequence

from broker.domain.memories import Gap
from broker.domain.ports import EmbeddingPort
from broker.retrieval.terms import term_vector
from broker.services.access import Access
from providers.capabilities import Capability
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

    async def of(
        self, access: Access, told: Sequence[Told]
    ) -> tuple[tuple[RecallEntry, ...], Gap | None]:
        """Return an entry for each, and the first reason why one has no vector."""
        kept: list[Made] = [(None, Gap.NOT_KEPT)] * len(told)
        if Capability.VECTORS in access.bound.capabilities:
            for restricted in (False, True):
                places = [n for n, each in enumerate(told) if _restricted(each) is restricted]
                texts = [_text(told[n][0]) for n in places]
                made = await self._embedded(access, texts, restricted=restricted)
                for place, each in zip(places, made, strict=True):
                    kept[place] = each
        entries = tuple(
            RecallEntry(_terms(content, facet), vector)
            for (content, facet), (vector, _) in zip(told, kept, strict=True)
        )
        return entries, next((gap for _, gap in kept if gap is not None), None)

    async def vector(self, access: Access, query: str) -> Made:
        """Return the vector of a query, or why there is none."""
        if Capability.VECTORS not in access.bound.capabilities:
            return None, Gap.NOT_KEPT
        return (await self._embedded(access, [query], restricted=False))[0]

    async def _embedded(
        self, access: Access, texts: Sequence[str], *, restricted: bool
    ) -> Sequence[Made]:
        """Embed texts in half of the time that is left: what follows needs some, too."""
        if not texts:
            return []
        embedded = await self._embeddings.embed(
            texts,
            tenant_id=access.project.tenant_id,
            restricted=restricted,
            timeout=access.timeout() / 2,
        )
        if embedded.reason is not None:
            return [(None, Gap(embedded.reason.value))] * len(texts)
        return [(vector, None) for vector in embedded.vectors]


def _text(content: Content) -> str:
    return content.content if content.title is None else f"{content.title}\n{content.content}"


def _terms(content: Content, facet: MemoryFacet | None) -> TermVector:
    return term_vector(
        title=content.title,
        content=content.content,
        tags=content.tags,
        subject=None if facet is None else facet.subject,
    )


def _restricted(told: Told) -> bool:
    _, facet = told
    return facet is not None and facet.sensitivity is Sensitivity.RESTRICTED

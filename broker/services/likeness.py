"""Reads what a memory is held against before it is kept: who holds its keys, and the like."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from broker.memory.intake import Earlier, Item, Likeness
from broker.retrieval.scoring import cosine
from broker.retrieval.terms import distinct_terms, jaccard
from broker.services.access import Access
from providers.model import Record
from providers.recall import QUERY_TERMS_MAX, Eligible, Match, Recalled, RecallRequest
from providers.requests import KeyHolder, LoadRequest

SHORTLIST_MAX: Final = 8
"""Memories whose words are compared with those of one new memory: those that share the most."""

NEAREST_MAX: Final = 8
"""Memories whose vectors are. One would do (001-03); the others tell which words not to compare."""


@dataclass(frozen=True, slots=True)
class Against:
    """What stands against the memories of a request.

    ``heads`` are those of the holders of keys and of all that is like; ``like`` stands there for
    each memory, in order.
    """

    heads: Mapping[str, Record]
    like: tuple[tuple[Likeness, ...], ...]
    namespaces: tuple[str, ...] = ()


async def holders(access: Access, keys: Mapping[str, KeyHolder]) -> Mapping[str, Record]:
    """Return the heads of the records that hold keys: one round trip where there are any."""
    return await heads(access, (each.record_id for each in keys.values()))


async def heads(access: Access, record_ids: Iterable[str | None]) -> Mapping[str, Record]:
    """Return heads by id: one round trip where any are asked for."""
    wanted = tuple(dict.fromkeys(each for each in record_ids if each is not None))
    if not wanted:
        return {}
    request = LoadRequest(project=access.project, record_ids=wanted)
    return (await access.bound.provider.load(request, timeout=access.timeout())).heads


async def like(access: Access, item: Item, *, at: datetime) -> tuple[tuple[str, float | None], ...]:
    """Return the memories to compare an item with, by id, with the cosine where both have a vector.

    One round trip. Memories of the same agent and namespace that are live; the nearest by vector,
    and of the others those that share the most words.
    """
    terms = _probe(item)
    vector = item.entry.vector
    if not terms and vector is None:
        return ()
    request = RecallRequest(
        eligible=Eligible(
            project=access.project,
            agent_id=item.agent_id,
            at=at,
            namespaces=frozenset({item.facet.namespace or ""}),
        ),
        terms=terms,
        vector=vector,
        nearest_max=NEAREST_MAX,
    )
    recalled = await access.bound.provider.recall(request, timeout=access.timeout())
    near = {each.record_id: each.similarity for each in recalled.nearest}
    words = [each.record_id for each in _likest(recalled, item) if each.record_id not in near]
    return (*near.items(), *((record_id, None) for record_id in words))


def compared(item: Item, record: Record, similarity: float | None) -> Likeness:
    """Say how like an item a memory is."""
    shared = jaccard(item.terms, distinct_terms(record.current.content.content))
    return Likeness(record.current.record_id, similarity, shared)


def compared_earlier(item: Item, earlier: Earlier) -> Likeness:
    """Say how like an item an earlier one of the same request is."""
    mine, other = item.entry.vector, earlier.vector
    similarity = None if mine is None or other is None else cosine(mine, other)
    return Likeness(earlier.record_id, similarity, jaccard(item.terms, earlier.terms))


def _probe(item: Item) -> tuple[str, ...]:
    """Return the terms that are looked for: as many as a query may have, in the text's order."""
    return tuple(item.entry.terms.counts)[:QUERY_TERMS_MAX]


def _likest(recalled: Recalled, item: Item) -> Sequence[Match]:
    """Return the matches that may share the most: many common terms, and few others."""

    def share(match: Match) -> tuple[float, str]:
        common = sum(count > 0 for count in match.counts)
        return -common / max(1, len(item.terms) + match.length - common), match.record_id

    return sorted(recalled.matches, key=share)[:SHORTLIST_MAX]

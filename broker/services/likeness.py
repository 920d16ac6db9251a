"""Reads what a memory is held against before it is kept: who holds its keys, and the like."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from broker.memory.intake import Earlier, Item, Likeness
from broker.retrieval.scoring import cosine
from broker.retrieval.terms import distinct_terms, jaccard
from broker.services.access import Access
from broker.services.turns import with_room
from providers.model import Record
from providers.recall import QUERY_TERMS_MAX, Eligible, Match, Recalled, RecallRequest
from providers.requests import KeyHolder, LoadRequest

SHORTLIST_MAX: Final = 8
"""Memories that one new memory is compared with by words, and as many by vectors."""

NEAREST_MAX: Final = 64
"""Nearest that are asked for. Where there are fewer they are all that have a vector."""

WORDS_MAX: Final = 80_000
"""Code points of memories whose words are compared with those of one; the likest of them always."""

Alike = Sequence[tuple[str, float | None]]
"""Memories to compare one with, by id, with the cosine; ``None``: they are compared by words."""


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


async def like(access: Access, item: Item, *, at: datetime) -> Alike:
    """Return the memories to compare an item with: one round trip.

    Memories of the same agent and namespace that are live: the nearest by vector, and of those
    without a vector the ones that share the most words.
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
    near = [(each.record_id, each.similarity) for each in recalled.nearest]
    return (*near[:SHORTLIST_MAX], *((each, None) for each in _likest(recalled, item)))


async def compared(
    items: Sequence[Item], found: Sequence[Alike], heads: Mapping[str, Record]
) -> list[tuple[Likeness, ...]]:
    """Say how like each item its memories are, by the heads that are there."""
    there = [[each for each in alike if each[0] in heads] for alike in found]
    worded = {record_id for alike in there for record_id in _by_words(alike, heads)}
    texts = {record_id: heads[record_id].current.content.content for record_id in worded}
    terms = await with_room(
        lambda: {record_id: distinct_terms(text) for record_id, text in texts.items()},
        sum(map(len, texts.values())),
    )
    return [
        tuple(
            Likeness(record_id, similarity, jaccard(item.terms, terms.get(record_id, frozenset())))
            for record_id, similarity in alike
            if similarity is not None or record_id in terms
        )
        for item, alike in zip(items, there, strict=True)
    ]


def _by_words(alike: Alike, heads: Mapping[str, Record]) -> Iterator[str]:
    """Return the memories whose words are compared: the likest, and others while there is room."""
    left = WORDS_MAX
    for record_id, similarity in alike:
        if similarity is None and left > 0:
            left -= len(heads[record_id].current.content.content)
            yield record_id


def compared_earlier(item: Item, earlier: Earlier) -> Likeness:
    """Say how like an item an earlier one of the same request is."""
    mine, other = item.entry.vector, earlier.vector
    similarity = None if mine is None or other is None else cosine(mine, other)
    return Likeness(earlier.record_id, similarity, jaccard(item.terms, earlier.terms))


def _probe(item: Item) -> tuple[str, ...]:
    """Return the terms that are looked for: as many as a query may have, those compared first."""
    others_last = sorted(item.entry.terms.counts, key=lambda term: term not in item.terms)
    return tuple(others_last[:QUERY_TERMS_MAX])


def _likest(recalled: Recalled, item: Item) -> list[str]:
    """Return the memories without a vector that may share the most, the likest first.

    Where the nearest are not all that have a vector, nobody knows which have none: a memory that
    is not among so many is not like the item.
    """
    if len(recalled.nearest) >= NEAREST_MAX:
        return []

    def share(match: Match) -> tuple[float, str]:
        common = sum(count > 0 for count in match.counts)
        return -common / max(1, len(item.terms) + match.length - common), match.record_id

    near = {each.record_id for each in recalled.nearest}
    without = sorted((each for each in recalled.matches if each.record_id not in near), key=share)
    return [each.record_id for each in without[:SHORTLIST_MAX]]

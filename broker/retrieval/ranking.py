"""The order in which memories are given back: what arms found, and what memories say themselves.

Two steps, since only the second needs what they say: ``shortlist`` picks those whose heads are
worth reading, ``ranked`` puts them in order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from broker.domain.memories import Recollection
from broker.retrieval.scoring import bm25, fused, ranks
from broker.retrieval.terms import distinct_terms, jaccard
from providers.model import MemoryFacet, OriginTier, Record
from providers.recall import Recalled

HEADS_MAX: Final = 100
"""Memories whose heads are read for one query."""

PER_SUBJECT_MAX: Final = 3
"""Memories about one subject that are given back (002-26)."""

NEAR_DUPLICATE: Final = 0.8
"""From this share of common terms on a memory stands behind all that say something new (002-26)."""

NAMED_BONUS: Final = 0.2
"""By how much a memory about a subject that the query names fits better."""

NEIGHBOUR_SHARE: Final = 0.5
"""How much of its score a memory lends the next of its source; half as much to the one after."""

NEIGHBOURS: Final = 3
"""How far along a source a memory lends."""

COMPARED_MAX: Final = 1_000
"""Code points of a memory that are compared with others: 100 long ones would take seconds."""

IMPORTANCE_SHARE: Final = 0.05
"""By how much the most important memory fits better than the least important (003-03)."""

_TIERS: Final = tuple(OriginTier)
_NO_FACET: Final = MemoryFacet()


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The best of what the arms found, with one score of both, and where each stands in each.

    ``floor`` is the score of the best that is not on it.
    """

    scores: Mapping[str, float]
    floor: float
    similarities: Mapping[str, float]
    keyword_ranks: Mapping[str, int]
    vector_ranks: Mapping[str, int]


def shortlist(recalled: Recalled) -> Shortlist:
    """Return the 100 best of what was found."""
    words = bm25(recalled)
    similarities = {near.record_id: near.similarity for near in recalled.nearest}
    scores = fused(words, similarities)
    best = sorted(scores, key=lambda record_id: (-scores[record_id], record_id))
    rest = best[HEADS_MAX : HEADS_MAX + 1]
    return Shortlist(
        scores={record_id: scores[record_id] for record_id in best[:HEADS_MAX]},
        floor=scores[rest[0]] if rest else 0.0,
        similarities=similarities,
        keyword_ranks=ranks(words),
        vector_ranks=ranks(similarities),
    )


def ranked(
    found: Shortlist,
    heads: Iterable[Record],
    *,
    asked: frozenset[str],
    limit: int,
) -> tuple[Recollection, ...]:
    """Return the best memories in order.

    Args:
        found: What the arms found.
        heads: The heads of those on the shortlist that are there.
        asked: The terms of the query.
        limit: How many at most.
    """
    records = {head.current.record_id: head for head in heads}
    scores = _lent({each: found.scores[each] for each in records}, records, found.floor)
    for record_id, record in records.items():
        scores[record_id] *= _fitness(record, asked)
    order = sorted(scores, key=lambda record_id: (-scores[record_id], record_id))
    chosen = _chosen([records[record_id] for record_id in order], limit)
    return tuple(_recollection(found, record, scores) for record in _by_tier(chosen))


def _lent(
    scores: Mapping[str, float], records: Mapping[str, Record], floor: float
) -> dict[str, float]:
    """Return the scores with what neighbours lend: what was said next to what fits often fits, too.

    Neighbours are of one source and follow each other in the order they were stored. They lend what
    they are better by than the best that is not on the shortlist.
    """
    lent = dict(scores)
    for row in _rows(records.values()):
        for place, record_id in enumerate(row):
            for distance in range(1, NEIGHBOURS + 1):
                for other in (place - distance, place + distance):
                    if 0 <= other < len(row):
                        excess = max(scores[row[other]] - floor, 0.0)
                        lent[record_id] += NEIGHBOUR_SHARE**distance * excess
    return lent


def _rows(records: Iterable[Record]) -> Iterator[Sequence[str]]:
    """Yield the record ids of each source, in the order they were stored."""
    told = [each for each in records if _facet(each).source]
    told.sort(key=lambda each: (_facet(each).source or "", each.create_time, _id(each)))
    for _, row in groupby(told, key=lambda each: _facet(each).source):
        yield [_id(each) for each in row]


def _fitness(record: Record, asked: frozenset[str]) -> float:
    """Return what a score is multiplied by: more where the subject is named, and for importance."""
    subject = distinct_terms(_facet(record).subject or "")
    named = NAMED_BONUS if subject and subject <= asked else 0.0
    return 1.0 + named + IMPORTANCE_SHARE * record.current.content.importance


def _chosen(records: Sequence[Record], limit: int) -> list[Record]:
    """Return the first of the order, but few about one subject, and what is new before what is not.

    What says the same as a better one, in other case or white space, is left out.
    """
    texts: list[frozenset[str]] = []
    subjects: dict[str, int] = {}
    new: list[Record] = []
    known: list[Record] = []
    for record in records:
        if len(new) == limit:
            break
        subject = _facet(record).subject
        if subject is not None:
            subjects[subject] = subjects.get(subject, 0) + 1
            if subjects[subject] > PER_SUBJECT_MAX:
                continue
        text = distinct_terms(record.current.content.content[:COMPARED_MAX])
        shares = [jaccard(text, other) for other in texts]
        texts.append(text)
        if max(shares, default=0.0) < NEAR_DUPLICATE:
            new.append(record)
        else:
            known.append(record)
    return [*new, *known][:limit]


def _by_tier(records: Iterable[Record]) -> list[Record]:
    """Return what was chosen, of higher origin first, else in its order (000-32)."""
    return sorted(records, key=lambda each: -_TIERS.index(_facet(each).origin_tier or _TIERS[0]))


def _recollection(found: Shortlist, record: Record, scores: Mapping[str, float]) -> Recollection:
    record_id = _id(record)
    return Recollection(
        record=record,
        score=scores[record_id],
        similarity=found.similarities.get(record_id),
        keyword_rank=found.keyword_ranks.get(record_id),
        vector_rank=found.vector_ranks.get(record_id),
    )


def _facet(record: Record) -> MemoryFacet:
    return record.current.facet or _NO_FACET


def _id(record: Record) -> str:
    return record.current.record_id

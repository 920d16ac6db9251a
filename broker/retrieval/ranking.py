"""The order in which memories are given back: what arms found, and what memories say themselves.

Three steps, since only the later ones need what they say: ``shortlist`` picks those whose heads are
worth reading, ``in_order`` puts them in order, and ``Choice`` reads the first of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from broker.domain.memories import Recollection
from broker.retrieval.fitness import Fitness, Weights
from broker.retrieval.neighbours import lent
from broker.retrieval.repeats import Repetition, Said, Told
from broker.retrieval.scoring import bm25, fused, ordered, places
from providers.folding import folded
from providers.model import MemoryFacet, OriginTier, Record
from providers.recall import Recalled

HEADS_MAX: Final = 100
"""Memories whose heads are read for one query."""

PER_SUBJECT_MAX: Final = 3
"""Memories about one subject that are given back (002-26)."""

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
    # Where the words decide alone, nobody asks for the place of what they put behind these.
    by_words = ordered(words, None if similarities else HEADS_MAX + 1)
    scores = fused({record_id: words[record_id] for record_id in by_words}, similarities)
    best = ordered(scores) if similarities else by_words
    rest = best[HEADS_MAX : HEADS_MAX + 1]
    return Shortlist(
        scores={record_id: scores[record_id] for record_id in best[:HEADS_MAX]},
        floor=scores[rest[0]] if rest else 0.0,
        similarities=similarities,
        keyword_ranks=places(by_words),
        vector_ranks=places(ordered(similarities)),
    )


@dataclass(frozen=True, slots=True)
class Order:
    """Memories by how well they fit, the best first, and their scores by record id."""

    records: Sequence[Record]
    scores: Mapping[str, float]


def in_order(
    found: Shortlist,
    heads: Iterable[Record],
    *,
    asked: frozenset[str],
    at: datetime,
    weights: Weights,
) -> Order:
    """Put memories in order. Of their texts only titles and subjects are read.

    Args:
        found: What the arms found.
        heads: The heads of those on the shortlist that are there.
        asked: The terms of the query.
        at: The moment that is asked about.
        weights: What counts beside the query.
    """
    records = {head.current.record_id: head for head in heads}
    scores = lent({each: found.scores[each] for each in records}, records.values(), found.floor)
    fitness = Fitness(asked=asked, at=at, weights=weights)
    for record_id, record in records.items():
        scores[record_id] *= fitness.of(record)
    return Order([records[record_id] for record_id in ordered(scores)], scores)


class Choice:
    """The first of an order, but few about one subject, and what is new before what is not.

    What is not new takes no place from what is, of its subject neither. What says the same as a
    better one, in other case or white space, is left out. It may be made in parts: the texts are
    read here, and of most orders the first few are enough.
    """

    def __init__(self, limit: int, per_subject: int | None) -> None:
        """Begin with nothing.

        Args:
            limit: How many memories are chosen at most.
            per_subject: How many of them at most about one subject. ``None``: there is no end.
        """
        self._limit = limit
        self._told = Told()
        self._room = _Room(per_subject)
        self._new: list[Record] = []
        self._behind: list[tuple[Said, Record]] = []

    def take(self, records: Iterable[Record]) -> bool:
        """Choose among the next of the order, and tell whether there are enough."""
        for record in records:
            if len(self._new) == self._limit:
                return True
            said = Said(record)
            repetition = self._told.repetition(said)
            if repetition is Repetition.NEAR:
                self._behind.append((said, record))
            elif repetition is Repetition.NONE and self._room.take(record):
                self._told.add(said)
                self._new.append(record)
        return len(self._new) == self._limit

    def chosen(self) -> list[Record]:
        """Return what was chosen: what is not new for the places that are left."""
        return [*self._new, *islice(self._known(), self._limit - len(self._new))]

    def _known(self) -> Iterator[Record]:
        """Yield what is not new, each text once."""
        texts: set[str] = set()
        for said, record in self._behind:
            if said.whole not in texts and self._room.take(record):
                texts.add(said.whole)
                yield record


def recollections(
    found: Shortlist, order: Order, chosen: Iterable[Record]
) -> tuple[Recollection, ...]:
    """Return what was chosen of an order, of higher origin first, with what was found of it."""
    return tuple(_recollection(found, record, order.scores) for record in _by_tier(chosen))


class _Room:
    """The places that each subject has left."""

    def __init__(self, per_subject: int | None) -> None:
        """Take how many a subject has; ``None``: there is no end of them."""
        self._per_subject = per_subject
        self._taken: Counter[str] = Counter()

    def take(self, record: Record) -> bool:
        """Take a place for a memory, and tell whether there was one left."""
        subject = _facet(record).subject
        if subject is None or self._per_subject is None:
            return True
        name = folded(subject)
        self._taken[name] += 1
        return self._taken[name] <= self._per_subject


def _by_tier(records: Iterable[Record]) -> list[Record]:
    """Return what was chosen, of higher origin first, else in its order (000-32)."""
    return sorted(records, key=lambda each: -_TIERS.index(_facet(each).origin_tier or _TIERS[0]))


def _recollection(found: Shortlist, record: Record, scores: Mapping[str, float]) -> Recollection:
    record_id = record.current.record_id
    return Recollection(
        record=record,
        score=scores[record_id],
        similarity=found.similarities.get(record_id),
        keyword_rank=found.keyword_ranks.get(record_id),
        vector_rank=found.vector_ranks.get(record_id),
    )


def _facet(record: Record) -> MemoryFacet:
    return record.current.facet or _NO_FACET

"""What is told next to what fits a query often fits it, too: an answer lies beside its question."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Final

from providers.model import Record

LENT_SHARE: Final = 0.5
"""How much of what it is better by a memory lends the next of its source; half of that, the one
after."""

REACH: Final = 2
"""How many places along a source a memory lends."""

APART_MAX: Final = timedelta(hours=1)
"""Memories of one source that were stored further apart are no neighbours."""


def lent(scores: Mapping[str, float], records: Iterable[Record], floor: float) -> dict[str, float]:
    """Return the scores with what the best neighbour of each lends it.

    Neighbours are of one source and follow each other in the order they were stored, as far as they
    were found. They lend of what they are better by than ``floor``. Only one lends, so that many
    memories of a source do not carry each other to the top.

    Args:
        scores: A score for each record, by its id.
        records: In any order.
        floor: The score of the best that is not among them.
    """
    found = dict(scores)
    for row in _rows(records):
        excess = [max(scores[_id(each)] - floor, 0.0) for each in row]
        for place, record in enumerate(row):
            found[_id(record)] += max(_offers(row, excess, place), default=0.0)
    return found


def _offers(row: Sequence[Record], excess: Sequence[float], place: int) -> Iterator[float]:
    """Yield what each neighbour of a place would lend it."""
    for distance in range(1, REACH + 1):
        for other in (place - distance, place + distance):
            if 0 <= other < len(row):
                apart = abs(row[other].create_time - row[place].create_time)
                if apart <= APART_MAX:
                    yield LENT_SHARE**distance * excess[other]


def _rows(records: Iterable[Record]) -> Iterator[Sequence[Record]]:
    """Yield the records of each source, in the order they were stored."""
    told = sorted(
        (each for each in records if _source(each)),
        key=lambda each: (_source(each), each.create_time, _id(each)),
    )
    for _, row in groupby(told, key=_source):
        yield list(row)


def _source(record: Record) -> str:
    facet = record.current.facet
    return (facet and facet.source) or ""


def _id(record: Record) -> str:
    return record.current.record_id

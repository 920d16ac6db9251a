"""By how much a memory fits better for what it says of itself: its name, its worth, its age."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp2
from typing import Final

from broker.retrieval.terms import query_terms
from providers.model import Record

NAMED_SHARE: Final = 0.1
"""By how much a memory fits better whose subject or title the query names."""

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What counts beside the query, as shares of a score; 0.0: not at all.

    ``importance`` is by how much the most important memory fits better than the least (003-03),
    ``recency`` by how much one that was just written fits better than an old one: half as much
    after each ``recency_half_life_days``.
    """

    importance: float = 0.05
    recency: float = 0.05
    recency_half_life_days: float = 30.0


class Fitness:
    """What scores of one query are multiplied by."""

    def __init__(self, *, asked: frozenset[str], at: datetime, weights: Weights) -> None:
        """Take the terms of the query, the moment that ages are told at, and what counts."""
        self._asked = asked
        self._at = at
        self._weights = weights
        self._named: dict[str, bool] = {}

    def of(self, record: Record) -> float:
        """Return the factor of a memory: 1.0 or more. What was written after the moment is new."""
        age = max((self._at - record.current.create_time) / _DAY, 0.0)
        return (
            1.0
            + (NAMED_SHARE if self._names(record) else 0.0)
            + self._weights.importance * record.current.content.importance
            + self._weights.recency * exp2(-age / self._weights.recency_half_life_days)
        )

    def _names(self, record: Record) -> bool:
        """Tell whether the query holds all words of the subject, or all of the title (002-22)."""
        title, facet = record.current.content.title, record.current.facet
        subject = facet.subject if facet else None
        return bool((title and self._holds(title)) or (subject and self._holds(subject)))

    def _holds(self, name: str) -> bool:
        if name not in self._named:
            terms = query_terms(name)
            self._named[name] = bool(terms) and self._asked.issuperset(terms)
        return self._named[name]

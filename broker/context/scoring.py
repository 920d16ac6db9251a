"""How well a memory fits a query, and the order that follows (004-94, 004-95)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from broker.context.words import words
from providers.model import DeliveryPolicy, Record, Revision

CORE_TYPE: Final = "core_context"
"""The type of an agent's own memories that no query keeps out."""

IRRELEVANT_TAG: Final = "irrelevant"

_TAG_WEIGHT: Final = 2
_CONTENT_MATCHES_MIN: Final = 2
_CORE_RELEVANCE: Final = 1
_MEDIUM: Final = 0.4
_HIGH: Final = 0.7
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Rank = tuple[bool, int, int, timedelta, str]
"""Sorts memories, the best first: delivered always; relevance; importance; youth; record id."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a context is for. ``given`` is true also where there are no words in it."""

    given: bool
    words: frozenset[str]

    @classmethod
    def of(cls, text: str | None) -> "Query":
        """Return the query of a request; ``None``: there is none."""
        return cls(given=text is not None, words=words(text or ""))


@dataclass(frozen=True, slots=True)
class Ranked:
    """A memory, its place, and whether the query keeps it out."""

    record: Record
    rank: Rank
    unfit: bool


def ranked(record: Record, query: Query, agent_id: str) -> Ranked:
    """Judge one memory that may enter the context of an agent."""
    current = record.current
    always = delivered_always(current)
    core = is_core(current, agent_id)
    relevance = _relevance(current, query, core=core)
    rank = (
        not always,
        -relevance,
        -importance_band(current.content.importance),
        youth(record.create_time),
        current.record_id,
    )
    unfit = query.given and not always and _is_unfit(current, query, relevance, core=core)
    return Ranked(record, rank, unfit)


def youth(time: datetime) -> timedelta:
    """Return what sorts the youngest first."""
    return _EPOCH - time


def delivered_always(revision: Revision) -> bool:
    """Tell whether a memory enters whatever the query (000-06)."""
    facet = revision.facet
    return facet is not None and facet.delivery_policy is DeliveryPolicy.ALWAYS


def is_core(revision: Revision, agent_id: str) -> bool:
    """Tell whether a memory is part of the agent's own core."""
    return revision.content.type == CORE_TYPE and revision.agent_id == agent_id


def importance_band(importance: float) -> int:
    """Return 1 (low, below 0.4), 2 (medium, below 0.7) or 3 (high)."""
    if importance < _MEDIUM:
        return 1
    return 2 if importance < _HIGH else 3


def _is_unfit(revision: Revision, query: Query, relevance: int, *, core: bool) -> bool:
    if any(tag.casefold() == IRRELEVANT_TAG for tag in revision.content.tags):
        return True
    return bool(query.words) and relevance == 0 and not core


def _relevance(revision: Revision, query: Query, *, core: bool) -> int:
    """Return twice the matches in tags and, where there are at least two, those in the content.

    A tag is split by itself, so that a word in two tags counts twice. In the content a word counts
    once.
    """
    if not query.words:
        return 0
    if core:
        return _CORE_RELEVANCE
    in_tags = sum(len(query.words & words(tag)) for tag in revision.content.tags)
    in_content = len(query.words & words(revision.content.content))
    counted = in_content if in_content >= _CONTENT_MATCHES_MIN else 0
    return _TAG_WEIGHT * in_tags + counted

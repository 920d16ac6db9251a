"""The request and result shapes of ``IMemoryProvider`` that give memories back.

Clauses that govern them stand in ``interface.py``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Self

from providers.entries import RecallEntry, Vector
from providers.model import MemoryKind, OriginTier, ProjectKey, Record, Sensitivity

QUERY_TERMS_MAX = 64

DRIVEN_MAX = 2_000
"""How many records the rare terms of a query may hold together before the commoner ones no longer
bring records of their own; see clause Q-4."""

MATCHES_MAX = 10_000
NEAREST_MAX = 1_000
TAGGED_MAX = 100
PATTERNS_MAX = 32
UNINDEXED_MAX = 100


class Superseded(StrEnum):
    """Which superseded memories are eligible beside the active ones."""

    NONE = "none"
    VALID = "valid"
    """Those that were in use at the time asked for."""
    ALL = "all"
    """Those, and the ones superseded before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligible:
    """Which memories of one agent may be given back, at a time: clauses Q-1 and Q-2.

    Empty sets do not filter. ``namespaces`` holds ``""`` for memories without one. ``subject`` and
    ``epoch`` compare byte for byte, as namespaces do. ``tags`` must all be there, and at least one
    tag fits one of ``patterns``, where ``*`` is any run and ``?`` any one character; both compare
    as ``folding.folded`` gives them.

    Raises:
        ValueError: ``at`` has no zone, or there are more than 32 tags or patterns.
    """

    project: ProjectKey
    agent_id: str
    at: datetime
    superseded: Superseded = Superseded.NONE
    namespaces: frozenset[str] = frozenset()
    memory_kinds: frozenset[MemoryKind] = frozenset()
    subject: str | None = None
    epoch: str | None = None
    tags: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    importance_min: float = 0.0
    ceiling: Sensitivity = Sensitivity.RESTRICTED
    lowest_tier: OriginTier = OriginTier.EXTERNAL

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        if self.at.tzinfo is None:
            raise ValueError("a time has no zone")
        if max(len(self.tags), len(self.patterns)) > PATTERNS_MAX:
            raise ValueError(f"at most {PATTERNS_MAX} tags and patterns")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """Words, a vector, or both, to find memories by.

    ``terms`` are distinct. ``nearest_max`` bounds what the vector brings, 1-1,000.

    Raises:
        ValueError: there are more than 64 terms, one occurs twice, there is neither term nor
            vector, or ``nearest_max`` is out of range.
    """

    eligible: Eligible
    terms: tuple[str, ...] = ()
    vector: Vector | None = None
    nearest_max: int = 100

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        if len(self.terms) > QUERY_TERMS_MAX or len(set(self.terms)) != len(self.terms):
            raise ValueError(f"at most {QUERY_TERMS_MAX} terms, each once")
        if not self.terms and self.vector is None:
            raise ValueError("neither term nor vector")
        if not 1 <= self.nearest_max <= NEAREST_MAX:
            raise ValueError(f"nearest_max is 1-{NEAREST_MAX}")


class Match(NamedTuple):
    """A memory that holds a driving term.

    ``counts`` says how often it holds each term of the request, in their order; ``length`` is that
    of its term vector.
    """

    record_id: str
    counts: tuple[int, ...]
    length: int


@dataclass(frozen=True, slots=True)
class Matches:
    """Memories that hold a driving term, column by column; they are read one by one as ``Match``.

    ``counts`` is a column for each term of the request, in their order; of nothing there is none.

    Raises:
        ValueError: One column is longer than another.
    """

    record_ids: tuple[str, ...] = ()
    counts: tuple[tuple[int, ...], ...] = ()
    lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what are no columns of one table."""
        if {len(self.lengths), *map(len, self.counts)} - {len(self.record_ids)}:
            raise ValueError("columns are equally long")

    @classmethod
    def of(cls, matches: Iterable[Match]) -> Self:
        """Put matches, which were made one by one, into columns."""
        listed = tuple(matches)
        return cls(
            record_ids=tuple(each.record_id for each in listed),
            counts=tuple(zip(*(each.counts for each in listed), strict=True)),
            lengths=tuple(each.length for each in listed),
        )

    def __len__(self) -> int:
        """Tell how many they are."""
        return len(self.record_ids)

    def __iter__(self) -> Iterator[Match]:
        """Yield them one by one."""
        rows = zip(*self.counts, strict=True)
        return map(Match._make, zip(self.record_ids, rows, self.lengths, strict=True))


class Near(NamedTuple):
    """A memory with a vector of the same model, and the cosine of the two, -1.0 to 1.0."""

    record_id: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What was found, and the statistics of the memories looked through (Q-3).

    ``documents`` counts those with an entry, and ``length_total`` adds their lengths.
    ``frequencies`` says how many of these hold each term of the request, in their order.
    ``unindexed`` counts those that have no entry yet, which no word finds.
    """

    documents: int = 0
    length_total: int = 0
    frequencies: tuple[int, ...] = ()
    unindexed: int = 0
    matches: Matches = Matches()
    nearest: tuple[Near, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedRequest:
    """The most important eligible memories.

    Raises:
        ValueError: ``limit`` is not 1-100.
    """

    eligible: Eligible
    limit: int

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        if not 1 <= self.limit <= TAGGED_MAX:
            raise ValueError(f"limit is 1-{TAGGED_MAX}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnindexedRequest:
    """Memories of a project that have no entry. ``vector_model``: or no vector of this model.

    ``after`` is the record id that the page before ended with.

    Raises:
        ValueError: ``limit`` is not 1-100.
    """

    project: ProjectKey
    after: str | None = None
    vector_model: str | None = None
    limit: int = UNINDEXED_MAX

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        if not 1 <= self.limit <= UNINDEXED_MAX:
            raise ValueError(f"limit is 1-{UNINDEXED_MAX}")


@dataclass(frozen=True, slots=True)
class Unindexed:
    """A page of heads, by record id."""

    records: tuple[Record, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPut:
    """An entry for a head as it was read: it is put only while the head is that revision."""

    record_id: str
    revision_id: str
    entry: RecallEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest:
    """Entries for heads of a project.

    Raises:
        ValueError: there are more than 100, or one record has two.
    """

    project: ProjectKey
    entries: tuple[EntryPut, ...]

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        ids = {each.record_id for each in self.entries}
        if len(self.entries) > UNINDEXED_MAX or len(ids) != len(self.entries):
            raise ValueError(f"at most {UNINDEXED_MAX} entries, one for a record")

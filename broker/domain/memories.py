"""What is asked about memories, as it came from the wire, and what is answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from broker.domain.requests import ContentInput, FacetInput, ScopeInput, Unknown
from providers.model import MemoryKind, OriginTier, Record, Sensitivity


class Action(StrEnum):
    """What became of a memory that was to be remembered (001-08)."""

    CREATED = "created"
    UPDATED = "updated"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


class Signal(StrEnum):
    """What decided that (R7): scores of different signals are never compared."""

    EXACT = "exact"
    BELIEF = "belief"
    COSINE = "cosine"
    JACCARD = "jaccard"


class Arm(StrEnum):
    """A way to find memories."""

    KEYWORD = "keyword"
    VECTOR = "vector"


class Gap(StrEnum):
    """Why an arm did not run, or not on everything."""

    NOT_ASKED = "not_asked"
    OFF = "off"
    NOT_LISTED = "not_listed"
    RESTRICTED = "restricted"
    BREAKER_OPEN = "breaker_open"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    NOT_KEPT = "not_kept"
    NO_WORDS = "no_words"
    UNINDEXED = "unindexed"


@dataclass(frozen=True, slots=True)
class ArmReport:
    """How an arm did: whether it ran, what is missing, and how many records it found."""

    arm: Arm
    ran: bool
    gap: Gap | None = None
    found: int = 0


class RecallMode(StrEnum):
    """Which arms run; absent: both, where vectors are to be had."""

    KEYWORD = "keyword"
    HYBRID = "hybrid"


# -------------------- remembering


class DedupMode(StrEnum):
    """Which duplicates are looked for; absent: all."""

    DECLARED = "declared"


MEMORIES_MAX: Final = 12
"""Memories that one request may bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryInput:
    """One memory to take in. ``expire_days`` 0: not given."""

    content: ContentInput
    facet: FacetInput | None
    expire_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupInput:
    """How duplicates are looked for."""

    mode: DedupMode | Unknown | None = None
    duplicate_threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Asks for memories to be taken in, all of them or none. ``batch`` tells how it was asked."""

    scope: ScopeInput
    idempotency_key: str
    memories: tuple[MemoryInput, ...]
    dedup: DedupInput
    batch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of one memory, and the record that holds it now."""

    record: Record
    action: Action
    reinforced: bool = False
    signal: Signal | None = None
    score: float | None = None
    superseded_record_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedAll:
    """What became of the memories of a request, in its order, and whether they have vectors."""

    project_id: str
    remembered: tuple[Remembered, ...]
    vectors: ArmReport
    replayed: bool


# -------------------- recalling


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterInput:
    """Which memories may be given back."""

    namespaces: tuple[str, ...] = ()
    memory_kinds: tuple[MemoryKind | Unknown | None, ...] = ()
    tags_all: tuple[str, ...] = ()
    tags_any_glob: tuple[str, ...] = ()
    subject: str = ""
    epoch: str = ""
    importance_min: float | None = None
    sensitivity_ceiling: Sensitivity | Unknown | None = None
    min_origin_tier: OriginTier | Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Asks for memories that fit a query. ``limit`` 0: the default."""

    scope: ScopeInput
    query: str
    limit: int
    mode: RecallMode | Unknown | None
    filter: FilterInput
    as_of: datetime | Unknown | None
    include_superseded: bool
    full: bool | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """A memory that was found. Ranks count from 1; ``None``: the arm did not find it."""

    record: Record
    score: float
    similarity: float | None = None
    keyword_rank: int | None = None
    vector_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollected:
    """What was found, the best first, and how each arm did."""

    project_id: str
    results: tuple[Recollection, ...]
    arms: tuple[ArmReport, ...]
    full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallByTags:
    """Asks for memories by tags. ``limit`` 0: the default."""

    scope: ScopeInput
    filter: FilterInput
    limit: int
    full: bool | Unknown


@dataclass(frozen=True, slots=True)
class Tagged:
    """The memories, the most important first, and whether more would have fitted."""

    project_id: str
    records: tuple[Record, ...]
    more: bool
    full: bool


# -------------------- forgetting


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Asks for a memory to be forgotten."""

    scope: ScopeInput
    idempotency_key: str
    record_id: str
    expected_revision: int
    reason: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Whether there was something to forget."""

    found: bool
    replayed: bool


Outcome = Mapping[str, str | bool | int | float]
"""What a receipt keeps of a reply: enums, booleans, numbers."""

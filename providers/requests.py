"""The request and result shapes of ``IMemoryProvider``.

Clauses that govern them stand in ``interface.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isnan
from typing import Final

from providers.capabilities import Capability
from providers.making import maker
from providers.model import (
    IdempotencyReceipt,
    Kind,
    ProjectKey,
    ReceiptKey,
    Record,
    ResourceIdentity,
    Revision,
    RevisionRef,
    State,
    Trust,
)

# -------------------- negotiation


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiated:
    """What the live resource is and can do.

    ``absent`` gives the reason for each capability that is not there. ``recall_records_max`` is the
    most memories of one agent that recall looks through; ``None``: as many as there are.
    """

    resource: ResourceIdentity
    adapter_version: str
    options_schema_version: int
    options_revision: str
    capabilities: frozenset[Capability]
    absent: Mapping[Capability, str] = field(default_factory=dict)
    recall_records_max: int | None = None


# -------------------- load


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Everything one call needs to decide, by key.

    ``keys`` asks for what claim keys hold. ``chain_from`` walks superseded-by links from a record.
    """

    project: ProjectKey
    record_ids: tuple[str, ...] = ()
    revisions: tuple[RevisionRef, ...] = ()
    receipt: ReceiptKey | None = None
    keys: tuple[str, ...] = ()
    chain_from: str | None = None
    graph: bool = False
    transfer: bool = False
    stream_run_id: str | None = None


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """What a claim key holds: a record, or a tombstone's kind; exactly one of the two."""

    record_id: str | None
    tombstone_kind: str | None


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One record of a supersession chain, in walking order."""

    record_id: str
    agent_id: str
    kind: Kind
    state: State
    superseded_by_record_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was found; what is absent is left out. Counters that were never advanced are 0.

    ``chain`` starts with the record asked for and holds at most 66 links: one more than a chain may
    have.
    """

    heads: Mapping[str, Record] = field(default_factory=dict)
    revisions: Mapping[RevisionRef, Revision] = field(default_factory=dict)
    receipt: IdempotencyReceipt | None = None
    keys: Mapping[str, KeyHolder] = field(default_factory=dict)
    chain: tuple[ChainLink, ...] = ()
    graph: int = 0
    transfer: int = 0
    stream: int = 0


new_load_request: Final = maker(LoadRequest)
new_loaded: Final = maker(Loaded)
"""As the classes themselves, and quicker: each read of a head makes both."""


# -------------------- commit


@dataclass(frozen=True, slots=True)
class Committed:
    """Everything was applied."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The receipt key holds a receipt of the same method and fingerprint.

    Nothing was applied now.
    """

    receipt: IdempotencyReceipt


@dataclass(frozen=True, slots=True)
class IdempotencyReused:
    """The receipt key holds a receipt of another request. Nothing was applied."""


@dataclass(frozen=True, slots=True)
class Tombstoned:
    """A key that must be free of tombstones, or was to be claimed, holds one.

    Nothing was applied.
    """

    key: str


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """A record id, revision id or effect's receipt id that was to be new exists.

    Nothing was applied. ``record_id`` is the record of the write set that meets it; for an effect
    it is the receipt id.
    """

    record_id: str


@dataclass(frozen=True, slots=True)
class ClaimTaken:
    """Another record than expected holds a key; ``None``: nobody does any more.

    Nothing was applied. Decide again.
    """

    key: str
    record_id: str | None


@dataclass(frozen=True, slots=True)
class GraphConflict:
    """The decision-graph or transfer counter moved since ``load``.

    Nothing was applied. Decide again.
    """


@dataclass(frozen=True, slots=True)
class Contended:
    """The stream counter moved, or the store gave up on a lock.

    Nothing was applied. Decide again.
    """


@dataclass(frozen=True, slots=True)
class StaleRevision:
    """A head is at another revision than expected; 0: it is absent. Nothing was applied."""

    record_id: str
    current: int


CommitOutcome = (
    Committed
    | Replayed
    | IdempotencyReused
    | Tombstoned
    | AlreadyExists
    | ClaimTaken
    | GraphConflict
    | Contended
    | StaleRevision
)

# -------------------- histories, search

BRIEF_LENGTH = 256
"""Code points of content that a brief page holds."""


def _check_size(*, brief: bool, bytes_max: int | None) -> None:
    if bytes_max is not None and (brief or bytes_max < 1):
        raise ValueError("bytes_max is at least 1, and a brief page has none")


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionsRequest:
    """A page of a record's history, newest first.

    ``before``: only revisions below it. ``limit`` 1-100. For ``brief`` and ``bytes_max`` see
    clauses V-4 and V-5; only one of them can be asked for, or it is a ValueError.
    """

    project: ProjectKey
    agent_id: str
    record_id: str
    before: int | None
    limit: int
    brief: bool = False
    bytes_max: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        _check_size(brief=self.brief, bytes_max=self.bytes_max)


@dataclass(frozen=True, slots=True)
class RevisionsPage:
    """The page, and whether older revisions follow it.

    ``found`` is false when agent and record do not match.
    """

    found: bool
    revisions: tuple[Revision, ...] = ()
    more: bool = False


SEARCH_LIMIT_MAX = 100


@dataclass(frozen=True, slots=True)
class SearchPosition:
    """Where a page ended: its last record, as it was on the page. See S-2."""

    update_time: datetime
    record_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """Heads of one agent, or of all agents where ``agent_id`` is ``None``.

    Empty sets do not filter, and neither does an empty text; all tags must be there. For what a
    filter means see clauses S-1 to S-5; for ``brief`` and ``bytes_max``, S-8 and S-9.

    Raises:
        ValueError: ``limit`` is not 1-100, a bound of importance is no number, a time has no zone,
            or ``bytes_max`` is below 1 or that of a brief page.
    """

    project: ProjectKey
    agent_id: str | None
    text: str | None = None
    kinds: frozenset[Kind] = frozenset()
    states: frozenset[State] = frozenset()
    trusts: frozenset[Trust] = frozenset()
    tags: tuple[str, ...] = ()
    importance_min: float | None = None
    importance_max: float | None = None
    updated_from: datetime | None = None
    updated_before: datetime | None = None
    after: SearchPosition | None = None
    limit: int = 50
    brief: bool = False
    bytes_max: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        _check_size(brief=self.brief, bytes_max=self.bytes_max)
        if not 1 <= self.limit <= SEARCH_LIMIT_MAX:
            raise ValueError(f"limit is 1-{SEARCH_LIMIT_MAX}")
        if any(isnan(each or 0.0) for each in (self.importance_min, self.importance_max)):
            raise ValueError("a bound of importance is no number")
        ends = None if self.after is None else self.after.update_time
        times = (self.updated_from, self.updated_before, ends)
        if any(time is not None and time.tzinfo is None for time in times):
            raise ValueError("a time has no zone")


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The page in order, and whether more follows."""

    records: tuple[Record, ...]
    more: bool


CANDIDATES_MAX = 10_001
CANDIDATES_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesRequest:
    """What may enter the context of one agent's run (004-89).

    ``limit`` is one more than the caller allows. For what is chosen see clauses K-1 to K-3.

    Raises:
        ValueError: ``limit`` is not 1-10,001, or ``bytes_max`` not 1 byte to 16 MiB.
    """

    project: ProjectKey
    agent_id: str
    run_id: str
    limit: int
    bytes_max: int = CANDIDATES_BYTES_MAX

    def __post_init__(self) -> None:
        """Refuse what no adapter could answer."""
        if not 1 <= self.limit <= CANDIDATES_MAX:
            raise ValueError(f"limit is 1-{CANDIDATES_MAX}")
        if not 1 <= self.bytes_max <= CANDIDATES_BYTES_MAX:
            raise ValueError(f"bytes_max is 1-{CANDIDATES_BYTES_MAX}")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates in order (K-4).

    ``truncated_bytes`` is true when ``bytes_max``, and not ``limit``, was what ended them (K-5).
    """

    records: tuple[Record, ...]
    truncated_bytes: bool = False

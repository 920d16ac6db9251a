"""A bundle as it came from the wire, and what callers ask for: nothing is checked yet.

Empty strings stand for "not given", ``UNKNOWN`` for what has no meaning here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from broker.domain.requests import ContentInput, FacetInput, ScopeInput, Unknown
from providers.model import ChangeKind, Kind, OriginTier, Record, State, Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFacet(FacetInput):
    """A whole facet: also what only a broker sets.

    ``metadata_exact`` tells whether the metadata are stored as they stand.
    """

    origin_tier: OriginTier | Unknown | None = None
    corroboration: int = 0
    last_reinforce_time: datetime | Unknown | None = None
    flagged: bool = False
    invalidate_time: datetime | Unknown | None = None
    invalidation_reason: str = ""
    metadata_exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSnapshot:
    """What a head and a revision have in common."""

    record_id: str
    agent_id: str
    kind: Kind | Unknown | None
    revision: int
    revision_id: str
    previous_revision_id: str
    content: ContentInput
    facet: GivenFacet | None
    state: State | Unknown | None
    trust: Trust | Unknown | None
    source_run_id: str
    source_session_id: str
    promoted_decision_id: str
    superseded_by_record_id: str
    snippet: str
    create_time: datetime | Unknown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRevision(GivenSnapshot):
    """One revision."""

    reason: str
    change_kind: ChangeKind | Unknown | None
    actor_fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenHead(GivenSnapshot):
    """A head. ``create_time`` is that of its first revision."""

    project_id: str
    update_time: datetime | Unknown | None


@dataclass(frozen=True, slots=True)
class GivenRecord:
    """A head, where there is one, and its history."""

    head: GivenHead | None
    revisions: tuple[GivenRevision, ...]


class BundleSource(Protocol):
    """A bundle of the wire, read no deeper than it is asked to be.

    What it costs to read one is not for callers whose rights were not checked.
    """

    @property
    def present(self) -> bool:
        """Whether there is a bundle at all."""
        ...

    @property
    def format(self) -> str:
        """The format's name."""
        ...

    @property
    def schema_version(self) -> int:
        """The version of the format."""
        ...

    @property
    def project_id(self) -> str:
        """The project it says it is of."""
        ...

    @property
    def agent_id(self) -> str:
        """The agent it says it is of."""
        ...

    @property
    def record_count(self) -> int:
        """How many records there are."""
        ...

    @property
    def revision_count(self) -> int:
        """How many revisions there are in all."""
        ...

    def values(self, most: int) -> int:
        """Count the values in metadata that can be read; nothing behind ``most`` is looked at."""
        ...

    def canonical(self) -> bytes | None:
        """Return the canonical form; ``None`` where a value has none."""
        ...

    def records(self) -> Iterator[GivenRecord]:
        """Read the records, one after the other."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecords:
    """Asks for a bundle; without ``record_ids`` of everything the agent has."""

    scope: ScopeInput
    record_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecords:
    """Asks for a bundle to be written; with ``validate_only`` for no more than the checks."""

    scope: ScopeInput
    idempotency_key: str
    bundle: BundleSource
    validate_only: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """The heads that were written, in the order of the bundle."""

    project_id: str
    records: tuple[Record, ...]
    replayed: bool

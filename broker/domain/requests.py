"""What callers ask for, as it came from the wire: nothing is checked yet.

Empty strings stand for "not given". An enum number this release does not know is ``UNKNOWN``; the
field checks refuse it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import Final

from providers.model import (
    BeliefType,
    DeliveryPolicy,
    Kind,
    MemoryKind,
    Portability,
    Record,
    Revision,
    Sensitivity,
    SourceType,
    State,
    Trust,
)


class RejectKind(StrEnum):
    """Why a record is rejected (002-16)."""

    UNTRUE = "untrue"
    CHANGED = "changed"
    NOT_HERE = "not_here"


class Unknown(Enum):
    """The type of ``UNKNOWN``."""

    VALUE = "unknown"


UNKNOWN: Final = Unknown.VALUE
"""Stands for a value of the wire that has no meaning here."""


class TooLarge(Enum):
    """The type of ``TOO_LARGE``."""

    VALUE = "too_large"


TOO_LARGE: Final = TooLarge.VALUE
"""Stands for data of the wire that surely passes its limit and was not taken apart."""


@dataclass(frozen=True, slots=True)
class ScopeInput:
    """Project, run and agent as the caller wrote them."""

    project_id: str
    run_id: str
    agent_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentInput:
    """The content set. ``importance`` is ``None`` where it was not given."""

    type: str
    title: str
    content: str
    rationale: str
    importance: float | None
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetInput:
    """The fields of a facet that a caller may give. What only the broker sets is not here."""

    memory_kind: MemoryKind | Unknown | None = None
    delivery_policy: DeliveryPolicy | Unknown | None = None
    namespace: str = ""
    subject: str = ""
    belief_type: BeliefType | Unknown | None = None
    source: str = ""
    source_type: SourceType | Unknown | None = None
    sensitivity: Sensitivity | Unknown | None = None
    expire_time: datetime | Unknown | None = None
    confidence: float | None = None
    epoch: str = ""
    portability: Portability | Unknown | None = None
    metadata: Mapping[str, object] | TooLarge | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRecord:
    """Asks for a new memory or session context."""

    scope: ScopeInput
    idempotency_key: str
    kind: Kind | Unknown | None
    content: ContentInput
    facet: FacetInput | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRecord:
    """Asks for a head."""

    scope: ScopeInput
    record_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRecord:
    """Asks for new content.

    ``facet_mask`` holds the paths as they came; ``None``: no mask was sent.
    """

    scope: ScopeInput
    idempotency_key: str
    record_id: str
    expected_revision: int
    content: ContentInput
    reason: str
    facet: FacetInput | None
    facet_mask: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """Asks for a change of state or trust: archive, unarchive, approve, reopen."""

    scope: ScopeInput
    idempotency_key: str
    record_id: str
    expected_revision: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersedeDecision(ChangeRecord):
    """Asks for a decision to be replaced."""

    replacement_record_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRecord(ChangeRecord):
    """Asks for the content set of an earlier revision."""

    source_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectRecord(ChangeRecord):
    """Asks for a record to be refused."""

    reject_kind: RejectKind | Unknown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchGetRecords:
    """Asks for several heads."""

    scope: ScopeInput
    record_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchInput:
    """What every search takes: filters, page, view. ``full`` asks for whole records."""

    query: str
    kinds: tuple[Kind | Unknown | None, ...]
    states: tuple[State | Unknown | None, ...]
    trusts: tuple[Trust | Unknown | None, ...]
    tags: tuple[str, ...]
    importance_min: float | None
    importance_max: float | None
    updated_from: datetime | Unknown | None
    updated_before: datetime | Unknown | None
    page_size: int
    page_token: str
    full: bool | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecords(SearchInput):
    """Asks for a page of heads of one agent."""

    scope: ScopeInput


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProject(SearchInput):
    """Asks for a page of heads of all agents of a project (004-69).

    Empty ``run_ids`` stand for every run that is pinned.
    """

    project_id: str
    run_ids: tuple[str, ...]
    pinned_from: datetime | Unknown | None
    pinned_before: datetime | Unknown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRevisions:
    """Asks for a page of history. ``full`` asks for whole revisions."""

    scope: ScopeInput
    record_id: str
    page_size: int
    page_token: str
    full: bool | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRevision:
    """Asks for one revision."""

    scope: ScopeInput
    record_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Read:
    """A head, and the project it belongs to."""

    project_id: str
    record: Record


@dataclass(frozen=True, slots=True)
class ReadMany:
    """Heads in the order asked for, and the project they belong to."""

    project_id: str
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A page of heads; an empty token is the end."""

    project_id: str
    records: tuple[Record, ...]
    next_page_token: str
    full: bool


@dataclass(frozen=True, slots=True)
class ProjectHit:
    """A head that was found in a project, and a run through which it can be reached."""

    record: Record
    access_run_id: str


@dataclass(frozen=True, slots=True)
class ProjectFound:
    """A page of heads of a project; an empty token is the end."""

    project_id: str
    hits: tuple[ProjectHit, ...]
    next_page_token: str
    full: bool


@dataclass(frozen=True, slots=True)
class Written:
    """The head a write left, and whether the reply is that of an earlier request."""

    project_id: str
    record: Record
    replayed: bool


@dataclass(frozen=True, slots=True)
class RevisionsListed:
    """A page of history, newest first; an empty token is the end."""

    revisions: tuple[Revision, ...]
    next_page_token: str
    full: bool

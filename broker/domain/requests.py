"""What callers ask for, as it came from the wire: nothing is checked yet.

Empty strings stand for "not given". An enum number this release does not know is ``UNKNOWN``; the
field checks refuse it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
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
)


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
class ListRevisions:
    """Asks for a page of history."""

    scope: ScopeInput
    record_id: str
    page_size: int
    page_token: str


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

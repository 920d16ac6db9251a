"""The vocabulary of the storage contract: records, revisions and what one commit may hold.

All types are frozen and neutral: no driver type, no wire type. Times are aware UTC datetimes with
microseconds. Identifiers are 1-256 ASCII letters, digits and ``. _ : -``, compared byte for byte
(004-48).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from providers.entries import RecallEntry

ACTOR_FINGERPRINT_LENGTH = 64


class Kind(StrEnum):
    """What a record is (004-46)."""

    MEMORY = "memory"
    DECISION = "decision"
    PROPOSAL = "proposal"
    SESSION_CONTEXT = "session_context"


class State(StrEnum):
    """Where a record stands in its life (004-47)."""

    PENDING = "pending"
    ACTIVE = "active"
    ARCHIVED = "archived"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"
    PROMOTED = "promoted"
    FORGOTTEN = "forgotten"


class Trust(StrEnum):
    """Whether somebody with authority stands behind a record (004-47)."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    LEGACY = "legacy"


class ChangeKind(StrEnum):
    """What a revision changed (004-54)."""

    CREATED = "created"
    UPDATED = "updated"
    PROPOSAL_CREATED = "proposal_created"
    PROPOSAL_REJECTED = "proposal_rejected"
    PROPOSAL_PROMOTED = "proposal_promoted"
    DECISION_ARCHIVED = "decision_archived"
    DECISION_APPROVED = "decision_approved"
    DECISION_RESTORED = "decision_restored"
    DECISION_SUPERSEDED = "decision_superseded"
    IMPORTED = "imported"
    ARCHIVED = "archived"
    UNARCHIVED = "unarchived"
    APPROVED = "approved"
    REJECTED = "rejected"
    REOPENED = "reopened"
    REINFORCED = "reinforced"
    FORGOTTEN = "forgotten"
    SUPERSEDED = "superseded"


class MemoryKind(StrEnum):
    """What sort of thing a memory holds (000-05)."""

    PROFILE = "profile"
    STANDING = "standing"
    FACT = "fact"
    DECISION = "decision"
    NOTE = "note"
    EPISODE = "episode"
    REFERENCE = "reference"
    LEGACY = "legacy"


class DeliveryPolicy(StrEnum):
    """When a memory is delivered to a model (000-06)."""

    ALWAYS = "always"
    RETRIEVED = "retrieved"
    ON_DEMAND = "on_demand"


class BeliefType(StrEnum):
    """What sort of belief a memory states."""

    FACT = "fact"
    PREFERENCE = "preference"
    RELATIONSHIP = "relationship"
    USER_MODEL_ATTR = "user_model_attr"
    PROCEDURE_POINTER = "procedure_pointer"


class SourceType(StrEnum):
    """Where the text of a memory came from (000-08)."""

    OPERATOR = "operator"
    MANUAL = "manual"
    AGENT = "agent"
    EXTRACTED = "extracted"
    HARVEST = "harvest"
    CONVERSATION = "conversation"
    CHAT = "chat"
    BACKGROUND_REPORT = "background_report"
    ORCHESTRATION = "orchestration"
    TEXT = "text"
    MARKDOWN = "markdown"
    PDF = "pdf"
    HTML = "html"
    AUDIO = "audio"
    VIDEO = "video"
    IMAGE = "image"
    WEB = "web"
    INGEST = "ingest"
    EXTERNAL = "external"


class OriginTier(StrEnum):
    """How far the origin of a memory is trusted (000-08). Never raised after creation."""

    EXTERNAL = "external"
    AGENT = "agent"
    OPERATOR = "operator"


class Sensitivity(StrEnum):
    """How sensitive a memory is, lowest first."""

    PUBLIC = "public"
    INTERNAL = "internal"
    SENSITIVE = "sensitive"
    RESTRICTED = "restricted"


class Portability(StrEnum):
    """How far a memory may travel."""

    PORTABLE = "portable"
    CONTEXTUAL = "contextual"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class ProjectKey:
    """The root of every key in every store. Equal project ids of two tenants are two projects."""

    tenant_id: str
    project_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacet:
    """What is known about a record as a memory.

    Absent is ``None``; limits are the broker's to check.
    """

    memory_kind: MemoryKind | None = None
    delivery_policy: DeliveryPolicy | None = None
    namespace: str | None = None
    subject: str | None = None
    belief_type: BeliefType | None = None
    source: str | None = None
    source_type: SourceType | None = None
    origin_tier: OriginTier | None = None
    sensitivity: Sensitivity | None = None
    expire_time: datetime | None = None
    confidence: float | None = None
    epoch: str | None = None
    portability: Portability | None = None
    metadata: Mapping[str, object] | None = None
    corroboration: int = 0
    last_reinforce_time: datetime | None = None
    flagged: bool = False
    invalidate_time: datetime | None = None
    invalidation_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a record says: the set of fields that one edit replaces as a whole."""

    type: str
    title: str | None
    content: str
    rationale: str | None
    importance: float
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One immutable snapshot of a record (004-52).

    ``revision`` counts from 1 without a gap; ``previous_revision_id`` links to the revision before
    and is ``None`` at 1. ``actor_fingerprint`` is 64 lower-case hex digits (004-20), or ``None`` in
    imported history.
    """

    record_id: str
    agent_id: str
    kind: Kind
    revision: int
    revision_id: str
    previous_revision_id: str | None
    content: Content
    facet: MemoryFacet | None
    state: State
    trust: Trust
    source_run_id: str | None
    source_session_id: str | None
    promoted_decision_id: str | None
    superseded_by_record_id: str | None
    reason: str | None
    change_kind: ChangeKind | None
    actor_fingerprint: str | None
    create_time: datetime


@dataclass(frozen=True, slots=True)
class Record:
    """A head: the newest revision of a record, and when its first one was written.

    That a head equals its newest revision holds by construction; its update time is
    ``current.create_time``.
    """

    current: Revision
    create_time: datetime


@dataclass(frozen=True, slots=True)
class RevisionRef:
    """Names one revision of one record."""

    record_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class ReceiptKey:
    """The scope of an idempotency key inside one project of one resource (004-62)."""

    actor_fingerprint: str
    idempotency_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyReceipt:
    """The proof that a write happened. Committed with it, kept for ever, never changed (004-63).

    It holds references and no content: the reply is rebuilt from immutable revisions.
    ``fingerprint`` is 64 lower-case hex digits over the normalised request. ``outcome`` holds enum
    names, booleans and numbers, at most 1 KiB as JSON.
    """

    key: ReceiptKey
    method: str
    fingerprint: str
    refs: tuple[RevisionRef, ...]
    effect_id: str | None = None
    outcome: Mapping[str, str | bool | int | float] = field(default_factory=dict)
    create_time: datetime


@dataclass(frozen=True, slots=True)
class HeadPut:
    """A head to put over the revision it expects; ``None``: the record must not exist (004-55).

    ``entry`` replaces the whole entry of the head, its vector too, where there is none any more;
    ``None`` keeps what is there. Whoever changes what a head says gives one.
    """

    record: Record
    expected_revision: int | None
    entry: RecallEntry | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """Takes a key for a record.

    ``held_by`` names the record that must hold it now; ``None``: nobody may.
    """

    key: str
    record_id: str
    held_by: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimRelease:
    """Gives a key back if the record holds it; otherwise nothing happens."""

    key: str
    record_id: str


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Says that what a key stands for was removed on purpose. Replaces whatever the key held."""

    key: str
    kind: str
    create_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedEffect:
    """The redacted receipt of an accepted decision, and the intent to deliver it (004-72).

    ``sequence`` counts from 1 inside the stream of (tenant, project, run); committing it expects
    the stream's counter to be ``sequence - 1``. ``receipt`` holds the other fields of the receipt:
    identifiers, numbers and times, no content.
    """

    receipt_id: str
    run_id: str
    sequence: int
    receipt: Mapping[str, str | int | None]
    accept_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSet:
    """All that one commit applies, or none of it.

    Each head appends its ``current`` revision; ``history`` holds further revisions of the same
    heads (imports). A key occurs at most once among claims, releases and tombstones.
    ``graph_expected`` and ``transfer_expected`` are the counters read by ``load``: committing
    advances them by one. A set that puts a tombstone advances the transfer counter too, expected or
    not.
    """

    project: ProjectKey
    receipt: IdempotencyReceipt
    heads: tuple[HeadPut, ...] = ()
    history: tuple[Revision, ...] = ()
    claims: tuple[Claim, ...] = ()
    releases: tuple[ClaimRelease, ...] = ()
    must_be_absent: tuple[str, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    graph_expected: int | None = None
    transfer_expected: int | None = None
    effect: AcceptedEffect | None = None


@dataclass(frozen=True, slots=True)
class ResourceIdentity:
    """Which resource this is, and which life of it.

    The operator raises the generation when a backup is restored.
    """

    resource_id: str
    generation: int

"""What the reference keeps, and what all of its methods begin with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from providers.deliveries import Acknowledgement
from providers.entries import RecallEntry
from providers.errors import (
    ProviderClosedError,
    ResourceMismatchError,
    StoredDataInvalidError,
)
from providers.interface import IMemoryProvider
from providers.model import (
    AcceptedEffect,
    IdempotencyReceipt,
    ProjectKey,
    ReceiptKey,
    Record,
    ResourceIdentity,
    Revision,
    RevisionRef,
    Tombstone,
)


@dataclass
class Delivery:
    """Where the delivery of one effect stands."""

    token: str | None = None
    leased_until: datetime | None = None
    last_code: str | None = None
    acknowledgement: Acknowledgement | None = None

    @property
    def delivered(self) -> bool:
        """Whether it was acknowledged."""
        return self.acknowledgement is not None


@dataclass
class Shelf:
    """All that is kept of one project."""

    heads: dict[str, Record] = field(default_factory=dict)
    entries: dict[str, RecallEntry] = field(default_factory=dict)
    revisions: dict[RevisionRef, Revision] = field(default_factory=dict)
    receipts: dict[ReceiptKey, IdempotencyReceipt] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    tombstones: dict[str, Tombstone] = field(default_factory=dict)
    graph: int = 0
    transfer: int = 0
    streams: dict[str, int] = field(default_factory=dict)
    effects: dict[str, AcceptedEffect] = field(default_factory=dict)
    deliveries: dict[str, Delivery] = field(default_factory=dict)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class ReferenceStore:
    """The resource that providers share. ``marker`` is ``None`` where none was ever written."""

    marker: ResourceIdentity | None
    shelves: dict[ProjectKey, Shelf] = field(default_factory=dict)
    clock: Callable[[], datetime] = _now


class ReferenceParts(IMemoryProvider):
    """What every part of the reference needs."""

    def __init__(self, store: ReferenceStore, resource: ResourceIdentity) -> None:
        """Open a provider that is configured for ``resource`` on what ``store`` really is."""
        self._store = store
        self._resource = resource
        self._closed = False

    def _opened(self, project: ProjectKey) -> Shelf:
        self._check_open()
        self._check_marker()
        return self._shelf(project)

    def _check_open(self) -> None:
        if self._closed:
            raise ProviderClosedError("the provider was closed")

    def _check_marker(self) -> None:
        if self._store.marker != self._resource:
            raise ResourceMismatchError("the resource is not the configured one")

    def _shelf(self, project: ProjectKey) -> Shelf:
        return self._store.shelves.setdefault(project, Shelf())

    def _head(self, shelf: Shelf, record_id: str) -> Record | None:
        record = shelf.heads.get(record_id)
        if record is not None and record.current.record_id != record_id:
            raise StoredDataInvalidError("a head is stored under another record's id")
        return record

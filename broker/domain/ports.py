"""What the use cases need from outside. Wiring hands in what fulfils it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from broker.domain.authority import Authorized, Need, RunSelection, RunSelections
from broker.domain.call import Call, Caller, ProjectScope, RunScope
from broker.domain.delivery import DeliveryCode, DeliveryOutcome
from broker.domain.effects import EffectReceipt
from broker.domain.embedding import Embedded
from broker.domain.errors import CapabilityNotNegotiatedError
from providers.capabilities import Capability
from providers.deliveries import Acknowledgement, EffectRequest
from providers.interface import IMemoryProvider
from providers.model import AcceptedEffect, ResourceIdentity


class AuthorityPort(Protocol):
    """Asks the owner what the caller may do, afresh every time. Nothing is remembered (004-01)."""

    async def check(self, call: Call, scope: RunScope | ProjectScope, need: Need) -> Authorized:
        """Check ①: one owner round trip; permissions are judged, the selection is kept for later.

        Raises:
            TokenRejectedByOwnerError, PermissionMissingError, TokenBindingMismatchError,
            TokenBoundError,
            TokenPurposeBoundError, AuthorityResponseInvalidError: not retryable.
            AuthorityUnavailableError: retryable.
            DeadlineExceededError: the call's time ran out.
        """
        ...

    async def recheck(self, first: Authorized, need: Need) -> Authorized:
        """Check ②: the same again; identity and selection must be as before (004-15..17).

        The answer is the fresher one: what is decided after it is decided by it.

        ``need`` may ask for more than the first check did.

        Raises:
            What ``check`` raises.
            AuthorityChangedError: the identity or tenant differs. Not retryable.
            RunSelectionChangedError: the selection differs. Not retryable.
        """
        ...


class CallersAuthorityPort(AuthorityPort, Protocol):
    """Asks about callers who name no project too (004-81)."""

    async def check_caller(self, call: Call) -> str:
        """Return the tenant of a caller who names no project: one owner round trip.

        Raises:
            What ``check`` raises of a caller and not of a project.
        """
        ...


class RunsAuthorityPort(AuthorityPort, Protocol):
    """Asks about the selections of many runs of a project too (004-69)."""

    async def check_runs(
        self, first: Authorized, need: Need, run_ids: Sequence[str]
    ) -> RunSelections:
        """Return what the owner says about each run, in the order given.

        It belongs to check ①: every answer is held against ``first``, and permissions are judged
        by each. One owner round trip for every 500 runs; none for no run.

        Raises:
            What ``AuthorityPort.check`` raises.
            AuthorityChangedError: the identity or tenant differs. Not retryable.
        """
        ...

    async def recheck_runs(self, first: Authorized, need: Need, selections: RunSelections) -> None:
        """Check ②: identity, permissions and every selection again, which must be as before.

        As many round trips as ``check_runs`` took, but at least one.

        Raises:
            What ``AuthorityPort.recheck`` raises.
            OfRunError: a selection differs: RunSelectionChangedError. Not retryable.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The immutable binding of a run to one life of one resource of one provider (004-28)."""

    tenant_id: str
    project_id: str
    run_id: str
    project_revision: int
    project_configuration_revision: int
    context_revision: str
    provider_id: str
    adapter_version: str
    options_schema_version: int
    options_revision: str
    resource: ResourceIdentity
    capabilities: frozenset[str]
    create_time: datetime | None = field(default=None, compare=False)
    """When it was committed; ``None`` before that."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The one provider of a run and what was negotiated when the run was pinned.

    ``capabilities`` are names; one that the broker does not know opens nothing.
    """

    provider: IMemoryProvider
    provider_id: str
    capabilities: frozenset[str]
    pin: Pin

    def require(self, capability: Capability) -> IMemoryProvider:
        """Return the provider if the pin holds the capability.

        Raises:
            CapabilityNotNegotiatedError: it does not. Not retryable.
        """
        if capability not in self.capabilities:
            raise CapabilityNotNegotiatedError(capability)
        return self.provider


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInfo:
    """One entry of the catalog, as callers may know it."""

    provider_id: str
    adapter_version: str
    options_schema_version: int
    options_revision: str
    hosting: str
    advertised: tuple[str, ...]
    enabled: bool


class CatalogPort(Protocol):
    """What this process offers, fixed for its life (004-32)."""

    def providers(self) -> tuple[ProviderInfo, ...]:
        """Return every entry, sorted by id."""
        ...


class BindingPort(Protocol):
    """Finds or makes the immutable pin of a run (004-28)."""

    async def bind(self, authorized: Authorized, *, create: bool) -> Bound:
        """Return the pinned provider of the run; ``create`` pins it on first use.

        Raises:
            What ``Authorized.selected`` raises.
            ProviderSelectionInvalidError, ProviderNegotiationFailedError, BindingMissingError,
            RunSelectionChangedError, BindingMismatchError: not retryable.
            StorageUnavailableError, providers.errors.ProviderUnavailableError: retryable.
        """
        ...


class PinStore(Protocol):
    """Keeps pins for ever. Times out and fails as StorageUnavailableError."""

    async def find(self, tenant_id: str, project_id: str, run_id: str) -> Pin | None:
        """Return the committed pin of a run, or ``None``."""
        ...

    async def insert_if_absent(self, pin: Pin) -> Pin:
        """Insert the pin unless the run has one, and return what is committed then."""
        ...


class EventsPort(Protocol):
    """The Events service (004-76)."""

    async def admit(
        self, call: Call, receipt: EffectReceipt, authorization: str, *, timeout: float
    ) -> Acknowledgement | DeliveryCode:
        """Hand over what names a receipt, once; return the acknowledgement, or why there is none.

        ``authorization`` is the value for the Events service; it is forwarded and goes nowhere
        else.
        """
        ...


class Place(Protocol):
    """One of the places of ``PlacesPort``. Give it back when the work is over."""

    def release(self) -> None:
        """Give the place to the next in line; twice does no harm."""
        ...


class PlacesPort(Protocol):
    """A bounded number of places, of which nobody may have more than a half."""

    async def take(self, whose: str) -> Place:
        """Wait in line for a place. Cancelling the wait leaves the line.

        Raises:
            OverloadedError: the line is full, or the half of it that one may have. Retryable.
        """
        ...


class RelayPort(Protocol):
    """Delivers accepted effects when a caller says so; nothing is delivered by itself (004-75)."""

    async def deliver(self, call: Call, bound: Bound, named: EffectRequest) -> DeliveryOutcome:
        """Give the call's place away and try to deliver once, inside of what time the call has.

        It fails in no way but by a code: what was accepted stays accepted (004-78).
        """
        ...


class UnscopedEffectsPort(Protocol):
    """Finds a receipt in the native stores of this process without naming its project (004-81)."""

    async def find(
        self, tenant_id: str, receipt_id: str, caller: Caller, *, timeout: float
    ) -> AcceptedEffect | None:
        """Return the caller's own effect.

        Raises:
            What providers raise.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PinQuery:
    """Which pins of a project are wanted.

    Those of ``run_ids``, at most 500, where they are given, those of one provider, and those
    committed from a time on and before another. ``limit`` is above 0.
    """

    tenant_id: str
    project_id: str
    run_ids: tuple[str, ...] = ()
    provider_id: str | None = None
    committed_from: datetime | None = None
    committed_before: datetime | None = None
    limit: int


class ProjectPins(Protocol):
    """Finds the pins of a project. Times out and fails as StorageUnavailableError."""

    async def list(self, query: PinQuery) -> tuple[Pin, ...]:
        """Return the first committed pins, by run id, byte for byte."""
        ...

    async def count(self, query: PinQuery) -> int:
        """Return how many pins ``list`` would return, without reading them."""
        ...


class ProjectBindings(Protocol):
    """Judges pins that are there already; makes none (004-69)."""

    def bound(self, pin: Pin, selection: RunSelection) -> Bound:
        """Return the pinned provider of a run. Nothing is asked.

        Raises:
            ProviderSelectionInvalidError: the selection differs from the catalog. Not retryable.
            RunSelectionChangedError: it differs from the pin. Not retryable.
        """
        ...

    async def verify(self, bound: Sequence[Bound], *, timeout: float) -> None:
        """Compare the live resource with all pins to it: one round trip of its provider.

        ``bound`` holds runs of one provider, at least one; ``timeout`` is in seconds.

        Raises:
            OfRunError: the first run that does not fit: BindingMismatchError or
                ProviderNegotiationFailedError, not retryable.
            ProviderUnavailableError and others of providers.errors.
        """
        ...


class EmbeddingPort(Protocol):
    """Turns texts into vectors, where that is configured."""

    @property
    def is_on(self) -> bool:
        """Whether a model is configured."""
        ...

    async def embed(
        self, texts: Sequence[str], *, tenant_id: str, restricted: bool, timeout: float
    ) -> Embedded:
        """Return the vectors of 1-100 texts, or why there are none; nothing is raised for that.

        All vectors come of one model and have one dimension; the same text has the same one. Where
        a model takes no more of a text, the rest of it counts for nothing.

        Args:
            texts: Without lone surrogates.
            tenant_id: Whose they are.
            restricted: Whether one of them is; it then leaves the process in no case.
            timeout: In seconds, for everything. Give what the call has left: a time-out that comes
                of it says nothing against the endpoint and opens no breaker.

        Raises:
            ValueError: there are not 1-100 texts. Not retryable.
        """
        ...


class Clock(Protocol):
    """The broker's clock."""

    def now(self) -> datetime:
        """Return the time, aware, UTC, in microseconds."""
        ...

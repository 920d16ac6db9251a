"""Delivers one accepted effect: lease it, call the Events service, acknowledge or give it back."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from structlog.typing import FilteringBoundLogger

from broker.domain.call import Call
from broker.domain.delivery import DeliveryCode, DeliveryOutcome
from broker.domain.effects import EffectReceipt, receipt_of
from broker.domain.errors import OverloadedError
from broker.domain.ports import Bound, EventsPort, PlacesPort
from broker.telemetry.logs import describe
from providers.capabilities import Capability
from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectRequest,
    LeaseRequest,
)
from providers.errors import (
    OutcomeUnknownError,
    ProviderError,
    ProviderThrottledError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    StorageFullError,
    StoredDataInvalidError,
)

LEASE_MS: Final = 30_000
STORE_S: Final = 2.0
"""The most one step at the store may take; the last one may outlive its call by as much."""
MARGIN_S: Final = 0.25
"""What is left of a call's time for its reply."""

Observe = Callable[[str, float], None]
"""Takes ``delivered`` or a code, and seconds."""

T = TypeVar("T")

_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] [\x21-\x7e]+\Z")
_STORE_CODES: Final[tuple[tuple[type[ProviderError], DeliveryCode], ...]] = (
    (ProviderTimeoutError, DeliveryCode.STORAGE_TIMEOUT),
    (ProviderUnavailableError, DeliveryCode.STORAGE_UNAVAILABLE),
    (OutcomeUnknownError, DeliveryCode.STORAGE_UNAVAILABLE),
    (ProviderThrottledError, DeliveryCode.STORAGE_UNAVAILABLE),
    (StorageFullError, DeliveryCode.STORAGE_UNAVAILABLE),
    (StoredDataInvalidError, DeliveryCode.OUTBOX_INVALID),
    (ProviderError, DeliveryCode.PROVIDER_UNAVAILABLE),
)


class _FailedError(Exception):
    """The delivery ends here, pending."""

    def __init__(self, code: DeliveryCode) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class _Job:
    """One delivery. ``admitting`` is its call of the Events service; ``gone``: nobody waits."""

    call: Call
    bound: Bound
    named: EffectRequest
    end: float
    admitting: asyncio.Task[Acknowledgement | DeliveryCode] | None = None
    gone: bool = False

    def left(self) -> float:
        """Return the seconds left for the Events service."""
        return self.end - asyncio.get_running_loop().time()

    def check_wanted(self) -> None:
        """Go no further where nobody waits, or no time is left."""
        if self.gone or self.left() <= 0.0:
            raise _FailedError(DeliveryCode.CANCELLED if self.gone else DeliveryCode.TIMEOUT)


class Relay:
    """Fulfils ``RelayPort``. Holds no state but the deliveries that are running."""

    def __init__(
        self,
        events: EventsPort,
        places: PlacesPort,
        *,
        audience: str,
        observe: Observe,
        log: FilteringBoundLogger,
    ) -> None:
        """Take the Events service and the audience of its tokens, places, and who is told."""
        self._events = events
        self._places = places
        self._audience = audience
        self._observe = observe
        self._log = log
        self._running: set[asyncio.Task[DeliveryOutcome]] = set()

    async def deliver(self, call: Call, bound: Bound, named: EffectRequest) -> DeliveryOutcome:
        """Try to deliver once; see ``RelayPort``.

        The delivery goes on by itself where the call ends first, so that its lease is given back.
        """
        call.give_place()
        budget = call.remaining() - MARGIN_S
        if budget <= 0.0:
            return DeliveryOutcome(code=DeliveryCode.TIMEOUT)
        job = _Job(call, bound, named, asyncio.get_running_loop().time() + budget)
        task = asyncio.create_task(self._measured(job))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            async with asyncio.timeout(budget):
                return await asyncio.shield(task)
        except TimeoutError:
            return DeliveryOutcome(code=DeliveryCode.TIMEOUT)
        except asyncio.CancelledError:
            job.gone = True
            if job.admitting is not None:
                job.admitting.cancel()
            raise

    async def drain(self) -> None:
        """Wait for deliveries whose calls went away. Each is bounded by its own times."""
        if self._running:
            await asyncio.wait(self._running)

    async def _measured(self, job: _Job) -> DeliveryOutcome:
        started = time.perf_counter()
        outcome = await self._placed(job)
        self._observe(outcome.code or "delivered", time.perf_counter() - started)
        return outcome

    async def _placed(self, job: _Job) -> DeliveryOutcome:
        """Deliver in a place, of which one tenant has at most half: its Events may be slow."""
        try:
            async with asyncio.timeout(max(0.0, job.left())):
                place = await self._places.take(job.named.project.tenant_id)
        except OverloadedError:
            return DeliveryOutcome(code=DeliveryCode.BUSY)
        except TimeoutError:
            return DeliveryOutcome(code=DeliveryCode.TIMEOUT)
        try:
            return await self._delivered(job)
        finally:
            place.release()

    async def _delivered(self, job: _Job) -> DeliveryOutcome:
        try:
            job.check_wanted()
            acquired = await self._acquired(job)
            if acquired.acknowledgement is not None:
                return DeliveryOutcome(acknowledgement=acquired.acknowledgement)
            lease = _lease(job, acquired)
        except _FailedError as failed:
            return DeliveryOutcome(code=failed.code)
        try:
            acknowledgement = await self._admitted(job, acquired)
            await _acknowledged(job, lease, acknowledgement)
        except _FailedError as failed:
            await self._released(job, lease, failed.code)
            return self._pending(job, failed.code)
        return DeliveryOutcome(acknowledgement=acknowledgement)

    async def _acquired(self, job: _Job) -> Acquired:
        if Capability.DELIVERY not in job.bound.capabilities:
            raise _FailedError(DeliveryCode.PROVIDER_UNAVAILABLE)
        request = AcquireRequest(
            project=job.named.project,
            run_id=job.named.run_id,
            receipt_id=job.named.receipt_id,
            lease_ms=LEASE_MS,
        )
        return await _stored(job.bound.provider.acquire(request, timeout=STORE_S))

    async def _admitted(self, job: _Job, acquired: Acquired) -> Acknowledgement:
        """Call the Events service about the receipt that the store keeps."""
        receipt = _receipt(job, acquired)
        authorization = _events_authorization(job.call)
        if authorization is None:
            raise _FailedError(DeliveryCode.TOKEN_INVALID)
        job.check_wanted()
        job.admitting = asyncio.ensure_future(
            self._events.admit(job.call, receipt, authorization, timeout=job.left())
        )
        try:
            answer = await job.admitting
        except asyncio.CancelledError as error:
            raise _FailedError(DeliveryCode.CANCELLED) from error
        if isinstance(answer, DeliveryCode):
            raise _FailedError(answer)
        return answer

    async def _released(self, job: _Job, lease: LeaseRequest, code: DeliveryCode) -> None:
        """Give the lease back; where that fails it expires by itself, and the log says so."""
        try:
            await job.bound.provider.release(lease, code=code, timeout=STORE_S)
        except ProviderError as error:
            self._log.warning("delivery_lease_not_released", code=code, **describe(error))

    def _pending(self, job: _Job, code: DeliveryCode) -> DeliveryOutcome:
        if code is not DeliveryCode.AUDIENCE_REQUIRED:
            return DeliveryOutcome(code=code)
        return DeliveryOutcome(
            code=code,
            required_subject=job.call.caller.subject,
            required_audience=self._audience,
        )


def _lease(job: _Job, acquired: Acquired) -> LeaseRequest:
    if acquired.effect is None:
        raise _FailedError(DeliveryCode.OUTBOX_MISSING)
    if acquired.token is None:
        raise _FailedError(DeliveryCode.BUSY)
    return LeaseRequest(
        project=job.named.project,
        run_id=job.named.run_id,
        receipt_id=job.named.receipt_id,
        token=acquired.token,
    )


def _receipt(job: _Job, acquired: Acquired) -> EffectReceipt:
    """Return the leased receipt, if it is what it is kept as."""
    named, effect = job.named, acquired.effect
    if effect is None:
        raise _FailedError(DeliveryCode.OUTBOX_MISSING)
    try:
        receipt = receipt_of(effect)
    except StoredDataInvalidError as error:
        raise _FailedError(DeliveryCode.RECEIPT_INVALID) from error
    kept_as = (named.project.tenant_id, named.project.project_id, named.run_id, named.receipt_id)
    says = (receipt.tenant_id, receipt.project_id, receipt.run_id, receipt.receipt_id)
    if says != kept_as:
        raise _FailedError(DeliveryCode.RECEIPT_INVALID)
    return receipt


async def _acknowledged(job: _Job, lease: LeaseRequest, acknowledgement: Acknowledgement) -> None:
    work = job.bound.provider.acknowledge(lease, acknowledgement=acknowledgement, timeout=STORE_S)
    if not await _stored(work):
        raise _FailedError(DeliveryCode.FENCED)


async def _stored(work: Awaitable[T]) -> T:
    try:
        return await work
    except ProviderError as error:
        raise _FailedError(
            next(code for kind, code in _STORE_CODES if isinstance(error, kind))
        ) from error


def _events_authorization(call: Call) -> str | None:
    """Return what is sent to the Events service, or ``None`` where the caller's is malformed."""
    match call.events_authorization:
        case ():
            return call.caller.bearer
        case (str(given),) if _BEARER.match(given):
            return given
        case _:
            return None

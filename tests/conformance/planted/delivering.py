"""The reference with one bug each in how it leases, acknowledges and lists effects."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter

from providers.conformance.reference import ReferenceMemoryProvider, Shelf
from providers.conformance.reference_shelves import Delivery
from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectFound,
    LeaseRequest,
    PendingEffects,
    PendingEffectsRequest,
)
from providers.errors import OutcomeUnknownError, ProviderTimeoutError
from providers.model import AcceptedEffect
from tests.conformance.linked_harness import LinkedProvider
from tests.conformance.planted.bug import caught_by

# -------------------- leases


@caught_by(
    "acknowledge_needs_the_token",
    "expired_lease_is_taken_and_fences_the_old",
    "release_keeps_the_code",
)
class AcknowledgesWithoutFence(ReferenceMemoryProvider):
    def _has_lease(self, delivery: Delivery, token: str) -> bool:
        return not delivery.delivered


@caught_by("expired_lease_acknowledges_nothing")
class AcknowledgesWhatHasExpired(ReferenceMemoryProvider):
    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        delivery = self._held(request)
        if delivery is not None:
            delivery.leased_until = datetime.max.replace(tzinfo=UTC)
        return await super().acknowledge(request, acknowledgement=acknowledgement, timeout=timeout)


@caught_by("lease_time_is_store_time")
class LeasesByTheClockOfTheProcess(ReferenceMemoryProvider):
    def _now(self) -> datetime:
        return datetime.now(UTC)


@caught_by("stream_order")
class IgnoresTheOrderOfTheStream(ReferenceMemoryProvider):
    def _is_next(self, shelf: Shelf, effect: AcceptedEffect) -> bool:
        return True


@caught_by("stream_order")
class TakesALeasedEffectForDelivered(ReferenceMemoryProvider):
    def _is_next(self, shelf: Shelf, effect: AcceptedEffect) -> bool:
        waiting = self._undelivered(shelf, effect.run_id)[: effect.sequence - 1]
        before = [each for each in waiting if each.sequence < effect.sequence]
        return all(self._leased(self._delivery(shelf, each)) for each in before)


@caught_by("streams_do_not_wait_for_each_other")
class OrdersAllRunsOfAProject(ReferenceMemoryProvider):
    def _is_next(self, shelf: Shelf, effect: AcceptedEffect) -> bool:
        waiting = [each for each in shelf.effects.values() if each.sequence < effect.sequence]
        others = [
            each
            for each in shelf.effects.values()
            if each.run_id < effect.run_id and not self._delivery(shelf, each).delivered
        ]
        return not others and all(self._delivery(shelf, each).delivered for each in waiting)


@caught_by("expired_lease_is_taken_and_fences_the_old", "lease_time_is_store_time")
class NeverEndsALease(ReferenceMemoryProvider):
    def _leased(self, delivery: Delivery) -> bool:
        return delivery.token is not None


@caught_by("lease_single_owner", "racing_claims_have_one_winner", "acknowledgement_comes_back")
class LeasesToEverybody(ReferenceMemoryProvider):
    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        shelf = self._shelf(request.project)
        shelf.deliveries.pop(request.receipt_id, None)
        return await super().acquire(request, timeout=timeout)


@caught_by("racing_claims_have_one_winner")
class LooksThenWaitsThenLeases(ReferenceMemoryProvider):
    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        shelf = self._shelf(request.project)
        before = replace(shelf.deliveries.get(request.receipt_id, Delivery()))
        await asyncio.sleep(0)
        shelf.deliveries[request.receipt_id] = before
        return await super().acquire(request, timeout=timeout)


@caught_by("racing_claims_have_one_winner", "expired_lease_is_taken_and_fences_the_old")
class KnowsOneTokenOnly(ReferenceMemoryProvider):
    def _new_token(self) -> str:
        return "token"


@caught_by("expired_lease_fenced_across_restart")
class LosesLeasesInACrash(LinkedProvider):
    async def ready(self, *, timeout: float) -> None:
        await super().ready(timeout=timeout)
        if self._link.server.crashes:
            for shelf in self._store.shelves.values():
                shelf.deliveries.clear()


# -------------------- what is kept


@caught_by("acknowledgement_comes_back")
class AcknowledgesAgain(ReferenceMemoryProvider):
    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        delivery = self._shelf(request.project).deliveries.get(request.receipt_id, Delivery())
        if delivery.delivered:
            delivery.acknowledgement = acknowledgement
            return True
        return await super().acknowledge(request, acknowledgement=acknowledgement, timeout=timeout)


@caught_by("acknowledgement_comes_back")
class KeepsTheCodeOfADeliveredEffect(ReferenceMemoryProvider):
    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        delivery = self._held(request)
        code = None if delivery is None else delivery.last_code
        done = await super().acknowledge(request, acknowledgement=acknowledgement, timeout=timeout)
        if delivery is not None:
            delivery.last_code = code
        return done


@caught_by("acknowledgement_comes_back")
class ForgetsTheAcknowledgement(ReferenceMemoryProvider):
    def _found(self, shelf: Shelf, effect: AcceptedEffect) -> EffectFound:
        return replace(super()._found(shelf, effect), acknowledgement=None)


@caught_by("release_keeps_the_code", "pending_lists_what_is_leased_too")
class ForgetsTheCode(ReferenceMemoryProvider):
    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        done = await super().release(request, code=code, timeout=timeout)
        self._delivery_of(request).last_code = None
        return done

    def _delivery_of(self, request: LeaseRequest) -> Delivery:
        return self._shelf(request.project).deliveries[request.receipt_id]


@caught_by("expired_lease_acknowledges_nothing")
class ReleasesLiveLeasesOnly(ReferenceMemoryProvider):
    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        delivery = self._held(request)
        if delivery is not None and not self._leased(delivery):
            return False
        return await super().release(request, code=code, timeout=timeout)


@caught_by("effect_comes_back_exactly")
class KeepsReceiptsAsText(ReferenceMemoryProvider):
    def _found(self, shelf: Shelf, effect: AcceptedEffect) -> EffectFound:
        receipt = {name: str(value) for name, value in effect.receipt.items()}
        return super()._found(shelf, replace(effect, receipt=receipt))


# -------------------- who finds it


@caught_by("effects_of_others_are_not_found")
class FindsTheEffectsOfAnyRun(ReferenceMemoryProvider):
    def _effect(self, shelf: Shelf, run_id: str, receipt_id: str) -> AcceptedEffect | None:
        return shelf.effects.get(receipt_id)


@caught_by("effects_of_others_are_not_found")
class ListsRunsByPrefix(ReferenceMemoryProvider):
    def _undelivered(self, shelf: Shelf, run_id: str) -> list[AcceptedEffect]:
        found = [each for each in shelf.effects.values() if each.run_id.startswith(run_id)]
        return sorted(found, key=attrgetter("sequence"))


@caught_by("pending_lists_what_is_leased_too")
class ListsWhatIsFreeOnly(ReferenceMemoryProvider):
    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        page = await super().pending_effects(request, timeout=timeout)
        deliveries = self._shelf(request.project).deliveries
        free = [
            each
            for each in page.effects
            if each.effect and not self._leased(deliveries[each.effect.receipt_id])
        ]
        return PendingEffects(tuple(free), page.more)


@caught_by("pending_pages_skip_nothing")
class CountsPlacesForSequences(ReferenceMemoryProvider):
    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        shelf = self._shelf(request.project)
        rest = self._undelivered(shelf, request.run_id)[request.after_sequence :]
        page = tuple(self._found(shelf, each) for each in rest[: request.limit])
        return PendingEffects(page, more=len(rest) > request.limit)


@caught_by("pending_pages_skip_nothing")
class SaysMoreWhenAPageIsFull(ReferenceMemoryProvider):
    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        page = await super().pending_effects(request, timeout=timeout)
        return PendingEffects(page.effects, more=len(page.effects) == request.limit)


# -------------------- on the way


@caught_by("delivery_is_one_round_trip")
class LooksBeforeItLeases(LinkedProvider):
    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        await self.ready(timeout=timeout)
        return await super().acquire(request, timeout=timeout)


@caught_by("lost_delivery_replies_are_unknown")
class CallsALostAcknowledgementFailed(LinkedProvider):
    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        try:
            return await super().acknowledge(
                request, acknowledgement=acknowledgement, timeout=timeout
            )
        except OutcomeUnknownError as error:
            raise ProviderTimeoutError("no reply") from error

"""How the reference delivers effects: a lease is a token and a time of the store's clock."""

from copy import deepcopy
from datetime import datetime, timedelta
from secrets import token_hex

from providers import rules
from providers.conformance.reference_shelves import Delivery, ReferenceParts, Shelf
from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectFound,
    EffectRequest,
    LeaseRequest,
    PendingEffects,
    PendingEffectsRequest,
)
from providers.model import AcceptedEffect


class ReferenceDelivery(ReferenceParts):
    """The part of the reference that leases and acknowledges effects."""

    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        """See ``IMemoryProvider.acquire``."""
        shelf = self._opened(request.project)
        effect = self._effect(shelf, request.run_id, request.receipt_id)
        if effect is None:
            return Acquired(None, None)
        delivery = self._delivery(shelf, effect)
        if delivery.delivered or self._leased(delivery) or not self._is_next(shelf, effect):
            refused = Acquired(None, effect, delivery.delivered, delivery.acknowledgement)
            return deepcopy(refused)
        delivery.token = self._new_token()
        delivery.leased_until = self._now() + timedelta(milliseconds=request.lease_ms)
        return Acquired(delivery.token, deepcopy(effect))

    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        """See ``IMemoryProvider.acknowledge``."""
        delivery = self._held(request)
        if delivery is None or not self._leased(delivery):
            return False
        delivery.token = delivery.leased_until = delivery.last_code = None
        delivery.acknowledgement = acknowledgement
        return True

    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        """See ``IMemoryProvider.release``."""
        self._check_open()
        rules.check_code(code)
        delivery = self._held(request)
        if delivery is None:
            return False
        delivery.token = delivery.leased_until = None
        delivery.last_code = code
        return True

    async def effect(self, request: EffectRequest, *, timeout: float) -> EffectFound:
        """See ``IMemoryProvider.effect``."""
        shelf = self._opened(request.project)
        effect = self._effect(shelf, request.run_id, request.receipt_id)
        return EffectFound(None) if effect is None else self._found(shelf, effect)

    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        """See ``IMemoryProvider.pending_effects``."""
        shelf = self._opened(request.project)
        pending = [
            each
            for each in self._undelivered(shelf, request.run_id)
            if each.sequence > request.after_sequence
        ]
        page = tuple(self._found(shelf, each) for each in pending[: request.limit])
        return PendingEffects(page, more=len(pending) > request.limit)

    # -------------------- what a lease is

    def _now(self) -> datetime:
        return self._store.clock()

    def _new_token(self) -> str:
        return token_hex(16)

    def _leased(self, delivery: Delivery) -> bool:
        return delivery.leased_until is not None and self._now() < delivery.leased_until

    def _is_next(self, shelf: Shelf, effect: AcceptedEffect) -> bool:
        """Tell whether no earlier effect of the stream is undelivered."""
        return self._undelivered(shelf, effect.run_id)[:1] == [effect]

    def _held(self, request: LeaseRequest) -> Delivery | None:
        """Return the delivery that this token holds, expired or not."""
        shelf = self._opened(request.project)
        effect = self._effect(shelf, request.run_id, request.receipt_id)
        delivery = None if effect is None else self._delivery(shelf, effect)
        return delivery if delivery and self._has_lease(delivery, request.token) else None

    def _has_lease(self, delivery: Delivery, token: str) -> bool:
        return delivery.token == token and not delivery.delivered

    # -------------------- looking

    def _effect(self, shelf: Shelf, run_id: str, receipt_id: str) -> AcceptedEffect | None:
        effect = shelf.effects.get(receipt_id)
        return effect if effect is not None and effect.run_id == run_id else None

    def _delivery(self, shelf: Shelf, effect: AcceptedEffect) -> Delivery:
        return shelf.deliveries.setdefault(effect.receipt_id, Delivery())

    def _undelivered(self, shelf: Shelf, run_id: str) -> list[AcceptedEffect]:
        """List what is undelivered of one stream, in its order."""
        mine = [
            each
            for each in shelf.effects.values()
            if each.run_id == run_id and not self._delivery(shelf, each).delivered
        ]
        return sorted(mine, key=lambda each: each.sequence)

    def _found(self, shelf: Shelf, effect: AcceptedEffect) -> EffectFound:
        now = self._delivery(shelf, effect)
        return deepcopy(EffectFound(effect, now.delivered, now.last_code, now.acknowledgement))

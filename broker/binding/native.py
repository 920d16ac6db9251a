"""Looks for receipts in the native stores of this process (004-81). Pins play no part in it."""

import asyncio
from collections.abc import Sequence

from broker.domain.call import Caller
from providers.deliveries import UnscopedEffectRequest, UnscopedEffects
from providers.model import AcceptedEffect


class NativeEffects:
    """Fulfils ``UnscopedEffectsPort``."""

    def __init__(self, stores: Sequence[UnscopedEffects]) -> None:
        """Take the stores to look in."""
        self._stores = stores

    async def find(
        self, tenant_id: str, receipt_id: str, caller: Caller, *, timeout: float
    ) -> AcceptedEffect | None:
        """Return the caller's own effect; see ``UnscopedEffectsPort``. Every store must answer."""
        request = UnscopedEffectRequest(
            tenant_id=tenant_id,
            receipt_id=receipt_id,
            issuer=caller.issuer,
            subject=caller.subject,
        )
        answers = await asyncio.gather(
            *(store.unscoped_effect(request, timeout=timeout) for store in self._stores)
        )
        found = (answer.found.effect for answer in answers)
        return next((effect for effect in found if effect is not None), None)

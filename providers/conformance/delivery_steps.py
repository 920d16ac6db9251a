"""What laws of delivery do: accept effects, lease them, acknowledge them, look."""

import asyncio
from typing import Any

from providers.conformance import expect, specimens
from providers.conformance.steps import SECONDS, committed
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
from providers.interface import IMemoryProvider
from providers.model import AcceptedEffect, ProjectKey

RUN = "run-1"
LONG_MS = 600_000
"""A lease that outlives every law."""
SHORT_MS = 150
PATIENCE_SECONDS = 20.0
"""How long a law waits for a lease to end, or for a stream to be delivered."""


async def accepted(
    provider: IMemoryProvider, project: ProjectKey, count: int = 1, *, run_id: str = RUN
) -> list[AcceptedEffect]:
    """Accept so many effects, the first of their stream."""
    effects = [specimens.effect(number + 1, run_id=run_id) for number in range(count)]
    await committed(provider, *(specimens.write(project, effect=each) for each in effects))
    return effects


async def acquire(
    provider: IMemoryProvider,
    project: ProjectKey,
    effect: AcceptedEffect,
    *,
    lease_ms: int = LONG_MS,
    **changes: Any,
) -> Acquired:
    """Ask for the lease; ``changes`` are fields of the request."""
    named = {"run_id": effect.run_id, "receipt_id": effect.receipt_id, **changes}
    request = AcquireRequest(project=project, lease_ms=lease_ms, **named)
    return await provider.acquire(request, timeout=SECONDS)


async def leased(
    provider: IMemoryProvider,
    project: ProjectKey,
    effect: AcceptedEffect,
    *,
    lease_ms: int = LONG_MS,
) -> str:
    """Expect to get the lease and return its token."""
    got = await acquire(provider, project, effect, lease_ms=lease_ms)
    expect.equal(got.effect, effect, "the effect that is leased")
    expect.equal((got.delivered, got.acknowledgement), (False, None), "what is leased")
    token = expect.some(got.token, f"the lease of effect {effect.sequence}")
    expect.that(token != "", "a token says something")
    return token


async def refused(provider: IMemoryProvider, project: ProjectKey, effect: AcceptedEffect) -> None:
    """Expect to get no lease of an effect that is there and undelivered."""
    got = await acquire(provider, project, effect)
    expect.equal(got, Acquired(None, effect), f"no lease of effect {effect.sequence}")


async def leased_again(
    provider: IMemoryProvider, project: ProjectKey, effect: AcceptedEffect
) -> str:
    """Wait until the lease of another is over and take it."""
    patience = Patience("a lease ends")
    while (got := await acquire(provider, project, effect)).token is None:
        await patience.wait()
    return expect.some(got.token, "the lease")


class Patience:
    """Waits for something a little at a time, and not for ever."""

    def __init__(self, what: str) -> None:
        """Begin to wait for ``what``."""
        self._what = what
        self._end = asyncio.get_running_loop().time() + PATIENCE_SECONDS

    async def wait(self) -> None:
        """Wait a little.

        Raises:
            LawBrokenError: It took too long.
        """
        expect.that(asyncio.get_running_loop().time() < self._end, self._what)
        await asyncio.sleep(0.01)


async def acknowledge(
    provider: IMemoryProvider,
    project: ProjectKey,
    effect: AcceptedEffect,
    token: str,
    *,
    answer: Acknowledgement | None = None,
    **changes: Any,
) -> bool:
    """Acknowledge; ``changes`` are fields of the request."""
    return await provider.acknowledge(
        _lease(project, effect, token, changes),
        acknowledgement=answer or specimens.acknowledgement(effect.sequence),
        timeout=SECONDS,
    )


async def release(
    provider: IMemoryProvider,
    project: ProjectKey,
    effect: AcceptedEffect,
    token: str,
    *,
    code: str = "events_unavailable",
    **changes: Any,
) -> bool:
    """Give back; ``changes`` are fields of the request."""
    request = _lease(project, effect, token, changes)
    return await provider.release(request, code=code, timeout=SECONDS)


async def deliver(
    provider: IMemoryProvider, project: ProjectKey, *effects: AcceptedEffect
) -> list[Acknowledgement]:
    """Lease and acknowledge in turn; return what was acknowledged."""
    answers = [specimens.acknowledgement(each.sequence) for each in effects]
    for each, answer in zip(effects, answers, strict=True):
        token = await leased(provider, project, each)
        done = await acknowledge(provider, project, each, token, answer=answer)
        expect.equal(done, True, f"the acknowledgement of effect {each.sequence}")
    return answers


async def effect_of(
    provider: IMemoryProvider, project: ProjectKey, effect: AcceptedEffect, **changes: Any
) -> EffectFound:
    """Look at one effect; ``changes`` are fields of the request."""
    named = {"run_id": effect.run_id, "receipt_id": effect.receipt_id, **changes}
    return await provider.effect(EffectRequest(project=project, **named), timeout=SECONDS)


async def undelivered(
    provider: IMemoryProvider,
    project: ProjectKey,
    effect: AcceptedEffect,
    *,
    code: str | None = None,
) -> None:
    """Expect an effect to be there and undelivered, with this last code."""
    found = await effect_of(provider, project, effect)
    expect.equal(found, EffectFound(effect, last_code=code), "an undelivered effect")


async def pending(
    provider: IMemoryProvider,
    project: ProjectKey,
    *,
    run_id: str = RUN,
    after: int = 0,
    limit: int = 100,
) -> PendingEffects:
    """Read a page of what is pending."""
    request = PendingEffectsRequest(
        project=project, run_id=run_id, after_sequence=after, limit=limit
    )
    return await provider.pending_effects(request, timeout=SECONDS)


def _lease(
    project: ProjectKey, effect: AcceptedEffect, token: str, changes: dict[str, Any]
) -> LeaseRequest:
    named = {
        "project": project,
        "run_id": effect.run_id,
        "receipt_id": effect.receipt_id,
        "token": token,
    }
    return LeaseRequest(**{**named, **changes})

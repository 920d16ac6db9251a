"""Every call of the contract, made against a store that refuses it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import pytest

from providers.conformance import specimens
from providers.conformance.calls import CALLS
from providers.conformance.steps import SECONDS, load
from providers.errors import NegotiationRefusedError, OutcomeUnknownError, ProviderError
from providers.interface import IMemoryProvider
from providers.model import ProjectKey
from providers.requests import Committed

Calls = Mapping[str, Callable[[IMemoryProvider, ProjectKey], Awaitable[object]]]

PROJECT = ProjectKey("t1", "p1")


async def _load(provider: IMemoryProvider, project: ProjectKey) -> object:
    return await load(provider, project, "r1", stream_run_id="run-1")


async def _ready(provider: IMemoryProvider, _: ProjectKey) -> object:
    await provider.ready(timeout=SECONDS)
    return None


async def _commit(provider: IMemoryProvider, project: ProjectKey) -> object:
    made = specimens.create(project, specimens.memory(specimens.fresh("r")))
    return await provider.commit(made, timeout=SECONDS)


_ALL: Calls = {name: call for calls in CALLS.values() for name, call in calls.items()}
_OF_DELIVERY = ("acquire", "acknowledge", "release")
WRITES: Calls = {
    "commit": _commit,
    "a commit with an effect": _ALL["a commit with an effect"],
    **{name: _ALL[name] for name in (*_OF_DELIVERY, "index")},
}
READS: Calls = {
    "load": _load,
    "ready": _ready,
    **{name: call for name, call in _ALL.items() if name not in WRITES},
}
EVERY: Calls = {**READS, **WRITES}


async def works(provider: IMemoryProvider) -> None:
    """Expect a negotiation, a write and every read to end well."""
    await provider.negotiate(timeout=SECONDS)
    assert await _commit(provider, PROJECT) == Committed()
    for call in (*READS.values(), *(WRITES[name] for name in (*_OF_DELIVERY, "index"))):
        await call(provider, PROJECT)


async def refusal(work: Awaitable[object]) -> ProviderError:
    """Return the provider's error that a call ends with."""
    with pytest.raises(ProviderError) as refused:
        await work
    return refused.value


async def refusals(provider: IMemoryProvider, calls: Calls) -> dict[str, ProviderError]:
    """Return what each call is refused with."""
    told: dict[str, ProviderError] = {}
    for name, call in calls.items():
        try:
            await call(provider, PROJECT)
        except ProviderError as error:
            told[name] = error
    assert told.keys() == calls.keys()
    return told


def are_unfit(errors: Mapping[str, ProviderError], fact: str) -> None:
    """Expect each to name this fact."""
    told = {
        name: error.fact if isinstance(error, NegotiationRefusedError) else repr(error)
        for name, error in errors.items()
    }
    assert told == dict.fromkeys(errors, fact)


async def expect_unfit(provider: IMemoryProvider, fact: str, *, applied: bool = False) -> None:
    """Expect negotiation and each call to refuse the server by a fact.

    ``applied``: what is wrong is seen beside a write and not before it, so that its outcome is
    unknown.
    """
    are_unfit({"negotiate": await refusal(provider.negotiate(timeout=SECONDS))}, fact)
    are_unfit(await refusals(provider, READS), fact)
    told = await refusals(provider, WRITES)
    if applied:
        assert {type(error) for error in told.values()} == {OutcomeUnknownError}
        are_unfit({name: cause_of(error) for name, error in told.items()}, fact)
    else:
        are_unfit(told, fact)


def cause_of(error: ProviderError) -> ProviderError:
    """Return the error that is chained to another."""
    assert isinstance(error.__cause__, ProviderError)
    return error.__cause__


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; how long is the test's."""
    await asyncio.to_thread(_wait, holds)


def _wait(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.01)

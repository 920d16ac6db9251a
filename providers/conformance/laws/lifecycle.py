"""Readiness, closing, and calls that their caller gives up."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.calls import CALLS
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import (
    SECONDS,
    commit,
    committed,
    head,
    load,
    persist,
    stored,
)
from providers.errors import (
    OutcomeUnknownError,
    ProviderClosedError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from providers.model import WriteSet
from providers.requests import Committed, LoadRequest, Replayed

SHORT_SECONDS = 1.0
GRACE_SECONDS = 2.0
"""What a call may take beyond its time on a busy machine."""

AWAY = (ProviderTimeoutError, ProviderUnavailableError)


@law("R-1", "R-2", "G-5", capability=Capability.READ, facts=(StoreFact.FREEZABLE,))
async def ready_when_frozen_times_out(bench: Bench) -> None:
    """004-101: readiness answers in bounded time, and by itself again after a thaw."""
    await bench.provider.ready(timeout=SECONDS)
    await bench.freeze()
    call = bench.provider.ready(timeout=SHORT_SECONDS)
    waited = expect.within(SHORT_SECONDS + GRACE_SECONDS, call, "ready while frozen")
    await expect.raises(waited, *AWAY, what="ready while frozen")
    await bench.thaw()
    await persist(lambda: bench.provider.ready(timeout=SECONDS))


@law("G-4", "G-5", capability=Capability.WRITE, facts=(StoreFact.FREEZABLE,))
async def frozen_store_bounds_every_call(bench: Bench) -> None:
    """004-35: reads and commits end in their time; a retry settles the commit exactly once."""
    provider, project = bench.provider, bench.project()
    record = specimens.memory("r1")
    await committed(provider, specimens.create(project, record))
    late = specimens.update(project, record)
    await bench.freeze()
    asked = LoadRequest(project=project, record_ids=("r1",))
    reading = provider.load(asked, timeout=SHORT_SECONDS)
    waited = expect.within(SHORT_SECONDS + GRACE_SECONDS, reading, "load while frozen")
    await expect.raises(waited, *AWAY, what="load while frozen")
    writing = provider.commit(late, timeout=SHORT_SECONDS)
    bounded = expect.within(SHORT_SECONDS + GRACE_SECONDS, writing, "commit while frozen")
    await expect.raises(bounded, *AWAY, OutcomeUnknownError, what="commit while frozen")
    await bench.thaw()
    outcome = await persist(lambda: commit(provider, late))
    expect.one_of(outcome, (Committed, Replayed), "the retry after the thaw")
    await stored(provider, project, late.heads[0].record)


@law("G-9", capability=Capability.READ)
async def use_after_close(bench: Bench) -> None:
    """004-101: a closed provider says so, whatever is asked of it."""
    project = bench.project()
    provider = await bench.another()
    await committed(provider, specimens.create(project, specimens.memory("r1")))
    await provider.close()
    late = specimens.create(project, specimens.memory("r2"))
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "negotiate": lambda: provider.negotiate(timeout=SECONDS),
        "ready": lambda: provider.ready(timeout=SECONDS),
        "load": lambda: load(provider, project, "r1"),
        "commit": lambda: commit(provider, late),
    }
    for capability in bench.declaration.capabilities:
        for name, call in CALLS.get(capability, {}).items():
            calls[name] = partial(call, provider, project)
    for name, asked in calls.items():
        await expect.raises(asked(), ProviderClosedError, what=f"{name} after close")
    expect.equal(await head(bench.provider, project, "r2"), None, "a record written after close")


@law("G-9", capability=Capability.READ)
async def close_twice(bench: Bench) -> None:
    """004-101: closing again does nothing, and closing one instance leaves another alone."""
    project = bench.project()
    provider = await bench.another()
    await provider.close()
    await provider.close()
    call = load(provider, project, "r1")
    await expect.raises(call, ProviderClosedError, what="load after two closes")
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    await stored(bench.provider, project, record)


@law("G-8", capability=Capability.READ)
async def cancelled_reads_leave_the_provider_usable(bench: Bench) -> None:
    """004-15: callers that go away in the middle of a read cost later ones nothing."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    for turn in range(60):
        await _abandon(load(bench.provider, project, "r1", graph=True), steps=turn % 20)
    await asyncio.gather(*(stored(bench.provider, project, record) for _ in range(40)))


@law("G-8", "C-1", capability=Capability.WRITE)
async def cancelled_commits_happen_whole_or_not_at_all(bench: Bench) -> None:
    """004-63: after a cancelled commit a retry with its key settles it exactly once."""
    provider, project = bench.provider, bench.project()
    attempts: list[WriteSet] = []
    for turn in range(40):
        pair = [specimens.memory(f"r{turn}-{side}") for side in ("left", "right")]
        attempts.append(specimens.create(project, *pair))
        await _abandon(commit(provider, attempts[-1]), steps=turn % 20)
    for each in attempts:
        outcome = await persist(partial(commit, provider, each))
        expect.one_of(outcome, (Committed, Replayed), "the retry of a cancelled commit")
        await stored(provider, project, *(put.record for put in each.heads))


async def _abandon(call: Awaitable[object], *, steps: int) -> None:
    """Start a call, let it go so many steps, cancel it and wait for its end."""
    task = asyncio.ensure_future(call)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and isinstance(error := task.exception(), ProviderClosedError):
        raise error

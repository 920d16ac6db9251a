"""Lost replies and restarts: what is acknowledged stays, what is unknown can be settled."""

import asyncio
from functools import partial

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import (
    PASSING,
    SECONDS,
    commit,
    committed,
    load,
    persist,
    stored,
)
from providers.errors import (
    OutcomeUnknownError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from providers.model import Record, WriteSet
from providers.requests import Committed, LoadRequest, Replayed

SHORT_SECONDS = 1.5
GRACE_SECONDS = 2.0
WRITERS = 8


@law("G-4", "G-5", "C-9", capability=Capability.WRITE, facts=(StoreFact.LOSES_REPLIES,))
async def timeout_is_unknown(bench: Bench) -> None:
    """004-35: a commit without an answer is unknown, in its time; a read is merely late."""
    provider, project = bench.provider, bench.project()
    record = specimens.memory("r1")
    await committed(provider, specimens.create(project, record))
    lost = specimens.update(project, record, "nobody heard")
    await bench.lose_replies(to_writes=True)
    writing = provider.commit(lost, timeout=SHORT_SECONDS)
    waited = expect.within(SHORT_SECONDS + GRACE_SECONDS, writing, "the commit")
    await expect.raises(waited, OutcomeUnknownError, what="a commit without an answer")
    reading = provider.load(LoadRequest(project=project, record_ids=("r1",)), timeout=SHORT_SECONDS)
    bounded = expect.within(SHORT_SECONDS + GRACE_SECONDS, reading, "the load")
    late = (ProviderTimeoutError, ProviderUnavailableError)
    await expect.raises(bounded, *late, what="a load without an answer")
    await stored(await bench.another(), project, lost.heads[0].record)
    await bench.keep_replies()
    outcome = await persist(lambda: commit(provider, lost))
    expect.equal(outcome, Replayed(lost.receipt), "the retry")
    await stored(provider, project, lost.heads[0].record)


@law("C-7", capability=Capability.WRITE, facts=(StoreFact.DURABLE,))
async def recovers_after_restart(bench: Bench) -> None:
    """004-63, 004-101: what was written is there, and the provider works on by itself."""
    provider, project = bench.provider, bench.project()
    record = specimens.memory("r1")
    write = specimens.create(project, record, graph_expected=0, **specimens.claiming("r1", "k1"))
    await committed(provider, write)
    await bench.restart()
    await persist(lambda: provider.ready(timeout=SECONDS))
    loaded = await persist(lambda: load(provider, project, "r1", keys=("k1",), graph=True))
    expect.equal(dict(loaded.heads), {"r1": record}, "the head after a restart")
    expect.equal((len(loaded.keys), loaded.graph), (1, 1), "keys and counters after a restart")
    outcome = await persist(lambda: commit(provider, write))
    expect.equal(outcome, Replayed(write.receipt), "the retry after a restart")
    following = specimens.update(project, record, "life goes on")
    await persist(lambda: commit(provider, following))
    await stored(provider, project, following.heads[0].record)


@law("C-1", "C-7", "G-5", capability=Capability.WRITE, facts=(StoreFact.DURABLE,))
async def acknowledged_writes_survive_a_crash(bench: Bench) -> None:
    """004-63: under load every acknowledged commit survives whole; unknown ones settle."""
    provider, project = bench.provider, bench.project()
    acknowledged: list[WriteSet] = []
    unknown: list[WriteSet] = []
    stop = asyncio.Event()

    async def work(worker: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            await asyncio.sleep(0)
            pair = [specimens.memory(f"w{worker}-{number}-{side}") for side in ("a", "b")]
            write = specimens.create(project, *pair)
            try:
                await committed(provider, write)
                acknowledged.append(write)
            except PASSING:
                unknown.append(write)
                await asyncio.sleep(0.05)

    workers = [asyncio.create_task(work(number)) for number in range(WRITERS)]
    await asyncio.sleep(0.5)
    await bench.restart()
    await persist(lambda: provider.ready(timeout=SECONDS))
    stop.set()
    await asyncio.gather(*workers)
    expect.that(bool(acknowledged), "some commit was acknowledged")
    for each in acknowledged:
        outcome = await persist(partial(commit, provider, each))
        expect.equal(outcome, Replayed(each.receipt), "an acknowledged commit after the crash")
        await stored(provider, project, *_records(each))
    for each in unknown:
        outcome = await persist(partial(commit, provider, each))
        expect.one_of(outcome, (Committed, Replayed), "an unknown commit, settled")
        await stored(provider, project, *_records(each))


def _records(write: WriteSet) -> list[Record]:
    return [each.record for each in write.heads]

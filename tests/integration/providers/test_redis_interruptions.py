"""Calls on Redis that do not end well: lost replies, cut requests, late, cancelled, closed."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from providers.conformance import specimens
from providers.conformance.steps import persist
from providers.errors import (
    OutcomeUnknownError,
    ProviderClosedError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from providers.model import ProjectKey, Record, WriteSet
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Committed, LoadRequest, Replayed
from tests.fixtures.crowd import PROJECT
from tests.fixtures.redis import RedisBackend
from tests.fixtures.redis_audit import audit
from tests.fixtures.redis_cuts import CuttingProxy, Way, cutting
from tests.fixtures.redis_faults import instances

SECONDS = 20.0
READ = LoadRequest(project=PROJECT, record_ids=("r1",))


@pytest.fixture
async def proxy(redis_backend: RedisBackend) -> AsyncIterator[CuttingProxy]:
    """A proxy before the server that cuts where it is told to."""
    async with cutting(redis_backend) as made:
        yield made


@pytest.fixture
async def provider(
    redis_backend: RedisBackend, proxy: CuttingProxy
) -> AsyncIterator[RedisMemoryProvider]:
    """A provider behind the proxy, with one connection."""
    given = {"endpoint": proxy.endpoint, "pool_size": 1, "pool_ready": 1}
    async with instances(redis_backend, 1, **given) as (made,):
        yield made


@pytest.fixture
async def record(provider: RedisMemoryProvider) -> Record:
    made = specimens.memory("r1")
    assert await commit(provider, specimens.create(PROJECT, made)) == Committed()
    return made


async def commit(provider: RedisMemoryProvider, write: WriteSet) -> object:
    return await provider.commit(write, timeout=SECONDS)


async def passing(proxy: CuttingProxy, way: Way, call: Awaitable[object]) -> int:
    """Return how many bytes pass in a direction while a call is made."""
    before = proxy.passed[way]
    await call
    return proxy.passed[way] - before


def places(length: int) -> list[int]:
    """Return where to cut: at each of the first bytes, then here and there, and before the last."""
    return sorted({*range(min(48, length)), *range(48, length, 61), length - 1})


# -------------------- cut


async def test_a_reply_to_a_commit_lost_at_any_byte(
    redis_backend: RedisBackend, proxy: CuttingProxy, provider: RedisMemoryProvider, record: Record
) -> None:
    """004-35, 004-43: unknown, and the same key replays it; also where only settings are lost."""
    length = await passing(
        proxy, Way.REPLIES, commit(provider, specimens.create(PROJECT, specimens.memory("r2")))
    )
    revision = record
    for number, size in enumerate(places(length), start=1):
        write = specimens.update(PROJECT, revision, f"text {size}")
        proxy.cut_after(Way.REPLIES, size)
        with pytest.raises(OutcomeUnknownError):
            await commit(provider, write)
        assert proxy.struck == number
        assert await commit(provider, write) == Replayed(write.receipt)
        revision = write.heads[0].record
    assert audit(redis_backend, PROJECT).shelf.heads["r1"] == revision


async def test_a_reply_to_a_read_lost_at_any_byte(
    proxy: CuttingProxy, provider: RedisMemoryProvider, record: Record
) -> None:
    """004-35: a read is told as unavailable, never as less than there is."""
    length = await passing(proxy, Way.REPLIES, provider.load(READ, timeout=SECONDS))
    for number, size in enumerate(places(length), start=1):
        proxy.cut_after(Way.REPLIES, size)
        with pytest.raises(ProviderUnavailableError):
            await provider.load(READ, timeout=SECONDS)
        assert proxy.struck == number
        assert (await provider.load(READ, timeout=SECONDS)).heads == {"r1": record}


async def test_a_large_commit_cut_while_it_is_sent(
    redis_backend: RedisBackend, proxy: CuttingProxy, provider: RedisMemoryProvider
) -> None:
    """004-41: nothing is applied before the server has all of it."""
    elsewhere = ProjectKey(PROJECT.tenant_id, "p2")
    await provider.ready(timeout=SECONDS)
    length = await passing(proxy, Way.REQUESTS, commit(provider, large(elsewhere)))
    assert length > 1_000_000
    script = length - settings_length(provider)
    cuts = [1, 100, 20_000, length // 3, length // 2, length - 5_000, script - 1, script]
    for number, size in enumerate(cuts, start=1):
        write = large(PROJECT)
        proxy.cut_after(Way.REQUESTS, size)
        with pytest.raises(OutcomeUnknownError):
            await commit(provider, write)
        assert proxy.struck == number
        is_whole = size == script
        async with asyncio.timeout(SECONDS):
            while is_whole and not audit(redis_backend, PROJECT).shelf.receipts:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert len(audit(redis_backend, PROJECT).shelf.receipts) == is_whole
        settled = await commit(provider, write)
        assert settled == (Replayed(write.receipt) if is_whole else Committed())
        redis_backend.empty()


def settings_length(provider: RedisMemoryProvider) -> int:
    """Return how many bytes follow a script that writes: what it cannot see for itself."""
    (link,) = provider._calls.connections.lender.idle
    following = [link.settings, *provider._calls._loading_questions(link)]
    return len(b"".join(link.connection.pack_commands(following)))


def large(project: ProjectKey) -> WriteSet:
    """Make the write set of an import: 25 records, 500 revisions, 1 MiB."""
    chains = [specimens.history(f"r{number:02}", 20) for number in range(25)]
    said = specimens.content("x" * 2_000)
    puts = [specimens.put(chain[-1]) for chain in chains]
    past = [each.current for chain in chains for each in chain[:-1]]
    return specimens.write(
        project,
        *puts,
        history=tuple(replace(each, content=said) for each in past),
    )


# -------------------- late


async def test_200_short_deadlines_on_a_pool_of_two(
    redis_backend: RedisBackend, proxy: CuttingProxy
) -> None:
    """G-4, G-8: waits end in time, no reply reaches the wrong call, and the pool is whole after."""
    proxy.delay_max = 0.02
    dice = random.Random(9)
    records = [specimens.memory(f"r{number}") for number in range(200)]
    writes = [specimens.update(PROJECT, each) for each in records]
    given = {"endpoint": proxy.endpoint, "pool_size": 2, "pool_ready": 2}
    async with instances(redis_backend, 1, **given) as (provider,):
        for start in range(0, 200, 100):
            write = specimens.create(PROJECT, *records[start : start + 100])
            assert await commit(provider, write) == Committed()
        told: list[object] = []

        async def late(number: int) -> None:
            # Up to 20 ms, 40 ms and so on: some are late in the middle of it, however slow all is.
            timeout = dice.uniform(0.001, 0.02 * (1 + number // 10 % 5))
            try:
                if number % 2:
                    told.append(await provider.commit(writes[number], timeout=timeout))
                else:
                    asked = LoadRequest(project=PROJECT, record_ids=(f"r{number}",))
                    loaded = await provider.load(asked, timeout=timeout)
                    assert loaded.heads == {f"r{number}": records[number]}
            except (ProviderTimeoutError, OutcomeUnknownError) as error:
                told.append(type(error))

        async with asyncio.timeout(SECONDS):
            for start in range(0, 200, 10):
                await asyncio.gather(*(late(number) for number in range(start, start + 10)))
        assert {ProviderTimeoutError, OutcomeUnknownError} <= set(told)
        proxy.delay_max = 0.0
        await whole(redis_backend, provider, 2)
        for write in writes:
            assert await commit(provider, write) in (Committed(), Replayed(write.receipt))
    assert len(audit(redis_backend, PROJECT).shelf.revisions) == 400


async def test_a_crowd_opens_one_pool(redis_backend: RedisBackend) -> None:
    """G-8: also where all come before the first connection is open."""
    async with instances(redis_backend, 1, pool_size=4, pool_ready=3) as (provider,):
        await asyncio.gather(*(provider.load(READ, timeout=SECONDS) for _ in range(40)))
        assert clients(redis_backend) <= 4
        await whole(redis_backend, provider, 4)
    async with asyncio.timeout(SECONDS):
        while clients(redis_backend):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


async def test_late_calls_on_a_frozen_server_leave_nothing_open(
    redis_backend: RedisBackend,
) -> None:
    """G-8: a connection in doubt is gone at once, not when the server takes leave of it."""
    async with instances(redis_backend, 1, pool_size=2, pool_ready=2) as (provider,):
        await provider.ready(timeout=SECONDS)
        before = open_files()
        redis_backend.server.freeze()
        for _ in range(20):
            with pytest.raises(ProviderTimeoutError):
                await provider.load(READ, timeout=0.02)
        await asyncio.sleep(0.01)
        assert open_files() <= before
        redis_backend.server.thaw()


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def whole(backend: RedisBackend, provider: RedisMemoryProvider, size: int) -> None:
    """See that a pool lends all its connections again, and that the server has no others."""
    loads = (provider.load(READ, timeout=SECONDS) for _ in range(10 * size))
    await asyncio.gather(*loads)
    connections = provider._calls.connections
    assert connections.lender._places._value == size
    assert connections.lender.used == set()
    async with asyncio.timeout(SECONDS):
        while clients(backend) > len(connections.lender.idle):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    assert clients(backend) == len(connections.lender.idle) <= size


def clients(backend: RedisBackend) -> int:
    """Return how many connections the server has of the user that serves."""
    listed: bytes = backend.server.execute("CLIENT", "LIST")
    return listed.count(f" user={backend.server.runtime_user} ".encode())


# -------------------- cancelled


async def test_calls_cancelled_anywhere(redis_backend: RedisBackend, proxy: CuttingProxy) -> None:
    """004-35, G-8: also while a connection is opened; nothing is left open, or half done."""
    dice = random.Random(3)
    proxy.delay_max = 0.004
    heads = {f"r{number}": specimens.memory(f"r{number}") for number in range(12)}
    given = {"endpoint": proxy.endpoint, "pool_size": 6, "pool_ready": 4}
    async with instances(redis_backend, 1, **given) as (provider,):

        async def cancelled(call: Callable[[], Awaitable[Any]], most: float) -> None:
            task = asyncio.ensure_future(call())
            await asyncio.sleep(dice.uniform(0, most))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        for _ in range(20):
            await cancelled(lambda: provider.load(READ, timeout=SECONDS), 0.1)
        write = specimens.create(PROJECT, *heads.values())
        assert await commit(provider, write) == Committed()

        async def churn(name: str) -> None:
            for _ in range(8):
                following = specimens.after(heads[name])
                write = specimens.write(PROJECT, specimens.put(following, over=heads[name]))
                await cancelled(lambda: commit(provider, write), 0.01)  # noqa: B023
                await cancelled(lambda: provider.load(READ, timeout=SECONDS), 0.01)
                assert await commit(provider, write) in (Committed(), Replayed(write.receipt))
                heads[name] = following

        await asyncio.gather(*map(churn, heads))
        proxy.delay_max = 0.0
        await whole(redis_backend, provider, 6)
    assert audit(redis_backend, PROJECT).shelf.heads == heads


# -------------------- closed, and started again


async def test_closing_ends_calls_under_way(redis_backend: RedisBackend) -> None:
    """G-9: within seconds, and who waits for a connection sends nothing any more."""
    given = {"pool_size": 1, "pool_ready": 1}
    record = specimens.memory("r1")
    async with instances(redis_backend, 1, **given) as (provider,):
        assert await commit(provider, specimens.create(PROJECT, record)) == Committed()
        write = specimens.update(PROJECT, record)
        redis_backend.server.freeze()
        under_way = asyncio.create_task(commit(provider, write))
        waiting = asyncio.create_task(commit(provider, specimens.update(PROJECT, record)))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(5):
            await provider.close()
        with pytest.raises(OutcomeUnknownError):
            await asyncio.wait_for(under_way, 5)
        with pytest.raises(ProviderClosedError):
            await asyncio.wait_for(waiting, 5)
        redis_backend.server.thaw()
        with pytest.raises(ProviderClosedError):
            await commit(provider, write)
    async with instances(redis_backend, 1) as (another,):
        assert await persist(lambda: commit(another, write)) == Replayed(write.receipt)


@pytest.mark.parametrize("ends", ["stop", "kill"])
async def test_the_call_after_a_restart_is_answered(redis_backend: RedisBackend, ends: str) -> None:
    """004-101: what the server closed is noticed before anything is sent, even if nobody looked."""
    server = redis_backend.server
    record = specimens.memory("r1")
    async with instances(redis_backend, 1, pool_size=3, pool_ready=3) as (provider,):
        assert await commit(provider, specimens.create(PROJECT, record)) == Committed()
        for call in ("load", "commit", "load"):
            getattr(server, ends)()
            server.start()
            if call == "load":
                assert (await provider.load(READ, timeout=SECONDS)).heads == {"r1": record}
            else:
                write = specimens.update(PROJECT, record)
                assert await commit(provider, write) == Committed()
                record = write.heads[0].record

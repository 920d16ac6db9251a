"""No commit is sent twice but by the caller (C-9): counted at a proxy, by the script's digest."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from providers.conformance import specimens
from providers.conformance.delivery_steps import accepted, acknowledge, acquire, leased, release
from providers.errors import OutcomeUnknownError, ProviderError, StorageFullError
from providers.model import WriteSet
from providers.redis.provider import RedisMemoryProvider
from providers.redis.scripts import FLAGGED, Script
from providers.requests import Committed, Replayed, StaleRevision
from tests.fixtures.crowd import PROJECT
from tests.fixtures.redis import RedisBackend
from tests.fixtures.redis_cuts import CuttingProxy, Way, cutting
from tests.fixtures.redis_faults import instances, setting

SECONDS = 20.0


@pytest.fixture
async def proxy(redis_backend: RedisBackend) -> AsyncIterator[CuttingProxy]:
    """A proxy before the server, which counts scripts."""
    async with cutting(redis_backend) as made:
        yield made


@pytest.fixture
async def provider(
    redis_backend: RedisBackend, proxy: CuttingProxy
) -> AsyncIterator[RedisMemoryProvider]:
    """A provider behind the proxy that has all its connections."""
    given = {"endpoint": proxy.endpoint, "pool_size": 2, "pool_ready": 2}
    async with instances(redis_backend, 1, **given) as (made,):
        await made.ready(timeout=SECONDS)
        yield made


def sent(proxy: CuttingProxy, script: Script = Script.COMMIT) -> int:
    """Return how often a script was sent since this was last asked."""
    return proxy.scripts.pop(FLAGGED[script].digest.encode(), 0)


async def commit(
    provider: RedisMemoryProvider, write: WriteSet, seconds: float = SECONDS
) -> object:
    return await provider.commit(write, timeout=seconds)


async def test_success_refusal_and_replay(
    proxy: CuttingProxy, provider: RedisMemoryProvider
) -> None:
    record = specimens.memory("r1")
    write = specimens.create(PROJECT, record)
    stale = specimens.update(PROJECT, specimens.after(record))
    for each, outcome in (
        (write, Committed()),
        (write, Replayed(write.receipt)),
        (stale, StaleRevision("r1", 1)),
    ):
        assert await commit(provider, each) == outcome
        assert sent(proxy) == 1


async def test_a_lost_reply(proxy: CuttingProxy, provider: RedisMemoryProvider) -> None:
    write = specimens.create(PROJECT, specimens.memory("r1"))
    for size in (0, 10, 60):
        await provider.ready(timeout=SECONDS)
        proxy.cut_after(Way.REPLIES, size)
        with pytest.raises(OutcomeUnknownError):
            await commit(provider, write)
        assert sent(proxy) == 1
    assert await commit(provider, write) == Replayed(write.receipt)
    assert sent(proxy) == 1


async def test_a_request_that_was_cut(proxy: CuttingProxy, provider: RedisMemoryProvider) -> None:
    write = specimens.create(PROJECT, specimens.memory("r1"))
    proxy.cut_after(Way.REQUESTS, 100)
    with pytest.raises(OutcomeUnknownError):
        await commit(provider, write)
    assert sent(proxy) <= 1
    assert await commit(provider, write) == Committed()
    assert sent(proxy) == 1


async def test_a_time_that_ran_out(
    redis_backend: RedisBackend, proxy: CuttingProxy, provider: RedisMemoryProvider
) -> None:
    write = specimens.create(PROJECT, specimens.memory("r1"))
    redis_backend.server.freeze()
    with pytest.raises(OutcomeUnknownError):
        await commit(provider, write, 0.2)
    redis_backend.server.thaw()
    await asyncio.sleep(0.1)
    assert sent(proxy) == 1
    assert await commit(provider, write) == Replayed(write.receipt)


@pytest.mark.parametrize("ends", ["stop", "kill"])
async def test_a_restart(
    redis_backend: RedisBackend, proxy: CuttingProxy, provider: RedisMemoryProvider, ends: str
) -> None:
    """The server knows no script any more: each connection loads them before anything is sent."""
    getattr(redis_backend.server, ends)()
    redis_backend.server.start()
    await asyncio.sleep(0.1)  # the proxy has to see the end first, and to pass it on
    assert await commit(provider, specimens.create(PROJECT, specimens.memory("r1"))) == Committed()
    assert sent(proxy) == 1


async def test_a_server_that_forgot_its_scripts(
    redis_backend: RedisBackend, proxy: CuttingProxy, provider: RedisMemoryProvider
) -> None:
    """Refused once without being run, then sent once: the one exception that the clause makes."""
    redis_backend.server.execute("SCRIPT", "FLUSH")
    assert await commit(provider, specimens.create(PROJECT, specimens.memory("r1"))) == Committed()
    assert sent(proxy) == 2
    assert await commit(provider, specimens.create(PROJECT, specimens.memory("r2"))) == Committed()
    assert sent(proxy) == 1


async def test_a_server_that_cannot_remember_scripts(
    redis_backend: RedisBackend, proxy: CuttingProxy, provider: RedisMemoryProvider
) -> None:
    """What cannot be loaded again is not sent again."""
    redis_backend.server.execute("SCRIPT", "FLUSH")
    redis_backend.server.set_acl("~* +@all -script")
    with pytest.raises(ProviderError) as refused:
        await commit(provider, specimens.create(PROJECT, specimens.memory("r1")))
    assert not isinstance(refused.value, OutcomeUnknownError)
    assert sent(proxy) == 1


async def test_a_full_server(
    redis_backend: RedisBackend, proxy: CuttingProxy, provider: RedisMemoryProvider
) -> None:
    with setting(redis_backend.server, "maxmemory", 1), pytest.raises(StorageFullError):
        await commit(provider, specimens.create(PROJECT, specimens.memory("r1")))
    assert sent(proxy) == 1


async def test_a_closed_provider(proxy: CuttingProxy, provider: RedisMemoryProvider) -> None:
    await provider.close()
    with pytest.raises(ProviderError):
        await commit(provider, specimens.create(PROJECT, specimens.memory("r1")))
    assert sent(proxy) == 0


@pytest.mark.parametrize("call", ["acquire", "release", "acknowledge"])
async def test_a_lost_reply_to_a_delivery(
    proxy: CuttingProxy, provider: RedisMemoryProvider, call: str
) -> None:
    """C-9, 004-72: taking, giving back and acknowledging are writes, too."""
    (effect,) = await accepted(provider, PROJECT)
    token = "" if call == "acquire" else await leased(provider, PROJECT, effect)
    sent(proxy, Script.DELIVER)
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "acquire": lambda: acquire(provider, PROJECT, effect),
        "release": lambda: release(provider, PROJECT, effect, token),
        "acknowledge": lambda: acknowledge(provider, PROJECT, effect, token),
    }
    proxy.cut_after(Way.REPLIES, 5)
    with pytest.raises(OutcomeUnknownError):
        await calls[call]()
    assert sent(proxy, Script.DELIVER) == 1

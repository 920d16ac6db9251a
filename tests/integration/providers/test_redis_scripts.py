"""Scripts that the server has forgotten, counted at a proxy (004-41, 004-43)."""

from collections.abc import AsyncIterator

import pytest

from providers.conformance import specimens
from providers.conformance.steps import SECONDS, load
from providers.redis.provider import RedisMemoryProvider
from providers.redis.scripts import FLAGGED, Script
from providers.requests import Committed
from tests.fixtures.redis import RedisBackend
from tests.fixtures.redis_proxy import RedisProxy
from tests.integration.providers.redis_calls import EVERY, PROJECT, works


@pytest.fixture
async def proxy(redis_backend: RedisBackend) -> AsyncIterator[RedisProxy]:
    made = redis_backend.proxy()
    async with made.listening():
        yield made


@pytest.fixture
async def provider(
    redis_backend: RedisBackend, proxy: RedisProxy
) -> AsyncIterator[RedisMemoryProvider]:
    """A provider that has one connection, on which every script is known."""
    options = redis_backend.options(endpoint=proxy.endpoint, pool_size=1, pool_ready=1)
    made = RedisMemoryProvider(options)
    await works(made)
    yield made
    await made.close()


def sent(proxy: RedisProxy, script: Script) -> int:
    return proxy.scripts[FLAGGED[script].digest.encode()]


async def test_a_commit_after_a_flush(
    provider: RedisMemoryProvider, proxy: RedisProxy, redis_backend: RedisBackend
) -> None:
    """004-41, 004-43: it is sent again, since it did not run, and applied once."""
    redis_backend.server.execute("SCRIPT", "FLUSH")
    before, told = sent(proxy, Script.COMMIT), proxy.commands[b"SCRIPT"]
    late, later = (specimens.create(PROJECT, specimens.memory(name)) for name in ("late", "later"))
    assert await provider.commit(late, timeout=SECONDS) == Committed()
    assert sent(proxy, Script.COMMIT) == before + 2
    assert proxy.commands[b"SCRIPT"] == told + len(Script)
    assert await provider.commit(later, timeout=SECONDS) == Committed()
    assert sent(proxy, Script.COMMIT) == before + 3
    assert proxy.commands[b"SCRIPT"] == told + len(Script)
    found = await load(provider, PROJECT, "late", "later")
    assert [each.current.revision for each in found.heads.values()] == [1, 1]


@pytest.mark.parametrize("name", EVERY)
async def test_any_call_after_a_flush(
    provider: RedisMemoryProvider, proxy: RedisProxy, redis_backend: RedisBackend, name: str
) -> None:
    """004-41: it takes two trips more, and no connection is lost over it."""
    await EVERY[name](provider, PROJECT)
    usual = proxy.round_trips
    await EVERY[name](provider, PROJECT)
    usual = proxy.round_trips - usual
    redis_backend.server.execute("SCRIPT", "FLUSH")
    before, connected = proxy.round_trips, len(proxy.flows)
    await EVERY[name](provider, PROJECT)
    assert proxy.round_trips - before == usual + 2
    assert len(proxy.flows) == connected

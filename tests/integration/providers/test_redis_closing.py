"""What is left of connections to Redis after the provider was closed: nothing."""

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from providers.errors import NegotiationRefusedError, ProviderTimeoutError
from providers.redis.provider import RedisMemoryProvider
from tests.fixtures.redis import RedisBackend

ROUNDS = 10


async def used(backend: RedisBackend) -> None:
    """Look at the server through a connection of the pool and one beside it, and close."""
    provider = RedisMemoryProvider(backend.options(pool_ready=1))
    await provider.negotiate(timeout=10)
    await provider.ready(timeout=10)
    await provider.close()


async def let_in_nowhere(backend: RedisBackend) -> None:
    """Be refused by the server, and close."""
    provider = RedisMemoryProvider(backend.options(password="wrong"))
    with pytest.raises(NegotiationRefusedError):
        await provider.ready(timeout=10)
    await provider.close()


async def in_doubt(backend: RedisBackend) -> None:
    """Give up on a call that the server does not answer, and close."""
    provider = RedisMemoryProvider(backend.options(pool_ready=1))
    await provider.ready(timeout=10)
    backend.server.freeze()
    with pytest.raises(ProviderTimeoutError):
        await provider.ready(timeout=0.05)
    await provider.close()
    backend.server.thaw()


@pytest.mark.parametrize("work", [used, let_in_nowhere, in_doubt])
def test_a_closed_provider_leaves_no_connection(
    redis_backend: RedisBackend, work: Callable[[RedisBackend], Coroutine[Any, Any, None]]
) -> None:
    """Clauses G-8 and G-9: the loop can end at once, and no transport is left open to it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(ROUNDS):
            asyncio.run(work(redis_backend))
            gc.collect()
    assert [str(each.message) for each in told] == []

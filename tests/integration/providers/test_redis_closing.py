"""What is left of connections to Redis after the provider was closed: nothing."""

import asyncio
import gc
import warnings

from providers.redis.provider import RedisMemoryProvider
from tests.fixtures.redis import RedisBackend

ROUNDS = 10


async def used(backend: RedisBackend) -> None:
    """Look at the server through a connection of the pool and one beside it, and close."""
    provider = RedisMemoryProvider(backend.options(pool_ready=1))
    await provider.negotiate(timeout=10)
    await provider.ready(timeout=10)
    await provider.close()


def test_a_closed_provider_leaves_no_connection(redis_backend: RedisBackend) -> None:
    """Clause G-9: the loop can end at once, and no transport is left open to it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(ROUNDS):
            asyncio.run(used(redis_backend))
            gc.collect()
    assert [str(each.message) for each in told] == []

"""What a server would not have after a crash although it acknowledged it (004-38, 004-45).

An append-only file that is switched on at run time, and a default user who loses its rights.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker.devstack.redis import Flavour
from providers.conformance import specimens
from providers.conformance.steps import SECONDS, load
from providers.errors import (
    NegotiationRefusedError,
    OutcomeUnknownError,
    ResourceMismatchError,
)
from providers.model import ProjectKey
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Committed, Replayed
from tests.fixtures.redis import RedisBackend, fresh, own_redis

PROJECT = ProjectKey("t1", "p1")
SLOW = {"rdb-key-save-delay": 20_000, "auto-aof-rewrite-percentage": 0}
"""A rewrite takes as many microseconds for each key, and begins only when it is told to."""
KEYS = 100
MEBIBYTE = "x" * 1024 * 1024


@pytest.fixture(params=list(Flavour))
async def slow(
    request: pytest.FixtureRequest,
) -> AsyncIterator[tuple[RedisBackend, RedisMemoryProvider]]:
    """A server whose rewrites take seconds, and a provider that has seen it to be fit."""
    with own_redis(request.param, **SLOW) as server, fresh(server) as backend:
        for number in range(KEYS):
            server.execute("SET", f"other-{number}", "value")
        provider = RedisMemoryProvider(backend.options())
        await provider.ready(timeout=SECONDS)
        try:
            yield backend, provider
        finally:
            await provider.close()


async def rewritten(backend: RedisBackend) -> None:
    """Wait until no rewrite runs; the test's own time limit bounds it."""
    while _persistence(backend)["aof_rewrite_in_progress"]:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.05)


def _persistence(backend: RedisBackend) -> dict[str, int]:
    told: dict[str, int] = backend.server.execute("INFO", "persistence")
    return told


async def refused(provider: RedisMemoryProvider) -> None:
    """Expect that no call is answered, and that it says why."""
    with pytest.raises(NegotiationRefusedError, match="being rewritten"):
        await provider.ready(timeout=SECONDS)
    with pytest.raises(NegotiationRefusedError, match="being rewritten") as told:
        await load(provider, PROJECT, "r1")
    assert told.value.fact == "aof"


async def test_file_switched_off_and_on_between_two_looks(
    slow: tuple[RedisBackend, RedisMemoryProvider],
) -> None:
    """004-38, 004-45: nothing is acknowledged that a crash would lose, also by who saw nothing."""
    backend, provider = slow
    for value in ("no", "yes"):
        backend.server.execute("CONFIG", "SET", "appendonly", value)
    made = specimens.create(PROJECT, specimens.memory("r1"))
    with pytest.raises(NegotiationRefusedError, match="being rewritten"):
        await provider.commit(made, timeout=SECONDS)
    await refused(provider)
    await rewritten(backend)
    assert await provider.commit(made, timeout=SECONDS) == Committed()
    await asyncio.to_thread(backend.server.kill)
    await asyncio.to_thread(backend.server.start)
    assert await provider.commit(made, timeout=SECONDS) == Replayed(made.receipt)


async def test_rewrite_without_occasion_is_waited_for(
    slow: tuple[RedisBackend, RedisMemoryProvider],
) -> None:
    """004-38: a rewrite by hand looks the same; one of a file that has grown goes on unnoticed."""
    backend, provider = slow
    backend.server.execute("BGREWRITEAOF")
    await refused(provider)
    await rewritten(backend)
    await provider.ready(timeout=SECONDS)
    for number in range(65):
        backend.server.execute("SET", f"large-{number}", MEBIBYTE)
    backend.server.execute("BGREWRITEAOF")
    assert _persistence(backend)["aof_rewrite_in_progress"] == 1
    made = specimens.create(PROJECT, specimens.memory("r1"))
    assert await provider.commit(made, timeout=SECONDS) == Committed()
    assert _persistence(backend)["aof_rewrite_in_progress"] == 1
    await asyncio.to_thread(backend.server.kill)
    await asyncio.to_thread(backend.server.start)
    assert await provider.commit(made, timeout=SECONDS) == Replayed(made.receipt)


async def test_default_user_that_loses_its_rights(
    request: pytest.FixtureRequest,
) -> None:
    """004-38: from then on no write is acknowledged, and nobody new is let in."""
    with fresh(request.getfixturevalue("redis_server")) as backend:
        provider, late = (RedisMemoryProvider(backend.options()) for _ in range(2))
        try:
            await provider.ready(timeout=SECONDS)
            backend.server.execute("ACL", "SETUSER", "default", "reset")
            made = specimens.create(PROJECT, specimens.memory("r1"))
            with pytest.raises(OutcomeUnknownError):
                await provider.commit(made, timeout=SECONDS)
            with pytest.raises(NegotiationRefusedError, match="default user"):
                await provider.ready(timeout=SECONDS)
            with pytest.raises(NegotiationRefusedError, match="default user") as told:
                await load(late, PROJECT, "r1")
            assert told.value.fact == "aof"
            backend.server.execute("ACL", "SETUSER", "default", "off", "~*", "&*", "+@all")
            assert await provider.commit(made, timeout=SECONDS) == Replayed(made.receipt)
            assert "r1" in (await load(late, PROJECT, "r1")).heads
        finally:
            backend.server.execute("ACL", "SETUSER", "default", "off", "~*", "&*", "+@all")
            await provider.close()
            await late.close()


async def test_store_that_was_emptied(redis_backend: RedisBackend) -> None:
    """004-44, 004-45: whoever saw more writes than there are says so; the marker alone proves less.

    Somebody who saw none cannot know.
    """
    provider, late = (RedisMemoryProvider(redis_backend.options()) for _ in range(2))
    try:
        made = specimens.create(PROJECT, specimens.memory("r1"))
        for write in (made, specimens.create(PROJECT, specimens.memory("r2"))):
            assert await provider.commit(write, timeout=SECONDS) == Committed()
        redis_backend.server.execute("FLUSHALL")
        redis_backend.mark()
        for _ in range(2):
            with pytest.raises(ResourceMismatchError, match="fewer writes"):
                await load(provider, PROJECT, "r1")
        with pytest.raises(OutcomeUnknownError):
            await provider.commit(made, timeout=SECONDS)
        assert dict((await load(late, PROJECT)).heads) == {}
    finally:
        await provider.close()
        await late.close()

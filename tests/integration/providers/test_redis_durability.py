"""What is left after a crash: all that was acknowledged, and of the rest whole write sets only."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from broker.devstack.redis import Flavour
from providers.conformance import specimens
from providers.conformance.steps import persist
from providers.errors import OutcomeUnknownError, ProviderUnavailableError
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Committed, Replayed
from tests.fixtures.crowd import PROJECT, Crowd, shelf_after
from tests.fixtures.redis import RedisBackend, fresh, own_redis
from tests.fixtures.redis_audit import audit
from tests.fixtures.redis_faults import commands, cut, growing_file, instances

WRITES, WRITERS, INSTANCES, KILLS = 2000, 24, 4, 4
SECONDS = 20.0
FROZEN_SECONDS = 0.3


async def agrees(backend: RedisBackend, crowd: Crowd) -> None:
    """Compare what is there with what the senders were told, and with the reference."""
    shelf = audit(backend, PROJECT).shelf
    assert shelf == await shelf_after(crowd.judge(shelf.receipts))


async def settles(backend: RedisBackend, crowd: Crowd) -> None:
    """Look at what is there, send what is unknown again, and look again."""
    await agrees(backend, crowd)
    await crowd.settle()
    assert crowd.unknown == []
    await agrees(backend, crowd)


# -------------------- killed


async def test_killed_during_2000_writes(redis_backend: RedisBackend) -> None:
    """004-63, 004-101: nothing that was acknowledged is lost, and nothing is there by half."""
    server = redis_backend.server

    async def kill() -> None:
        for number in range(1, KILLS + 1):
            while len(crowd.told) < number * WRITES // (KILLS + 1):  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

    async with instances(redis_backend, INSTANCES) as providers:
        crowd = Crowd(providers, seed=6)
        await crowd.begin()
        async with asyncio.TaskGroup() as group:
            group.create_task(crowd.write(WRITES, WRITERS))
            group.create_task(kill())
        assert OutcomeUnknownError in crowd.errors
        assert crowd.errors <= {OutcomeUnknownError, ProviderUnavailableError}
        await settles(redis_backend, crowd)


async def test_killed_while_the_file_is_rewritten(redis_backend: RedisBackend) -> None:
    """004-63: what is written meanwhile is in neither file alone, and is not lost."""
    server = redis_backend.server
    server.execute("BGREWRITEAOF")  # not the first: what is written during that one is refused
    redis_backend.settle()

    async def kill() -> None:
        written = len(crowd.told)
        while len(crowd.told) < written + 100:  # noqa: ASYNC110 - the crowd tells nobody
            await asyncio.sleep(0.002)
        assert redis_backend.is_rewriting()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)

    async with instances(redis_backend, INSTANCES) as providers:
        crowd = Crowd(providers, seed=7)
        await crowd.begin()
        for _ in range(3):
            await crowd.write(50, WRITERS)
            server.execute("CONFIG", "SET", "rdb-key-save-delay", 200_000)
            server.execute("BGREWRITEAOF")
            async with asyncio.TaskGroup() as group:
                group.create_task(crowd.write(200, WRITERS))
                group.create_task(kill())
            server.execute("BGREWRITEAOF")
            redis_backend.settle()
        await settles(redis_backend, crowd)


# -------------------- cut


@pytest.fixture(params=list(Flavour))
def small_backend(request: pytest.FixtureRequest) -> Iterator[RedisBackend]:
    """A resource on a server of its own, whose append-only file is short."""
    with own_redis(request.param) as server, fresh(server) as backend:
        yield backend


async def test_a_cut_file_holds_whole_write_sets(small_backend: RedisBackend) -> None:
    """004-41: wherever the file ends, what is read back is what so many write sets made."""
    server = small_backend.server
    async with instances(small_backend, 1) as providers:
        crowd = Crowd(providers, seed=8)
        await crowd.begin()
        await crowd.write(40, 1)
    applied = crowd.acknowledged
    await asyncio.to_thread(server.kill)
    file = growing_file(server)
    whole = file.read_bytes()
    ends = [end for name, _, end in commands(whole) if name == b"EXEC"]
    assert len(ends) == len(applied)
    for size in _places(whole, ends):
        file.write_bytes(whole)
        cut(file, size)
        await asyncio.to_thread(server.start)
        count = sum(end <= size for end in ends)
        assert audit(small_backend, PROJECT).shelf == await shelf_after(applied[:count]), size
        await asyncio.to_thread(server.kill)


def _places(file: bytes, ends: list[int]) -> list[int]:
    """Return where to cut: inside, before and after each sort of command, and anywhere."""
    dice = random.Random(9)
    seen: Counter[bytes] = Counter()
    places = {len(file) - 1}
    for name, begun, end in reversed([each for each in commands(file) if each[1] > ends[1]]):
        seen[name] += 1
        if seen[name] == 1:
            places |= {begun, dice.randrange(begun + 1, end)}
    return sorted(places | {dice.randrange(ends[0], len(file)) for _ in range(4)})


async def test_a_cut_file_is_written_on(small_backend: RedisBackend) -> None:
    """004-63: what is acknowledged after the server left out half a write set survives, too."""
    server = small_backend.server
    async with instances(small_backend, 1) as (provider,):
        crowd = Crowd([provider], seed=10)
        await crowd.begin()
        await crowd.write(10, 1)
        await asyncio.to_thread(server.kill)
        file = growing_file(server)
        cut(file, file.stat().st_size - 40)
        await asyncio.to_thread(server.start)
        lost = crowd.acknowledged[-1]
        assert await provider.commit(lost, timeout=SECONDS) == Committed()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await agrees(small_backend, crowd)


# -------------------- frozen


async def test_frozen_beyond_the_deadline_and_thawed(redis_backend: RedisBackend) -> None:
    """004-35, 004-62: one revision, whoever sent it how often, and the retry replays."""
    server = redis_backend.server
    records = [specimens.memory(f"r{number}") for number in range(4)]
    writes = [specimens.update(PROJECT, record) for record in records]

    async def unknown(provider: RedisMemoryProvider, number: int) -> None:
        with pytest.raises(OutcomeUnknownError):
            await provider.commit(writes[number], timeout=FROZEN_SECONDS)

    async with instances(redis_backend, 2, pool_ready=4) as providers:
        for each in providers:
            await each.ready(timeout=SECONDS)
        created = await providers[0].commit(specimens.create(PROJECT, *records), timeout=SECONDS)
        assert created == Committed()
        server.freeze()
        await asyncio.gather(*(unknown(each, number) for each in providers for number in range(4)))
        server.thaw()
        for provider in providers:
            for write in writes:
                told = await persist(lambda: provider.commit(write, timeout=SECONDS))  # noqa: B023
                assert told == Replayed(write.receipt)
    shelf = audit(redis_backend, PROJECT).shelf
    assert shelf.heads == {
        each.heads[0].record.current.record_id: each.heads[0].record for each in writes
    }
    assert len(shelf.revisions) == 8

"""Servers that are full, busy or loading: what the caller is told, and what is left."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import redis

from broker.devstack.processes.errors import ServerError
from broker.devstack.redis import Flavour, RedisServer
from providers.conformance import specimens
from providers.conformance.delivery_steps import accepted, acknowledge, leased
from providers.errors import (
    NegotiationRefusedError,
    OutcomeUnknownError,
    ProviderError,
    ProviderUnavailableError,
    StorageFullError,
)
from providers.model import WriteSet
from providers.redis import connections
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Committed, LoadRequest, SearchRequest
from tests.fixtures.crowd import PROJECT, Crowd, shelf_after
from tests.fixtures.redis import RedisBackend, fresh, own_redis
from tests.fixtures.redis_audit import audit
from tests.fixtures.redis_faults import files_limited, growing_file, instances, setting

SECONDS = 20.0
READ = LoadRequest(project=PROJECT, record_ids=("r1",))
ROOM = 100_000


@pytest.fixture
async def provider(redis_backend: RedisBackend) -> AsyncIterator[RedisMemoryProvider]:
    async with instances(redis_backend, 1) as (made,):
        yield made


async def agrees(backend: RedisBackend, crowd: Crowd) -> None:
    """Compare what is there with what the senders were told, and with the reference."""
    shelf = audit(backend, PROJECT).shelf
    assert shelf == await shelf_after(crowd.judge(shelf.receipts))


# -------------------- no memory left


@contextmanager
def little_memory(server: RedisServer, room: int) -> Iterator[None]:
    used = server.execute("INFO", "memory")["used_memory"]
    with setting(server, "maxmemory", used + room):
        yield


@pytest.fixture(params=["flagged", "plain"])
def scripts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers before 7 run plain scripts, and look for memory only at the first write of one."""
    if request.param == "plain":
        monkeypatch.setattr(connections, "_FLAGS_SINCE", (99, 0))


async def test_out_of_memory(redis_backend: RedisBackend, scripts: None) -> None:
    """004-41: told as full, nothing by half, reads go on, and so do writes once there is room."""
    async with instances(redis_backend, 2) as providers:
        crowd = Crowd(providers, seed=1)
        await crowd.begin()
        await crowd.write(100, 16)
        before = len(crowd.acknowledged)
        with little_memory(redis_backend.server, ROOM):
            await crowd.write(400, 16)
            assert crowd.errors == {StorageFullError}
            assert len(crowd.acknowledged) > before
            await agrees(redis_backend, crowd)
            asked = LoadRequest(project=PROJECT, record_ids=("shared-0",))
            assert (await providers[0].load(asked, timeout=SECONDS)).heads
            everything = SearchRequest(project=PROJECT, agent_id=None, text="a")
            assert (await providers[0].search(everything, timeout=SECONDS)).records
        refused = len(crowd.told)
        await crowd.write(100, 16)
        assert any(each.is_acknowledged for each in crowd.told[refused:])
        await agrees(redis_backend, crowd)


async def test_memory_ends_among_large_commits(redis_backend: RedisBackend) -> None:
    """004-41: each of them is there as a whole or not at all."""
    writes = [large(f"c{number}") for number in range(12)]
    async with instances(redis_backend, 4) as providers:
        await asyncio.gather(*(each.ready(timeout=SECONDS) for each in providers))

        async def told(number: int) -> object:
            try:
                return await providers[number % 4].commit(writes[number], timeout=SECONDS)
            except StorageFullError:
                return None

        with little_memory(redis_backend.server, 6_000_000):
            outcomes = await asyncio.gather(*map(told, range(12)))
        applied = [w for w, told in zip(writes, outcomes, strict=True) if told == Committed()]
        assert outcomes.count(None) == 12 - len(applied)
        assert 0 < len(applied) < 12
        assert audit(redis_backend, PROJECT).shelf == await shelf_after(applied)
        for write in writes:
            await providers[0].commit(write, timeout=SECONDS)
        assert audit(redis_backend, PROJECT).shelf == await shelf_after(writes)


def large(name: str) -> WriteSet:
    """Make two records of 100,000 characters each."""
    said = "\u77e5" * 100_000
    records = [specimens.memory(f"{name}-{number}", said) for number in range(2)]
    return specimens.create(PROJECT, *records)


async def test_leases_without_memory(
    redis_backend: RedisBackend, scripts: None, provider: RedisMemoryProvider
) -> None:
    """004-72: a delivery is told as full, and goes on later with the same token."""
    first, second = await accepted(provider, PROJECT, 2)
    token = await leased(provider, PROJECT, first)
    with setting(redis_backend.server, "maxmemory", 1), pytest.raises(StorageFullError):
        await acknowledge(provider, PROJECT, first, token)
    assert await acknowledge(provider, PROJECT, first, token)
    await leased(provider, PROJECT, second)
    audit(redis_backend, PROJECT)


# -------------------- no room on the disk


@pytest.mark.parametrize("room", [0, 1, 700, 30_000])
async def test_a_full_disk(redis_backend: RedisBackend, room: int) -> None:
    """004-63, 004-101: the server ends; what it acknowledged is there, and nothing by half."""
    server = redis_backend.server
    async with instances(redis_backend, 2) as providers:
        crowd = Crowd(providers, seed=room)
        await crowd.begin()

        async def revive() -> None:
            while server.is_running:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.005)
            await asyncio.to_thread(server.start)

        with files_limited(server, growing_file(server).stat().st_size + room):
            async with asyncio.TaskGroup() as group:
                group.create_task(revive())
                group.create_task(crowd.write(200, 16))
        assert OutcomeUnknownError in crowd.errors
        assert crowd.errors <= {OutcomeUnknownError, ProviderUnavailableError}
        await agrees(redis_backend, crowd)
        await crowd.settle()
        await agrees(redis_backend, crowd)


# -------------------- what the server says instead of an answer


@contextmanager
def a_script_that_never_ends(server: RedisServer) -> Iterator[None]:
    """Keep the server busy, beyond the time from which on it says so."""

    def run() -> None:
        with pytest.raises(ServerError, match=r"[Kk]illed"):
            server.execute("EVAL", "while true do end", 0)

    with setting(server, "lua-time-limit", 1):
        busy = threading.Thread(target=run)
        busy.start()
        try:
            _until(lambda: not _answers(server))
            yield
        finally:
            server.execute("SCRIPT", "KILL")
            busy.join()


def _answers(server: RedisServer) -> bool:
    try:
        server.execute("GET", "x")
    except ServerError:
        return False
    return True


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


@contextmanager
def a_snapshot_that_failed(server: RedisServer) -> Iterator[None]:
    """Let the server refuse writes because it could not write a file beside the log."""
    with setting(server, "save", "3600 1000000"):
        with files_limited(server, 1):
            server.execute("BGSAVE")
            _until(lambda: server.execute("INFO", "persistence")["rdb_last_bgsave_status"] != "ok")
        yield
        server.execute("BGSAVE")
        _until(lambda: server.execute("INFO", "persistence")["rdb_last_bgsave_status"] == "ok")


@contextmanager
def a_replica(server: RedisServer) -> Iterator[None]:
    """Make the server a replica of one that is not there."""
    server.execute("REPLICAOF", "127.0.0.1", "1")
    try:
        yield
    finally:
        server.execute("REPLICAOF", "NO", "ONE")


STATES = {
    "BUSY": a_script_that_never_ends,
    "MISCONF": a_snapshot_that_failed,
    "READONLY": a_replica,
}


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("BUSY", ProviderUnavailableError),
        ("MISCONF", NegotiationRefusedError),
        ("READONLY", NegotiationRefusedError),
    ],
)
async def test_a_server_that_refuses_to_write(
    redis_backend: RedisBackend, provider: RedisMemoryProvider, state: str, wanted: type[Exception]
) -> None:
    """004-35: nothing was written, so nothing is unknown; the connection is as good as before."""
    record = specimens.memory("r1")
    write = specimens.update(PROJECT, record)
    effect, *_ = await accepted(provider, PROJECT)
    assert await provider.commit(specimens.create(PROJECT, record), timeout=SECONDS) == Committed()
    token = await leased(provider, PROJECT, effect)
    before = audit(redis_backend, PROJECT)
    links = list(provider._calls.connections.lender.idle)
    with STATES[state](redis_backend.server):
        calls: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: provider.commit(write, timeout=SECONDS),
            lambda: acknowledge(provider, PROJECT, effect, token),
        )
        for call in calls:
            with pytest.raises(ProviderError) as refused:
                await call()
            assert type(refused.value) is wanted
        if state == "MISCONF":
            assert (await provider.load(READ, timeout=SECONDS)).heads == {"r1": record}
        else:
            with pytest.raises(wanted):
                await provider.load(READ, timeout=SECONDS)
    assert audit(redis_backend, PROJECT) == before
    assert provider._calls.connections.lender.idle == links
    assert await provider.commit(write, timeout=SECONDS) == Committed()


@contextmanager
def no_more_clients(server: RedisServer) -> Iterator[None]:
    """Let nobody in any more, but for who is in already."""
    inside = redis.Redis(
        unix_socket_path=str(server.socket_path),
        username=server.superuser,
        password=server.superuser_password,
        single_connection_client=True,
    )
    with inside:
        inside.config_set("maxclients", 1)
        yield
        inside.config_set("maxclients", 10_000)


async def test_a_server_that_lets_nobody_in(redis_backend: RedisBackend) -> None:
    """G-4: who is in goes on, who is not is told at once."""
    record = specimens.memory("r1")
    write = specimens.update(PROJECT, record)
    async with instances(redis_backend, 2, pool_size=2, pool_ready=1) as (inside, outside):
        created = await inside.commit(specimens.create(PROJECT, record), timeout=SECONDS)
        assert created == Committed()
        with no_more_clients(redis_backend.server):
            with pytest.raises(ProviderUnavailableError):
                await outside.commit(write, timeout=SECONDS)
            loads = (inside.load(READ, timeout=SECONDS) for _ in range(2))
            told = await asyncio.gather(*loads, return_exceptions=True)
            assert sorted(type(each).__name__ for each in told) == [
                "Loaded",
                "ProviderUnavailableError",
            ]
        assert await outside.commit(write, timeout=SECONDS) == Committed()


@pytest.fixture(params=list(Flavour))
def slow_backend(request: pytest.FixtureRequest) -> Iterator[RedisBackend]:
    """A resource on a server that answers while it loads its data, if only to say so."""
    slow: dict[str, str | int] = {
        "loading-process-events-interval-bytes": 1024,
        "enable-debug-command": "yes",
    }
    with own_redis(request.param, **slow) as server, fresh(server) as backend:
        yield backend


async def test_a_server_that_is_loading(slow_backend: RedisBackend) -> None:
    """004-35, 004-101: unavailable, on old connections and on new ones, until it has loaded."""
    server = slow_backend.server
    records = [specimens.memory(f"r{number}", "x" * 2_000) for number in range(60)]
    write = specimens.update(PROJECT, records[1])
    async with instances(slow_backend, 2, pool_size=1, pool_ready=1) as (inside, outside):
        created = await inside.commit(specimens.create(PROJECT, *records), timeout=SECONDS)
        assert created == Committed()
        server.execute("DEBUG", "POPULATE", 3_000, "else", 2_000)
        with setting(server, "key-load-delay", 10_000):
            loading = asyncio.create_task(asyncio.to_thread(server.execute, "DEBUG", "RELOAD"))
            await asyncio.to_thread(_until, lambda: not _answers(server))
            for provider in (inside, outside):
                with pytest.raises(ProviderUnavailableError, match="LOADING"):
                    await provider.load(READ, timeout=SECONDS)
                with pytest.raises(ProviderUnavailableError, match="LOADING"):
                    await provider.commit(write, timeout=SECONDS)
            assert not loading.done()
        await loading
        assert (await outside.load(READ, timeout=SECONDS)).heads == {"r1": records[1]}
        assert await inside.commit(write, timeout=SECONDS) == Committed()
    audit(slow_backend, PROJECT)

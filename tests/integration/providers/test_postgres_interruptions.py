"""Calls that do not end well: cancelled, late, cut off, refused by the server."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from providers.conformance import specimens
from providers.errors import (
    OutcomeUnknownError,
    ProviderClosedError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from providers.model import ProjectKey, Record
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import Committed, LoadRequest, Replayed
from tests.fixtures.postgres import Database, PostgresBackend
from tests.fixtures.postgres_faults import frozen
from tests.fixtures.postgres_proxy import proxied

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0
SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'knowledge-broker' AND ({})
"""
READ = LoadRequest(project=PROJECT, record_ids=("r1",))


async def sessions(admin: asyncpg.Connection, condition: str) -> int:
    await admin.execute("SELECT pg_stat_clear_snapshot()")  # kept for a whole transaction else
    found: int = await admin.fetchval(SESSIONS.format(condition))
    return found


async def until_none(admin: asyncpg.Connection, condition: str) -> None:
    async with asyncio.timeout(5):
        while await sessions(admin, condition):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.02)


async def until_some(admin: asyncpg.Connection, condition: str) -> None:
    async with asyncio.timeout(5):
        while not await sessions(admin, condition):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.02)


async def whole_chains(admin: asyncpg.Connection) -> bool:
    """Tell whether heads, revisions and receipts belong together."""
    rows = await admin.fetch(
        """
        SELECT r.record_id, r.revision, count(*), max(v.revision),
            (SELECT count(*) FROM memory.receipts AS t WHERE t.method = r.record_id)
        FROM memory.records AS r
        JOIN memory.revisions AS v USING (tenant_id, project_id, record_id)
        GROUP BY r.record_id, r.revision
        """
    )
    return all(len({*row[1:]}) == 1 for row in rows)


# -------------------- cancelled


async def test_commits_cancelled_200_times(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    dice = random.Random(3)
    heads = {f"r{number}": specimens.memory(f"r{number}") for number in range(20)}
    for name, head in heads.items():
        write = specimens.keyed(specimens.create(PROJECT, head), method=name)
        assert await provider.commit(write, timeout=SECONDS) == Committed()

    async def cancelled(name: str) -> None:
        head = heads[name]
        following = specimens.after(head)
        write = specimens.write(PROJECT, specimens.put(following, over=head))
        write = specimens.keyed(write, method=name)
        task = asyncio.create_task(provider.commit(write, timeout=SECONDS))
        await asyncio.sleep(dice.uniform(0, 0.01))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        settled = await provider.commit(write, timeout=SECONDS)
        assert settled in (Committed(), Replayed(write.receipt))
        heads[name] = following

    for _ in range(10):
        await asyncio.gather(*(cancelled(name) for name in heads))
    await until_none(admin, "state <> 'idle'")
    assert await whole_chains(admin)
    assert await admin.fetchval("SELECT min(revision) = max(revision) FROM memory.records")


async def test_reads_cancelled_200_times(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, record: Record
) -> None:
    dice = random.Random(5)
    for _ in range(20):
        tasks = [asyncio.create_task(provider.load(READ, timeout=SECONDS)) for _ in range(10)]
        await asyncio.sleep(dice.uniform(0, 0.005))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await until_none(admin, "state <> 'idle'")
    assert (await provider.load(READ, timeout=SECONDS)).heads == {"r1": record}


# -------------------- late


async def test_200_short_deadlines_on_a_pool_of_two(
    postgres_database: Database,
    admin: asyncpg.Connection,
    record: Record,
    lock: None,
) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(pool_size=2))
    await provider.ready(timeout=SECONDS)
    dice = random.Random(9)
    write = specimens.update(PROJECT, record)

    async def late(number: int) -> None:
        timeout = dice.uniform(0.001, 0.02)
        call: Awaitable[object] = (
            provider.commit(write, timeout=timeout)
            if number % 2
            else provider.load(READ, timeout=timeout)
        )
        with pytest.raises(ProviderError) if number % 2 else _either():
            await call

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(late(number) for number in range(200)))
    await until_none(admin, "state LIKE 'idle in%' OR state = 'active'")
    assert (await provider.load(READ, timeout=SECONDS)).heads == {"r1": record}
    await provider.close()


class _either:  # noqa: N801
    """A load may be in time or late."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, ProviderTimeoutError)


async def test_a_commit_that_waits_too_long_is_unknown_and_dropped(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    record: Record,
    lock: None,
) -> None:
    write = specimens.update(PROJECT, record)
    with pytest.raises(OutcomeUnknownError):
        await provider.commit(write, timeout=0.2)
    await until_none(admin, "state = 'active'")
    await admin.execute("ROLLBACK")
    assert await provider.commit(write, timeout=SECONDS) == Committed()


async def test_waiting_for_a_connection_is_in_time_and_nothing_was_sent(
    postgres_database: Database, record: Record, lock: None
) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(pool_size=1, pool_ready=1))
    await provider.ready(timeout=SECONDS)
    write = specimens.update(PROJECT, record)
    busy = asyncio.create_task(provider.commit(write, timeout=5))
    await asyncio.sleep(0.1)
    with pytest.raises(ProviderTimeoutError):
        await provider.commit(write, timeout=0.2)
    with pytest.raises(ProviderTimeoutError):
        await provider.load(READ, timeout=0.2)
    assert not busy.done()
    with pytest.raises(OutcomeUnknownError):
        await busy
    await provider.close()


# -------------------- cut off


async def test_a_cut_connection_leaves_a_commit_unknown(
    postgres_database: Database, admin: asyncpg.Connection, record: Record, lock: None
) -> None:
    async with proxied(postgres_database.runtime_dsn) as proxy:
        dsn = proxy.dsn(postgres_database.runtime_dsn)
        provider = PostgresMemoryProvider(postgres_database.options(dsn=dsn))
        task = asyncio.create_task(
            provider.commit(specimens.update(PROJECT, record), timeout=SECONDS)
        )
        await until_some(admin, "wait_event_type = 'Lock'")
        proxy.cut()
        with pytest.raises(OutcomeUnknownError):
            await task
        assert (await provider.load(READ, timeout=SECONDS)).heads == {"r1": record}
        await provider.close()


async def test_a_killed_session_leaves_a_commit_unknown(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    record: Record,
    lock: None,
) -> None:
    task = asyncio.create_task(provider.commit(specimens.update(PROJECT, record), timeout=SECONDS))
    await until_some(admin, "wait_event_type = 'Lock'")
    await admin.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    )
    with pytest.raises(OutcomeUnknownError):
        await task
    assert (await provider.load(READ, timeout=SECONDS)).heads == {"r1": record}


async def test_a_server_that_is_not_there(postgres_database: Database) -> None:
    dsn = postgres_database.runtime_dsn.rpartition("@")[0] + "@127.0.0.1:1/x"
    provider = PostgresMemoryProvider(postgres_database.options(dsn=dsn))
    write = specimens.create(PROJECT, specimens.memory("r1"))
    for call in (
        provider.negotiate(timeout=5),
        provider.ready(timeout=5),
        provider.load(READ, timeout=5),
        provider.commit(write, timeout=5),
    ):
        with pytest.raises(ProviderUnavailableError):
            await call
    await provider.close()


# -------------------- frozen


async def test_a_frozen_server_holds_nobody_up(stoppable_backend: PostgresBackend) -> None:
    """004-101: every call ends by its own timeout, and so does closing."""
    assert stoppable_backend.server is not None
    database = await stoppable_backend.database()
    opened = PostgresMemoryProvider(database.options())
    record = specimens.memory("r1")
    made = specimens.create(PROJECT, record)
    assert await opened.commit(made, timeout=SECONDS) == Committed()
    fresh = PostgresMemoryProvider(database.options())
    write = specimens.update(PROJECT, record)
    late = (ProviderTimeoutError, ProviderUnavailableError, OutcomeUnknownError)
    with frozen(stoppable_backend.server):
        for provider in (opened, fresh):
            calls: tuple[Callable[[], Awaitable[object]], ...] = (
                lambda: provider.ready(timeout=0.3),  # noqa: B023
                lambda: provider.load(READ, timeout=0.3),  # noqa: B023
                lambda: provider.commit(write, timeout=0.3),  # noqa: B023
                lambda: provider.negotiate(timeout=0.3),  # noqa: B023
            )
            for call in calls:
                async with asyncio.timeout(SECONDS):
                    await _raises(call, late)
            async with asyncio.timeout(SECONDS):
                await provider.close()
    await stoppable_backend.drop(database)


async def _raises(
    call: Callable[[], Awaitable[object]], wanted: tuple[type[Exception], ...]
) -> None:
    with pytest.raises(wanted):
        await call()


# -------------------- closed


async def test_closing_ends_calls_under_way(
    postgres_database: Database, record: Record, lock: None
) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(pool_size=1, pool_ready=1))
    await provider.ready(timeout=SECONDS)
    write = specimens.update(PROJECT, record)
    under_way = asyncio.create_task(provider.commit(write, timeout=SECONDS))
    waiting = asyncio.create_task(provider.load(READ, timeout=SECONDS))
    await asyncio.sleep(0.1)
    async with asyncio.timeout(5):
        await provider.close()
    await provider.close()
    with pytest.raises(OutcomeUnknownError):
        await under_way
    with pytest.raises((ProviderClosedError, ProviderUnavailableError)):
        await asyncio.wait_for(waiting, 5)
    with pytest.raises(ProviderClosedError):
        await provider.ready(timeout=1)


async def test_a_crowd_opens_one_pool(
    postgres_database: Database, admin: asyncpg.Connection
) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(pool_size=4))
    await asyncio.gather(*(provider.load(READ, timeout=SECONDS) for _ in range(40)))
    assert await sessions(admin, "true") <= 4
    await provider.close()
    await until_none(admin, "true")

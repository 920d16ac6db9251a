"""Reads of one tick share a statement, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import asyncpg
import pytest

from providers.conformance import specimens
from providers.errors import (
    ProviderClosedError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    ResourceMismatchError,
    StoredDataInvalidError,
)
from providers.model import ProjectKey, Record
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import Committed, Loaded, LoadRequest
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_proxy import PostgresProxy, proxied

SECONDS = 20.0
STATEMENT = ["B", "E", "S"]
PROJECTS = [ProjectKey(f"t{number % 5}", f"p{number // 5}") for number in range(40)]
LOCK = "BEGIN; LOCK TABLE memory.records IN ACCESS EXCLUSIVE MODE"

Stored = dict[ProjectKey, Record]


def wanted(project: ProjectKey, record_id: str = "r1") -> LoadRequest:
    """Ask for one head."""
    return LoadRequest(project=project, record_ids=(record_id,))


@pytest.fixture
async def stored(provider: PostgresMemoryProvider) -> Stored:
    """A record in each of 40 projects of five tenants: all of one id, each with its own text."""
    made = {}
    for number, project in enumerate(PROJECTS):
        content = specimens.content(f"text {number}")
        made[project] = specimens.memory("r1", content=content)
        write = specimens.create(project, made[project])
        assert await provider.commit(write, timeout=SECONDS) == Committed()
    return made


@pytest.fixture
async def wire(postgres_database: Database) -> AsyncIterator[PostgresProxy]:
    async with proxied(postgres_database.runtime_dsn) as proxy:
        yield proxy


async def together(
    provider: PostgresMemoryProvider, requests: Sequence[LoadRequest]
) -> list[Loaded | BaseException]:
    """Ask for all in one tick; return what each came to."""
    calls = (provider.load(each, timeout=SECONDS) for each in requests)
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_reads_of_one_tick_share_statements(
    postgres_database: Database, wire: PostgresProxy, stored: Stored
) -> None:
    """004-25: each is given its own project's record, eight by one statement."""
    dsn = wire.dsn(postgres_database.runtime_dsn)
    provider = PostgresMemoryProvider(postgres_database.options(dsn=dsn, pool_size=1, pool_ready=1))
    await provider.ready(timeout=SECONDS)
    wire.types.clear()
    told = await together(provider, [wanted(each) for each in stored])
    assert told == [Loaded(heads={"r1": each}) for each in stored.values()]
    assert wire.types == STATEMENT * 5
    await provider.close()


async def test_what_is_not_there_is_left_out(
    provider: PostgresMemoryProvider, stored: Stored
) -> None:
    """004-25: another project's record, an id that cannot be stored, and one that nobody has."""
    mine, other = list(stored)[:2]
    far = ProjectKey(mine.tenant_id, other.project_id)
    requests = [wanted(far, "r2"), wanted(mine, "\0"), wanted(mine), wanted(mine, "")]
    told = await together(provider, requests)
    assert told == [Loaded(), Loaded(), Loaded(heads={"r1": stored[mine]}), Loaded()]


async def test_one_that_leaves_takes_nobody_along(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, stored: Stored
) -> None:
    """One is cancelled at once, one while it waits, two are late: the others get their records."""
    await admin.execute(LOCK)
    late, later = (
        asyncio.create_task(provider.load(wanted(PROJECTS[0]), timeout=seconds))
        for seconds in (0.1, 0.3)
    )
    calls = [
        asyncio.create_task(provider.load(wanted(each), timeout=SECONDS)) for each in PROJECTS[1:5]
    ]
    await asyncio.sleep(0)
    calls[0].cancel()
    with pytest.raises(ProviderTimeoutError):
        await late
    assert not later.done()
    with pytest.raises(ProviderTimeoutError):
        await later
    calls[1].cancel()
    await asyncio.wait(calls[:2])
    assert [each.done() for each in calls] == [True, True, False, False]
    await admin.execute("ROLLBACK")
    told = await asyncio.gather(*calls[2:])
    assert told == [Loaded(heads={"r1": stored[each]}) for each in PROJECTS[3:5]]


async def test_a_record_that_is_broken_is_refused_to_its_caller_alone(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, stored: Stored
) -> None:
    broken, *others = PROJECTS[:8]
    await admin.execute(
        "UPDATE memory.records SET facet = '[]' WHERE tenant_id = $1 AND project_id = $2",
        broken.tenant_id,
        broken.project_id,
    )
    first, *rest = await together(provider, [wanted(each) for each in PROJECTS[:8]])
    assert isinstance(first, StoredDataInvalidError)
    assert rest == [Loaded(heads={"r1": stored[each]}) for each in others]


async def test_what_befalls_the_statement_befalls_all(
    postgres_database: Database, admin: asyncpg.Connection, wire: PostgresProxy, stored: Stored
) -> None:
    """And nothing of it stays: the next reads are answered."""
    dsn = wire.dsn(postgres_database.runtime_dsn)
    provider = PostgresMemoryProvider(postgres_database.options(dsn=dsn))
    await provider.ready(timeout=SECONDS)
    await admin.execute(LOCK)
    calls = [
        asyncio.create_task(provider.load(wanted(each), timeout=SECONDS)) for each in PROJECTS[:3]
    ]
    await asyncio.sleep(0.1)
    wire.cut()
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in told] == [ProviderUnavailableError] * 3
    await admin.execute("ROLLBACK")
    assert await together(provider, [wanted(each) for each in PROJECTS[:3]]) == [
        Loaded(heads={"r1": stored[each]}) for each in PROJECTS[:3]
    ]
    await provider.close()


async def test_another_marker_is_refused_to_all(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, stored: Stored
) -> None:
    for change in (
        "UPDATE memory.resource SET generation = generation + 1",
        "TRUNCATE memory.resource",
    ):
        await admin.execute(change)
        told = await together(provider, [wanted(each) for each in PROJECTS[:3]])
        assert [type(each) for each in told] == [ResourceMismatchError] * 3


async def test_nobody_waits_for_a_provider_that_closes(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, stored: Stored
) -> None:
    calls = [
        asyncio.create_task(provider.load(wanted(each), timeout=SECONDS)) for each in PROJECTS[:3]
    ]
    await asyncio.sleep(0)
    await provider.close()
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(each) for each in told} <= {ProviderClosedError, ProviderUnavailableError}
    with pytest.raises(ProviderClosedError):
        await provider.load(wanted(PROJECTS[0]), timeout=SECONDS)

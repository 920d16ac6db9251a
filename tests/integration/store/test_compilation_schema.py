"""The tables of the log: they come over what is there, and nobody changes what they hold."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from alembic import command
from sqlalchemy import Connection
from sqlalchemy.pool import NullPool

from broker.store.compilations import PostgresCompilationLog
from broker.store.fitness import SchemaUnfitError, check_schema
from broker.store.migrations import TREE
from broker.store.pins import PostgresPinStore
from providers.migration import configuration, migrate, open_engine
from tests.fixtures.compilations import compilation, item
from tests.fixtures.postgres import Database, PostgresBackend
from tests.integration.store.test_schema import PIN

TABLES = ("compilations", "compilation_items")
CHANGES = [
    statement.format(table=table)
    for table in TABLES
    for statement in (
        "UPDATE knowledge.{table} SET compilation_id = 'other'",
        "DELETE FROM knowledge.{table}",
        "TRUNCATE knowledge.{table}",
    )
]
STARTERS = 3
RIGHTS = """
    SELECT array_agg(DISTINCT a.privilege_type ORDER BY a.privilege_type)
    FROM pg_class AS t CROSS JOIN LATERAL aclexplode(t.relacl) AS a
    WHERE t.oid = $1::regclass AND a.grantee = $2::regrole
"""
# As an operator would have it at 0001.
FIRST_GRANTS = """
    GRANT USAGE ON SCHEMA knowledge TO {role};
    GRANT SELECT ON ALL TABLES IN SCHEMA knowledge TO {role};
    GRANT INSERT ON knowledge.pins TO {role};
"""


@pytest.fixture
async def before(postgres_backend: PostgresBackend) -> AsyncIterator[Database]:
    """A database at 0001 in which a run is pinned."""
    database = await postgres_backend.empty_database()
    engine = open_engine(database.admin_dsn, poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.run_sync(_upgrade_to_first)
    await PostgresPinStore(engine).insert_if_absent(PIN)
    await engine.dispose()
    await postgres_backend.execute(FIRST_GRANTS.format(role=database.runtime_role), database.name)
    yield database
    await postgres_backend.drop(database)


def _upgrade_to_first(connection: Connection) -> None:
    config = configuration(TREE)
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")


# -------------------- what is logged stays


@pytest.mark.parametrize("sql", CHANGES)
async def test_the_log_refuses_every_change(postgres_database: Database, sql: str) -> None:
    """000-38: to a superuser by the table itself, to the runtime role by its rights already."""
    engine = open_engine(postgres_database.runtime_dsn, pool_size=1)
    log = PostgresCompilationLog(engine)
    given = await log.append(compilation(item("x")))
    for dsn, refused in (
        (postgres_database.admin_dsn, asyncpg.IntegrityConstraintViolationError),
        (postgres_database.runtime_dsn, asyncpg.InsufficientPrivilegeError),
    ):
        connection = await asyncpg.connect(dsn)
        try:
            with pytest.raises(refused):
                await connection.execute(sql)
        finally:
            await connection.close()
    assert await log.find("t", "p", "r", given.compilation_id) == given
    await engine.dispose()


@pytest.mark.parametrize("table", TABLES)
async def test_the_runtime_role_reads_and_inserts(postgres_database: Database, table: str) -> None:
    """004-101: these two rights and no other."""
    found = await postgres_database.fetchval(
        RIGHTS, f"knowledge.{table}", postgres_database.runtime_role
    )
    assert found == ["INSERT", "SELECT"]


# -------------------- the migration


async def test_it_comes_over_what_is_there(before: Database) -> None:
    """004-101: refused before, served with after; what was pinned is as it was."""
    engine = open_engine(before.runtime_dsn, pool_size=2)
    with pytest.raises(SchemaUnfitError, match="not at revision 0002"):
        await check_schema(engine, timeout=10)
    await migrate(TREE, before.admin_dsn, before.runtime_role)
    await check_schema(engine, timeout=10)
    assert await PostgresPinStore(engine).find("t", "p", "r") == PIN
    log = PostgresCompilationLog(engine)
    given = await log.append(compilation(item("x")))
    assert await log.find("t", "p", "r", given.compilation_id) == given
    await engine.dispose()


async def test_starters_at_once(before: Database) -> None:
    """004-101: one does it, the others wait and find nothing to do."""
    await asyncio.gather(
        *(migrate(TREE, before.admin_dsn, before.runtime_role) for _ in range(STARTERS))
    )
    engine = open_engine(before.runtime_dsn, pool_size=1)
    await check_schema(engine, timeout=10)
    assert await PostgresPinStore(engine).find("t", "p", "r") == PIN
    await engine.dispose()

"""The migration that brings search: what was stored before it is found after it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from alembic import command
from sqlalchemy import Connection
from sqlalchemy.pool import NullPool

from providers.migration import configuration, migrate, open_engine
from providers.model import ProjectKey
from providers.postgres.migrations import TREE
from providers.postgres.provider import PostgresMemoryProvider
from providers.postgres.resource import init_resource
from providers.requests import SearchRequest
from tests.fixtures.postgres import RESOURCE, Database, PostgresBackend

ROWS = 250
EXTENSIONS = ("pg_trgm", "btree_gin")
_INSERT = """
INSERT INTO memory.records (
    tenant_id, project_id, record_id, revision, revision_id, agent_id, kind, type, title, content,
    importance, tags, state, trust, create_time, update_time
)
VALUES ($1, $2, $3, 1, 'v' || $3, 'a1', 'memory', 'note', $4, $5, 0.5, $6, 'active', 'pending',
    now(), now())
"""
_INSTALLED = """
SELECT e.extname::text, n.nspname::text, r.rolname::text
FROM pg_extension AS e
JOIN pg_namespace AS n ON n.oid = e.extnamespace
JOIN pg_roles AS r ON r.oid = e.extowner
WHERE e.extname IN ('pg_trgm', 'btree_gin')
"""


@pytest.fixture
async def empty(postgres_backend: PostgresBackend) -> AsyncIterator[Database]:
    database = await postgres_backend.empty_database()
    yield database
    await postgres_backend.drop(database)


async def upgrade_to(database: Database, revision: str) -> None:
    def run(connection: Connection) -> None:
        config = configuration(TREE)
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    engine = open_engine(database.admin_dsn, poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()


async def insert(database: Database, rows: list[tuple[Any, ...]]) -> None:
    connection = await asyncpg.connect(database.admin_dsn)
    try:
        await connection.executemany(_INSERT, rows)
    finally:
        await connection.close()


async def found(database: Database, project: ProjectKey, **asked: Any) -> list[str]:
    provider = PostgresMemoryProvider(database.options())
    request = SearchRequest(project=project, agent_id="a1", limit=100, **asked)
    page = await provider.search(request, timeout=10)
    await provider.close()
    return sorted(each.current.record_id for each in page.records)


async def test_what_was_stored_before_is_found(empty: Database) -> None:
    """004-67: folded by the same rule, in as many parts as it takes."""
    await upgrade_to(empty, "0001")
    rows: list[tuple[Any, ...]] = [
        ("t1", "p1", f"r{n}", None, f"plain {n}", ["x"]) for n in range(ROWS)
    ]
    rows += [
        ("t1", "p2", "r1", "STRASSE \u039f\u0394\u039f\u03a3", "Cafe\u0301", ["\ufb01le"]),
        ("t2", "p1", "r1", None, "\u77e5\u8b58 100%", []),
    ]
    await insert(empty, rows)
    await migrate(TREE, empty.admin_dsn, empty.runtime_role)
    await init_resource(empty.admin_dsn, RESOURCE.resource_id, RESOURCE.generation)
    first, second, other = ProjectKey("t1", "p1"), ProjectKey("t1", "p2"), ProjectKey("t2", "p1")
    assert await found(empty, first, text="PLAIN 249") == ["r249"]
    assert len(await found(empty, first, tags=("X",))) == 100
    for text in ("stra\u00dfe", "\u03bf\u03b4\u03bf\u03c2", "caf\u00c9", "FILE"):
        assert await found(empty, second, text=text) == ["r1"]
    assert await found(empty, second, tags=("file",)) == ["r1"]
    assert await found(empty, other, text="\u8b58 100%") == ["r1"]
    assert await empty.fetchval("SELECT count(*) FROM memory.records") == ROWS + 2


async def test_a_row_without_its_search_text_is_refused(postgres_database: Database) -> None:
    """004-67: no writer can leave a head out of every search."""
    with pytest.raises(asyncpg.NotNullViolationError):
        await insert(postgres_database, [("t1", "p1", "r1", None, "text", [])])


async def test_extensions_that_are_there_are_used_where_they_are(empty: Database) -> None:
    """004-101: a database may have been given them already."""
    connection = await asyncpg.connect(empty.admin_dsn)
    await connection.execute("CREATE SCHEMA elsewhere")
    for extension in EXTENSIONS:
        await connection.execute(f"CREATE EXTENSION {extension} SCHEMA elsewhere")
    await migrate(TREE, empty.admin_dsn, empty.runtime_role)
    installed = await connection.fetch(_INSTALLED)
    await connection.close()
    assert {row["nspname"] for row in installed} == {"elsewhere"}
    await init_resource(empty.admin_dsn, RESOURCE.resource_id, RESOURCE.generation)
    provider = PostgresMemoryProvider(empty.options())
    await provider.negotiate(timeout=10)
    await provider.close()
    assert await found(empty, ProjectKey("t1", "p1"), text="nothing") == []


async def test_who_may_create_in_the_database_can_migrate(
    postgres_backend: PostgresBackend, empty: Database
) -> None:
    """004-101: no superuser is needed."""
    role = f"migrator_{empty.name}"
    await postgres_backend.execute(
        f"CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT CREATE ON DATABASE {empty.name} TO {role}"
    )
    try:
        host = empty.runtime_dsn.rpartition("@")[2]
        await migrate(TREE, f"postgresql://{role}:x@{host}", empty.runtime_role)
        connection = await asyncpg.connect(empty.admin_dsn)
        installed = {tuple(row) for row in await connection.fetch(_INSTALLED)}
        await connection.close()
        assert installed == {(each, "memory", role) for each in EXTENSIONS}
    finally:
        await postgres_backend.execute(f"DROP OWNED BY {role} CASCADE", empty.name)
        await postgres_backend.execute(f"DROP ROLE {role}")


async def test_many_starters_migrate_once(empty: Database) -> None:
    """004-101: from the schema before it, side by side."""
    await upgrade_to(empty, "0001")
    await insert(empty, [("t1", "p1", "r1", None, "text", [])])
    await asyncio.gather(*(migrate(TREE, empty.admin_dsn, empty.runtime_role) for _ in range(3)))
    assert await empty.fetchval("SELECT search_text FROM memory.records")

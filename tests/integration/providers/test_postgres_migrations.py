"""The schema: how it gets there, what it looks like, and what it refuses to everybody."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateSchema

from providers.conformance import specimens
from providers.errors import NegotiationRefusedError, ResourceMismatchError
from providers.migration import configuration, migrate
from providers.model import ProjectKey
from providers.postgres.migrations import TREE
from providers.postgres.provider import PostgresMemoryProvider
from providers.postgres.resource import init_resource
from providers.postgres.schema import METADATA, REVISION, SCHEMA
from providers.requests import Committed
from tests.fixtures.postgres import Database, PostgresBackend

PROJECT = ProjectKey("t1", "p1")
STARTERS = 3
KEPT = ("records", "revisions", "receipts", "effects")


@pytest.fixture
async def empty(postgres_backend: PostgresBackend) -> AsyncIterator[Database]:
    database = await postgres_backend.empty_database()
    yield database
    await postgres_backend.drop(database)


@pytest.fixture
async def filled(postgres_database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A superuser's connection to a database in which each table has a row."""
    provider = PostgresMemoryProvider(postgres_database.options())
    write = specimens.create(
        PROJECT,
        specimens.decision("d1"),
        effect=specimens.effect(1),
        **specimens.claiming("d1", "k1"),
    )
    assert await provider.commit(write, timeout=10) == Committed()
    await provider.close()
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    yield connection
    await connection.close()


async def test_three_starters_migrate_once(empty: Database) -> None:
    await asyncio.gather(
        *(migrate(TREE, empty.admin_dsn, empty.runtime_role) for _ in range(STARTERS))
    )
    connection = await asyncpg.connect(empty.admin_dsn)
    versions = await connection.fetch("SELECT version_num FROM memory.alembic_version")
    await connection.close()
    assert [row["version_num"] for row in versions] == [REVISION]
    await init_resource(empty.admin_dsn, "postgres-resource", 1)
    provider = PostgresMemoryProvider(empty.options())
    await provider.negotiate(timeout=10)
    await provider.close()


async def test_migrating_again_takes_rights_away_that_are_too_many(
    postgres_database: Database,
) -> None:
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    role = postgres_database.runtime_role
    await connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA memory TO {role}")
    await connection.execute(f"GRANT CREATE ON SCHEMA memory TO {role}")
    await connection.close()
    provider = PostgresMemoryProvider(postgres_database.options())
    with pytest.raises(NegotiationRefusedError):
        await provider.negotiate(timeout=10)
    await migrate(TREE, postgres_database.admin_dsn, role)
    await provider.negotiate(timeout=10)
    await provider.close()


async def test_a_failed_migration_leaves_nothing(empty: Database) -> None:
    with pytest.raises(Exception, match="no_such_role"):
        await migrate(TREE, empty.admin_dsn, "no_such_role")
    connection = await asyncpg.connect(empty.admin_dsn)
    assert not await connection.fetchval(
        "SELECT count(*) FROM pg_namespace WHERE nspname = 'memory'"
    )
    await connection.close()


async def test_code_and_migrations_describe_one_schema(
    postgres_database: Database, empty: Database
) -> None:
    assert ScriptDirectory.from_config(configuration(TREE)).get_current_head() == REVISION
    url = empty.admin_dsn.replace("postgresql:", "postgresql+asyncpg:")
    engine = create_async_engine(url, poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.execute(CreateSchema(SCHEMA))
        for extension in ("pg_trgm", "btree_gin", "vector"):
            await connection.execute(text(f"CREATE EXTENSION {extension} SCHEMA {SCHEMA}"))
        await connection.execute(text(f"CREATE COLLATION {SCHEMA}.candidate_order (locale = 'C')"))
        await connection.run_sync(METADATA.create_all)
    await engine.dispose()
    migrated, described = await _catalog(postgres_database), await _catalog(empty)
    assert len(described) > 100
    assert migrated == described


async def _catalog(database: Database) -> set[tuple[object, ...]]:
    connection = await asyncpg.connect(database.admin_dsn)
    rows = await connection.fetch(
        """
        SELECT conrelid::regclass::text || contypid::regtype::text, conname::text,
            pg_get_constraintdef(oid)
        FROM pg_constraint
        WHERE connamespace = 'memory'::regnamespace
            AND conrelid IS DISTINCT FROM to_regclass('memory.alembic_version')
        UNION ALL
        SELECT typname, format_type(typbasetype, typtypmod), concat_ws(' ', typnotnull, typdefault,
            typcollation::regcollation)
        FROM pg_type
        WHERE typnamespace = 'memory'::regnamespace AND typtype = 'd'
        UNION ALL
        SELECT table_name, column_name, concat_ws(' ', data_type, udt_name, domain_name,
            is_nullable, collation_name, column_default)
        FROM information_schema.columns
        WHERE table_schema = 'memory' AND table_name <> 'alembic_version'
        UNION ALL
        SELECT tablename, indexname, indexdef
        FROM pg_indexes
        WHERE schemaname = 'memory' AND tablename <> 'alembic_version'
        """
    )
    await connection.close()
    return {tuple(row) for row in rows}


async def test_every_index_leads_with_tenant_and_project(postgres_database: Database) -> None:
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    rows = await connection.fetch(
        """
        SELECT i.indexrelid::regclass::text AS name, array_agg(a.attname::text ORDER BY k.place)
        FROM pg_index AS i
        CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
        WHERE i.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'memory'::regnamespace)
        GROUP BY 1
        """
    )
    await connection.close()
    columns = {name: list(names) for name, names in rows}
    columns.pop("memory.resource_pkey")
    columns.pop("memory.alembic_version_pkc")
    assert columns.pop("memory.effects_unscoped") == ["tenant_id", "receipt_id"]  # ADR 0022
    assert len(columns) >= 8
    assert {tuple(names[:2]) for names in columns.values()} == {("tenant_id", "project_id")}


async def test_identifiers_compare_byte_for_byte(postgres_database: Database) -> None:
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    rows = await connection.fetch(
        """
        SELECT table_name, column_name
        FROM information_schema.columns
        WHERE table_schema = 'memory' AND data_type = 'text'
            AND (column_name LIKE '%\\_id' OR column_name IN ('key', 'name', 'idempotency_key'))
            AND collation_name IS DISTINCT FROM 'C'
        """
    )
    await connection.close()
    assert rows == []


@pytest.mark.parametrize("table", KEPT)
@pytest.mark.parametrize("event", ["DELETE FROM memory.{}", "TRUNCATE memory.{}"])
async def test_what_was_written_is_kept(filled: asyncpg.Connection, table: str, event: str) -> None:
    with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError):
        await filled.execute(event.format(table))
    assert await filled.fetchval(f"SELECT count(*) FROM memory.{table}") == 1


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("revisions", "content", "'other'"),
        ("revisions", "tenant_id", "'t2'"),
        ("receipts", "fingerprint", "repeat('0', 64)"),
        ("effects", "receipt", "'{}'"),
        ("effects", "sequence", "2"),
        ("effects", "accept_time", "now()"),
    ],
)
async def test_what_was_written_is_not_changed(
    filled: asyncpg.Connection, table: str, column: str, value: str
) -> None:
    with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError):
        await filled.execute(f"UPDATE memory.{table} SET {column} = {value}")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE memory.records SET tenant_id = 'another'",
        "UPDATE memory.records SET project_id = 'another'",
        "UPDATE memory.records SET record_id = 'another'",
        "UPDATE memory.counters SET name = 'another'",
        "UPDATE memory.claims SET key = 'another'",
        "UPDATE memory.recall_entries SET tenant_id = 'another'",
        "UPDATE memory.recall_entries SET record_id = 'another'",
        "UPDATE memory.recall_vectors SET tenant_id = 'another'",
        "LOCK TABLE memory.records IN ACCESS EXCLUSIVE MODE",
    ],
)
async def test_the_runtime_role_moves_nothing_to_another_key(
    postgres_database: Database, sql: str
) -> None:
    """004-28: no statement of a broker can carry a row from one tenant into another."""
    connection = await asyncpg.connect(postgres_database.runtime_dsn)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute(f"BEGIN; {sql}")
    await connection.close()


async def test_delivery_columns_of_an_effect_change(filled: asyncpg.Connection) -> None:
    await filled.execute(
        "UPDATE memory.effects SET delivered = true, lease_token = 'x', leased_until = now(),"
        " last_code = 'OK', fact_id = 'fact-1', fact_sequence = 1"
    )
    assert await filled.fetchval("SELECT delivered FROM memory.effects")


async def test_a_marker_is_written_once(postgres_database: Database) -> None:
    with pytest.raises(NegotiationRefusedError) as refused:
        await init_resource(postgres_database.admin_dsn, "postgres-resource", 1)
    assert refused.value.fact == "marker"
    for resource_id, generation in (("other", 1), ("postgres-resource", 2)):
        with pytest.raises(ResourceMismatchError):
            await init_resource(postgres_database.admin_dsn, resource_id, generation)
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    rows = await connection.fetch("SELECT resource_id, generation FROM memory.resource")
    await connection.close()
    assert [tuple(row) for row in rows] == [("postgres-resource", 1)]


async def test_addresses_of_other_databases_are_refused() -> None:
    with pytest.raises(ValueError, match="PostgreSQL"):
        await migrate(TREE, "sqlite:///x", "role")

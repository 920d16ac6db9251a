"""Schema ``knowledge``: its keys, its rows that stay as they are, and what makes it unfit."""

import asyncpg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import AsyncEngine

from broker.domain.errors import StorageUnavailableError
from broker.domain.ports import Pin
from broker.store.fitness import REVISION, SchemaUnfitError, check_schema
from broker.store.migrations import TREE
from broker.store.pins import PostgresPinStore
from providers.migration import configuration, open_engine
from providers.model import ResourceIdentity
from tests.fixtures.postgres import Database

PIN = Pin(
    tenant_id="t",
    project_id="p",
    run_id="r",
    project_revision=1,
    project_configuration_revision=2,
    context_revision="context-v1",
    provider_id="native",
    adapter_version="1.0.0",
    options_schema_version=1,
    options_revision="options-v1",
    resource=ResourceIdentity("resource", 3),
    capabilities=frozenset({"memory.records.read", "memory.records.write"}),
)
KEYS = """
    SELECT i.indexrelid::regclass::text AS name,
        array_agg(a.attname::text ORDER BY k.place) AS columns
    FROM pg_index AS i
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid IN (
        SELECT oid FROM pg_class WHERE relnamespace = 'knowledge'::regnamespace
    )
    GROUP BY i.indexrelid
"""


def engine_of(database: Database) -> AsyncEngine:
    """Return an engine of the runtime role."""
    return open_engine(database.runtime_dsn, pool_size=2)


async def change(database: Database, sql: str) -> None:
    """Run SQL as a superuser."""
    connection = await asyncpg.connect(database.admin_dsn)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


def test_the_code_is_written_for_the_newest_migration() -> None:
    """004-101: the revision that is demanded is the one that migrating gives."""
    assert ScriptDirectory.from_config(configuration(TREE)).get_current_head() == REVISION


async def test_every_key_leads_with_tenant_and_project(postgres_database: Database) -> None:
    """004-28: pins of two tenants never share a key."""
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    found = {row["name"]: row["columns"] for row in await connection.fetch(KEYS)}
    await connection.close()
    found.pop("knowledge.alembic_version_pkc")
    assert found
    assert {tuple(columns[:2]) for columns in found.values()} == {("tenant_id", "project_id")}


async def test_a_pin_comes_back_whole_and_the_first_stays(postgres_database: Database) -> None:
    """004-28: inserted if absent, read back as committed."""
    engine = engine_of(postgres_database)
    store = PostgresPinStore(engine)
    assert await store.find("t", "p", "r") is None
    assert await store.insert_if_absent(PIN) == PIN
    assert await store.find("t", "p", "r") == PIN
    assert await store.find("T", "p", "r") is None
    await engine.dispose()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE knowledge.pins SET project_revision = 9",
        "DELETE FROM knowledge.pins",
        "TRUNCATE knowledge.pins",
    ],
)
async def test_pins_refuse_every_change(postgres_database: Database, sql: str) -> None:
    """004-31: refused by the store itself, also to a superuser."""
    engine = engine_of(postgres_database)
    await PostgresPinStore(engine).insert_if_absent(PIN)
    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await change(postgres_database, sql)
    assert await PostgresPinStore(engine).find("t", "p", "r") == PIN
    await engine.dispose()


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DROP SCHEMA knowledge CASCADE", "not migrated"),
        ("UPDATE knowledge.alembic_version SET version_num = '0000'", "revision"),
        ("DELETE FROM knowledge.alembic_version", "revision"),
        ("REVOKE INSERT ON knowledge.pins FROM {role}", "insert"),
        ("GRANT DELETE ON knowledge.pins TO {role}", "more rights"),
        ("GRANT UPDATE ON knowledge.pins TO {role}", "more rights"),
        ("GRANT UPDATE (provider_id) ON knowledge.pins TO {role}", "more rights"),
        ("GRANT CREATE ON SCHEMA knowledge TO {role}", "more rights"),
        ("ALTER TABLE knowledge.pins OWNER TO {role}", "more rights"),
        ("ALTER ROLE {role} SUPERUSER", "more rights"),
        ("GRANT pg_read_all_data TO {role}", "more rights"),
        ("DROP TRIGGER pins_kept ON knowledge.pins", "trigger"),
        ("ALTER TABLE knowledge.pins DISABLE TRIGGER pins_immutable", "trigger"),
        ("REVOKE INSERT ON knowledge.compilation_items FROM {role}", "insert"),
        ("REVOKE SELECT ON knowledge.compilations FROM {role}", "insert"),
        ("DROP TABLE knowledge.compilation_items", "insert"),
        ("GRANT TRUNCATE ON knowledge.compilations TO {role}", "more rights"),
        ("GRANT UPDATE (text_hash) ON knowledge.compilations TO {role}", "more rights"),
        ("GRANT DELETE ON knowledge.compilation_items TO {role}", "more rights"),
        ("DROP TRIGGER compilations_immutable ON knowledge.compilations", "trigger"),
        ("ALTER TABLE knowledge.compilation_items DISABLE TRIGGER USER", "trigger"),
    ],
)
async def test_what_must_not_be_served_with(
    postgres_database: Database, sql: str, says: str
) -> None:
    """004-101: another revision, too few rights, too many rights."""
    engine = engine_of(postgres_database)
    await check_schema(engine, timeout=10)
    role = postgres_database.runtime_role
    await change(postgres_database, sql.format(role=role))
    try:
        with pytest.raises(SchemaUnfitError, match=says):
            await check_schema(engine, timeout=10)
    finally:
        await change(postgres_database, f"ALTER ROLE {role} NOSUPERUSER")
        await change(postgres_database, f"REVOKE pg_read_all_data FROM {role}")
        await engine.dispose()


async def test_a_store_that_is_away_is_no_refusal(postgres_database: Database) -> None:
    """004-101: silence is told as unavailable, which a retry may mend."""
    engine = open_engine("postgresql://nobody@127.0.0.1:1/none", pool_size=1)
    with pytest.raises(StorageUnavailableError):
        await check_schema(engine, timeout=5)
    with pytest.raises(StorageUnavailableError):
        await PostgresPinStore(engine).find("t", "p", "r")
    await engine.dispose()

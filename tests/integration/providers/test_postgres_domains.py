"""The domains of the columns: what each refuses, and the migration that brings them."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import orjson
import pytest
from sqlalchemy.exc import DBAPIError

from providers.conformance import specimens
from providers.migration import migrate
from providers.model import ProjectKey, Record, WriteSet
from providers.postgres import commit
from providers.postgres.migrations import TREE
from providers.postgres.provider import PostgresMemoryProvider
from providers.postgres.resource import init_resource
from providers.postgres.statements import COMMIT, COMMIT_CHANGED, COMMIT_NEW
from providers.requests import Committed, LoadRequest
from tests.fixtures.postgres import RESOURCE, Database, PostgresBackend
from tests.integration.providers.test_postgres_search_migration import upgrade_to

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0

# What a column may not hold, and whose check says so.
BROKEN: tuple[tuple[str, object, str], ...] = (
    ("kind", "rumour", "record_kind_known"),
    ("kind", "", "record_kind_known"),
    ("state", "melted", "record_state_known"),
    ("trust", "blind", "record_trust_known"),
    ("change_kind", "guessed", "change_kind_known"),
    ("importance", -0.001, "unit_range"),
    ("importance", 1.001, "unit_range"),
    ("revision", 0, "ordinal_range"),
    ("actor_fingerprint", "0" * 63, "fingerprint_form"),
    ("actor_fingerprint", "0" * 65, "fingerprint_form"),
    ("actor_fingerprint", "A" * 64, "fingerprint_form"),
    ("actor_fingerprint", "0" * 63 + "g", "fingerprint_form"),
    ("actor_fingerprint", "0" * 63 + "\n", "fingerprint_form"),
    ("actor_fingerprint", "0" * 64 + "\n", "fingerprint_form"),
    ("actor_fingerprint", "\u0660" * 32, "fingerprint_form"),
)
BROKEN_ONCE = {column: (column, value) for column, value, _ in BROKEN}.values()
SOUND: tuple[tuple[str, object], ...] = (
    ("importance", 0.0),
    ("importance", 1.0),
    ("change_kind", None),
    ("actor_fingerprint", None),
    ("actor_fingerprint", "0123456789abcdef" * 4),
)
OF_RECEIPTS = (("actor_fingerprint", 7), ("fingerprint", 10))
"""Columns, and which argument of a commit each is."""

FILES = """
WITH tables AS (
    SELECT *
    FROM pg_class
    WHERE relnamespace = 'memory'::regnamespace AND relname IN ('records', 'revisions', 'receipts')
)
SELECT relname::text AS name, relfilenode AS file FROM tables
UNION ALL
SELECT t.relname || ', long values', c.relfilenode
FROM tables AS t
JOIN pg_class AS c ON c.oid = t.reltoastrelid
UNION ALL
SELECT c.relname, c.relfilenode
FROM tables AS t
JOIN pg_index AS i ON i.indrelid = t.oid
JOIN pg_class AS c ON c.oid = i.indexrelid
"""
PARTIAL = {
    "records_decision_candidates",
    "records_memory_candidates",
    "records_shared_candidates",
    "records_session_candidates",
}
_RECORD = """
INSERT INTO memory.{table} (
    tenant_id, project_id, record_id, revision, revision_id, previous_revision_id, agent_id, kind,
    type, content, importance, tags, state, trust, change_kind, actor_fingerprint, create_time{more}
)
SELECT
    't1', 'p1', 'r' || n, {revision}, 'v{revision}-' || n, {previous}, 'a1', 'memory', 'note',
    repeat('long ', 2000), n / 10.0, '{{}}', 'active', 'pending',
    CASE WHEN n % 2 = 0 THEN 'updated' END, CASE WHEN n % 2 = 0 THEN repeat('0', 64) END,
    now(){given}
FROM generate_series(0, 10) AS n
"""
FILL = (
    _RECORD.format(
        table="records",
        revision=2,
        previous="'v1-' || n",
        more=", update_time, search_text",
        given=", now(), 'long'",
    ),
    _RECORD.format(table="revisions", revision=1, previous="NULL", more="", given=""),
    _RECORD.format(table="revisions", revision=2, previous="'v1-' || n", more="", given=""),
    """
    INSERT INTO memory.receipts (
        tenant_id, project_id, actor_fingerprint, idempotency_key, method, fingerprint, refs,
        outcome, create_time
    )
    SELECT 't1', 'p1', repeat('0', 64), 'key-' || n, 'CreateRecord', repeat('1', 64), '[]', '{}',
        now()
    FROM generate_series(0, 10) AS n
    """,
)
HEADS_AND_HISTORY = ("records", "revisions")
TABLES = (*HEADS_AND_HISTORY, "receipts")


@pytest.fixture
async def old(postgres_backend: PostgresBackend) -> AsyncIterator[Database]:
    """A database of before, with rows in it."""
    database = await postgres_backend.empty_database()
    await upgrade_to(database, "0006")
    for statement in FILL:
        await database.execute(statement)
    yield database
    await postgres_backend.drop(database)


# -------------------- what is refused


def writes() -> tuple[WriteSet, ...]:
    record = specimens.memory("r1")
    return (
        specimens.create(PROJECT, record),
        specimens.update(PROJECT, record),
        specimens.create(PROJECT, record, effect=specimens.effect(1)),
    )


@pytest.mark.parametrize(("column", "value", "check"), BROKEN)
async def test_no_commit_writes_what_a_column_may_not_hold(
    postgres_database: Database, column: str, value: object, check: str
) -> None:
    """Whatever the adapter sends, by each of the statements."""
    statements = set()
    for write in writes():
        statement, given = commit.encode(RESOURCE, write)
        rows = orjson.loads(str(given[4]))
        rows[0][column] = value
        spoilt = (*given[:4], orjson.dumps(rows).decode(), *given[5:])
        await assert_refused(postgres_database, check, statement, spoilt)
        statements.add(statement)
    assert statements == {COMMIT, COMMIT_NEW, COMMIT_CHANGED}


@pytest.mark.parametrize(("column", "place"), OF_RECEIPTS)
async def test_no_commit_writes_a_receipt_of_another_form(
    postgres_database: Database, column: str, place: int
) -> None:
    statement, given = commit.encode(RESOURCE, writes()[0])
    spoilt = (*given[:place], "0" * 63, *given[place + 1 :])
    await assert_refused(postgres_database, "fingerprint_form", statement, spoilt)


async def assert_refused(
    database: Database, check: str, statement: str, given: tuple[object, ...]
) -> None:
    connection = await asyncpg.connect(database.runtime_dsn)
    try:
        with pytest.raises(asyncpg.CheckViolationError) as refused:
            await connection.fetchval(statement, *given)
    finally:
        await connection.close()
    assert (refused.value.constraint_name, refused.value.detail) == (check, None)
    for table in (*TABLES, "claims", "recall_entries"):
        assert await database.fetchval(f"SELECT count(*) FROM memory.{table}") == 0


@pytest.mark.parametrize(("column", "value", "check"), BROKEN)
async def test_nobody_stores_what_a_column_may_not_hold(
    admin: asyncpg.Connection, record: Record, column: str, value: object, check: str
) -> None:
    """Not even who owns the tables."""
    for table in HEADS_AND_HISTORY:
        await admin.execute(f"ALTER TABLE memory.{table} DISABLE TRIGGER USER")
        with pytest.raises(asyncpg.CheckViolationError) as refused:
            await admin.execute(f"UPDATE memory.{table} SET {column} = $1", value)
        assert refused.value.constraint_name == check


@pytest.mark.parametrize("column", [column for column, _ in OF_RECEIPTS])
async def test_nobody_stores_a_receipt_of_another_form(
    admin: asyncpg.Connection, record: Record, column: str
) -> None:
    await admin.execute("ALTER TABLE memory.receipts DISABLE TRIGGER USER")
    with pytest.raises(asyncpg.CheckViolationError):
        await admin.execute(f"UPDATE memory.receipts SET {column} = 'x'")


@pytest.mark.parametrize("table", HEADS_AND_HISTORY)
async def test_what_a_column_may_hold_is_stored(
    admin: asyncpg.Connection, record: Record, table: str
) -> None:
    await admin.execute(f"ALTER TABLE memory.{table} DISABLE TRIGGER USER")
    for column, value in SOUND:
        await admin.execute(f"UPDATE memory.{table} SET {column} = $1", value)
        assert await admin.fetchval(f"SELECT {column} FROM memory.{table}") == value


async def test_what_must_be_there_is(admin: asyncpg.Connection, record: Record) -> None:
    for column in ("kind", "state", "trust", "importance", "revision"):
        with pytest.raises(asyncpg.NotNullViolationError):
            await admin.execute(f"UPDATE memory.records SET {column} = NULL")


# -------------------- the migration


async def test_what_was_stored_before_stays_where_it_is(old: Database) -> None:
    """004-101: no table is written anew, and no index but those whose condition names a column."""
    before, kept = await contents(old), await files(old)
    assert len(kept) >= 3 + 3 + 4
    await migrate(TREE, old.admin_dsn, old.runtime_role)
    assert await contents(old) == before
    after = await files(old)
    assert {name for name, file in kept.items() if after[name] != file} == PARTIAL
    looked_at = await old.fetchval(
        "SELECT count(*) FROM pg_stats WHERE schemaname = 'memory' AND"
        " (tablename, attname) IN (('records', 'kind'), ('revisions', 'state'))"
    )
    assert looked_at == 2


async def test_what_was_stored_before_is_read_and_changed(old: Database) -> None:
    """004-101: by the adapter."""
    await migrate(TREE, old.admin_dsn, old.runtime_role)
    await init_resource(old.admin_dsn, RESOURCE.resource_id, RESOURCE.generation)
    provider = PostgresMemoryProvider(old.options())
    await provider.negotiate(timeout=SECONDS)
    for name in ("r0", "r1"):
        request = LoadRequest(project=PROJECT, record_ids=(name,))
        head = (await provider.load(request, timeout=SECONDS)).heads[name]
        write = specimens.update(PROJECT, head)
        assert await provider.commit(write, timeout=SECONDS) == Committed()
    await provider.close()


@pytest.mark.parametrize(("column", "value"), BROKEN_ONCE)
@pytest.mark.parametrize("table", HEADS_AND_HISTORY)
async def test_what_should_not_be_stored_fails_it(
    old: Database, table: str, column: str, value: object
) -> None:
    """004-101: and leaves all as it was."""
    name, check = await check_of(old, table, column)
    await old.execute(f"ALTER TABLE memory.{table} DISABLE TRIGGER USER, DROP CONSTRAINT {name}")
    spoil = f"UPDATE memory.{table} SET {column} = $1 WHERE record_id = 'r3' AND revision = 2"
    await old.execute(spoil, value)
    await old.execute(f"ALTER TABLE memory.{table} ADD CONSTRAINT {name} {check} NOT VALID")
    before = await contents(old)
    with pytest.raises(DBAPIError, match=f'column "{column}" of table "{table}"'):
        await migrate(TREE, old.admin_dsn, old.runtime_role)
    assert await contents(old) == before
    assert await old.fetchval("SELECT version_num FROM memory.alembic_version") == "0006"
    assert await check_of(old, table, column) == (name, f"{check} NOT VALID")
    domains = "SELECT count(*) FROM pg_type WHERE typnamespace = 'memory'::regnamespace"
    assert await old.fetchval(f"{domains} AND typtype = 'd'") == 0


async def test_a_check_that_is_gone_does_not_stop_it(old: Database) -> None:
    """004-101: it was to go anyway; what is stored is looked at all the same."""
    name, _ = await check_of(old, "records", "importance")
    await old.execute(f"ALTER TABLE memory.records DROP CONSTRAINT {name}")
    await migrate(TREE, old.admin_dsn, old.runtime_role)
    assert await old.fetchval("SELECT version_num FROM memory.alembic_version") == "0007"


@pytest.mark.parametrize("first", TABLES)
async def test_nobody_is_ended_who_uses_the_tables_meanwhile(old: Database, first: str) -> None:
    """004-101: in whatever order, and for longer than the server looks for deadlocks."""
    link = await asyncpg.connect(old.admin_dsn)
    ask = "SELECT count(*) FROM memory.{}".format
    async with link.transaction():
        await link.execute(ask(first))
        migration = asyncio.create_task(migrate(TREE, old.admin_dsn, old.runtime_role))
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NOT NULL"
        while not await old.fetchval(waits):
            assert not migration.done()
            await asyncio.sleep(0.01)
        for table in TABLES:
            assert await link.fetchval(ask(table), timeout=SECONDS)
        await asyncio.sleep(1.5)  # the server looks for deadlocks after one
        assert not migration.done()
    await migration
    await link.close()
    assert await old.fetchval("SELECT version_num FROM memory.alembic_version") == "0007"


async def check_of(database: Database, table: str, column: str) -> tuple[str, str]:
    """Return the name and the text of the check of one column."""
    rows = await database.fetch(
        """
        SELECT c.conname::text, pg_get_constraintdef(c.oid)
        FROM pg_constraint AS c
        JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND c.conkey = ARRAY[a.attnum]
        WHERE c.contype = 'c' AND c.conrelid = $1::text::regclass AND a.attname = $2
        """,
        f"memory.{table}",
        column,
    )
    ((name, check),) = rows
    return name, check


async def files(database: Database) -> dict[str, int]:
    """Return what is kept in which file."""
    return {row["name"]: row["file"] for row in await database.fetch(FILES)}


async def contents(database: Database) -> list[list[str]]:
    """Return all rows, each as one text."""
    asked = "SELECT r::text FROM memory.{} AS r ORDER BY 1"
    return [[row[0] for row in await database.fetch(asked.format(each))] for each in TABLES]

"""What goes over the wire, and how the server finds rows."""

import re
from collections.abc import AsyncIterator

import asyncpg
import pytest

from providers.conformance import specimens
from providers.errors import StoredDataInvalidError
from providers.model import Claim, ClaimRelease, ProjectKey, ReceiptKey, RevisionRef
from providers.postgres import statements
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import (
    Committed,
    LoadRequest,
    RevisionsRequest,
    SearchRequest,
    StaleRevision,
)
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_proxy import PostgresProxy, proxied

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0
ONE_TRIP = ["B", "E", "S"]
"""Bind, Execute, Sync: no Parse, no BEGIN, no COMMIT."""

EVERYTHING = LoadRequest(
    project=PROJECT,
    record_ids=("r1", "r2"),
    revisions=(RevisionRef("r1", 1),),
    receipt=ReceiptKey(specimens.ACTOR, "key"),
    keys=("k1",),
    chain_from="r1",
    graph=True,
    transfer=True,
    stream_run_id="run-1",
)
HISTORY = RevisionsRequest(project=PROJECT, agent_id="a1", record_id="r1", before=None, limit=10)


@pytest.fixture
async def wire(postgres_database: Database) -> AsyncIterator[PostgresProxy]:
    async with proxied(postgres_database.runtime_dsn) as proxy:
        yield proxy


@pytest.fixture
async def counted(
    postgres_database: Database, wire: PostgresProxy
) -> AsyncIterator[PostgresMemoryProvider]:
    """A provider whose every message is seen. Its one connection is open."""
    dsn = wire.dsn(postgres_database.runtime_dsn)
    made = PostgresMemoryProvider(postgres_database.options(dsn=dsn, pool_size=1, pool_ready=1))
    await made.ready(timeout=SECONDS)
    wire.types.clear()
    yield made
    await made.close()


async def test_a_commit_is_one_trip_and_a_refusal_two(
    counted: PostgresMemoryProvider, wire: PostgresProxy
) -> None:
    record = specimens.memory("r1")
    full = specimens.create(
        PROJECT,
        record,
        claims=(Claim("k1", "r1"),),
        releases=(ClaimRelease("k2", "r1"),),
        must_be_absent=("k3",),
        tombstones=(specimens.tombstone("k4"),),
        graph_expected=0,
        effect=specimens.effect(1),
    )
    assert await counted.commit(full, timeout=SECONDS) == Committed()
    assert wire.types == ONE_TRIP
    wire.types.clear()
    update = specimens.update(PROJECT, record)
    assert await counted.commit(update, timeout=SECONDS) == Committed()
    assert wire.types == ONE_TRIP
    wire.types.clear()
    stale = specimens.update(PROJECT, record)
    assert await counted.commit(stale, timeout=SECONDS) == StaleRevision("r1", 2)
    assert wire.types == ONE_TRIP * 2


async def test_reads_are_one_trip(counted: PostgresMemoryProvider, wire: PostgresProxy) -> None:
    await counted.load(EVERYTHING, timeout=SECONDS)
    assert wire.types == ONE_TRIP
    wire.types.clear()
    await counted.revisions(HISTORY, timeout=SECONDS)
    assert wire.types == ONE_TRIP
    for agent_id in ("a1", None):
        for text in (None, "va", "Java"):
            wire.types.clear()
            asked = SearchRequest(project=PROJECT, agent_id=agent_id, text=text)
            await counted.search(asked, timeout=SECONDS)
            assert wire.types == ONE_TRIP


# -------------------- plans

CONDITION = re.compile(r"Index Cond: (.*)")
USING = re.compile(r"(?:Index.* Scan.* using|Bitmap Index Scan on) (\w+)")
KEYS = {
    "records_pkey": ["record_id"],
    "revisions_pkey": ["record_id", "revision"],
    "revisions_revision_id_key": ["revision_id"],
    "receipts_pkey": ["actor_fingerprint", "idempotency_key"],
    "counters_pkey": ["name"],
    "claims_pkey": ["key"],
}
TYPES = {
    "LOAD": "text, text, text[], text, text, text[], bigint[], text[], text[], text",
    "COMMIT": (
        "text, text, text, bigint, json, text[], json, text[], text[], bigint[], text, text, text,"
        " text, json, text, json, timestamptz, json"
    ),
    "CLASSIFY": "text, text, text, text, text[], text[], text[], text[]",
    "REVISIONS": "text, text, text, text, bigint, bigint",
}
NUMBERS = {"LOAD": 10, "COMMIT": 19, "CLASSIFY": 8, "REVISIONS": 6}


async def plan(session: asyncpg.Connection, name: str) -> list[str]:
    """Return the plan that the pool's sessions use for a statement."""
    await session.execute(
        "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off"
    )
    await session.execute(f"PREPARE asked ({TYPES[name]}) AS {getattr(statements, name)}")
    nulls = ", ".join(["NULL"] * NUMBERS[name])
    rows = await session.fetch(f"EXPLAIN EXECUTE asked ({nulls})")
    await session.execute("DEALLOCATE asked")
    return [row[0] for row in rows]


def partial_lookups(lines: list[str]) -> list[str]:
    """Return lookups that name less than the whole key, and walks through tables."""
    found: list[str] = []
    for number, line in enumerate(lines):
        if "Seq Scan on" in line and "resource" not in line:
            found.append(line)
        if used := USING.search(line):
            matched = CONDITION.search(lines[number + 1])
            names = ["tenant_id", "project_id", *KEYS[used[1]]]
            if matched is None or not all(f"({name} " in matched[1] for name in names):
                found.append(f"{line} {lines[number + 1]}")
    return found


async def fill(admin: asyncpg.Connection, database: Database, crowd: int) -> None:
    """Write one large project and a crowd of small ones: the average says nothing of either."""
    provider = PostgresMemoryProvider(database.options())
    write = specimens.create(
        PROJECT,
        specimens.memory("r0"),
        effect=specimens.effect(1),
        **specimens.claiming("r0", "k0"),
    )
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    await provider.close()
    for table, number in {"records": "record_id", "revisions": "revision_id"}.items():
        names = await admin.fetchval(
            "SELECT string_agg(column_name, ', ') FROM information_schema.columns"
            " WHERE table_schema = 'memory' AND table_name = $1"
            " AND column_name NOT IN ('project_id', 'record_id', 'revision_id')",
            table,
        )
        await admin.execute(
            f"""
            INSERT INTO memory.{table} (project_id, record_id, revision_id, {names})
            SELECT CASE WHEN n % 2 = 0 THEN 'p1' ELSE 'p' || n END, 'r' || n, 'v' || n, {names}
            FROM memory.{table}, generate_series(1, {crowd}) AS n WHERE {number} <> ''
            """
        )


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("crowd", [0, 4000])
@pytest.mark.parametrize("analysed", [False, True])
async def test_rows_are_found_by_their_whole_key(
    postgres_database: Database,
    admin: asyncpg.Connection,
    name: str,
    crowd: int,
    analysed: bool,
) -> None:
    """Whatever the statistics say, or if there are none."""
    if crowd:
        await fill(admin, postgres_database, crowd)
    if analysed:
        await admin.execute("ANALYZE")
    lines = await plan(admin, name)
    assert any(USING.search(line) for line in lines)
    assert partial_lookups(lines) == []


# -------------------- what is stored and does not pass

DAMAGES = {
    "an unknown kind": "kind = 'rumour'",
    "an unknown trust": "trust = 'blind'",
    "an unknown change": "change_kind = 'guessed'",
    "a number without its link": "revision = 2",
    "a link before the first": "previous_revision_id = 'x'",
    "a facet that is a list": "facet = '[1]'",
    "a facet with an unknown field": """facet = '{"mood": "good"}'""",
    "a facet with an unknown value": """facet = '{"memory_kind": "rumour"}'""",
    "a facet with text for a number": """facet = '{"confidence": "high"}'""",
    "a facet with more than a count": """facet = '{"corroboration": 2147483648}'""",
    "a facet with less than none": """facet = '{"corroboration": -1}'""",
    "a facet with a time before all times": """facet =
        '{"expire_time": "0001-01-01T00:00:00+14:00"}'""",
    "a tag that is none": "tags = '{NULL}'",
    "tags in two dimensions": "tags = '{{a}, {b}}'",
    "the end of time": "update_time = 'infinity'",
    "the beginning of time": "create_time = '-infinity'",
    "a time before Python's": "update_time = '4000-01-01 BC'",
    "a time after Python's": "create_time = '20000-01-01'",
    "a facet with no time for a time": """facet = '{"expire_time": "tomorrow"}'""",
}


@pytest.mark.parametrize("name", DAMAGES)
async def test_damaged_heads_are_told(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, name: str
) -> None:
    write = specimens.create(PROJECT, specimens.memory("r1"))
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    await drop_checks(admin, "records")
    await admin.execute(f"UPDATE memory.records SET {DAMAGES[name]}")
    with pytest.raises(StoredDataInvalidError):
        await provider.load(EVERYTHING, timeout=SECONDS)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM memory.revisions WHERE revision = 2",
        "DELETE FROM memory.revisions WHERE revision = 1",
        "DELETE FROM memory.revisions WHERE revision = 3",
        "UPDATE memory.revisions SET previous_revision_id = 'x' WHERE revision = 3",
        "UPDATE memory.revisions SET state = 'melted' WHERE revision = 1",
    ],
)
async def test_damaged_histories_are_told(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, damage: str
) -> None:
    chain = specimens.history("r1", 3)
    write = specimens.create(PROJECT, chain[-1], history=tuple(each.current for each in chain[:-1]))
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    await drop_checks(admin, "revisions")
    await admin.execute("ALTER TABLE memory.revisions DISABLE TRIGGER USER")
    await admin.execute(damage)
    with pytest.raises(StoredDataInvalidError):
        await provider.revisions(HISTORY, timeout=SECONDS)


async def test_damaged_receipts_are_told(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    write = specimens.create(PROJECT, specimens.memory("r1"))
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    await admin.execute("ALTER TABLE memory.receipts DISABLE TRIGGER USER")
    await admin.execute("""UPDATE memory.receipts SET refs = '[["r1", "one"]]'""")
    with pytest.raises(StoredDataInvalidError):
        await provider.commit(write, timeout=SECONDS)


async def drop_checks(admin: asyncpg.Connection, table: str) -> None:
    rows = await admin.fetch(
        "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = $1::text::regclass",
        f"memory.{table}",
    )
    for row in rows:
        await admin.execute(f"ALTER TABLE memory.{table} DROP CONSTRAINT {row[0]}")

"""How the database finds context candidates: by their own indexes, over no other records."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from providers.conformance.steps import candidates, names
from providers.migration import migrate
from providers.model import ProjectKey
from providers.postgres.connections import Connection
from providers.postgres.migrations import TREE
from providers.postgres.provider import PostgresMemoryProvider
from providers.postgres.resource import init_resource
from providers.postgres.statements import CANDIDATES
from tests.fixtures.postgres import RESOURCE, Database, PostgresBackend
from tests.integration.providers.test_postgres_search_migration import upgrade_to

ROWS = 30_000
PROJECT = ProjectKey("t0", "p0")
START = datetime(2026, 1, 1, tzinfo=UTC)
PARTS = {
    "records_decision_candidates": 60,
    "records_memory_candidates": 90,
    "records_shared_candidates": 60,
    "records_session_candidates": 30,
}
"""The candidates of one run, by the index that has them: 240 of 30,000 records."""

# In every thousand heads of the project eight are candidates of (a0, run-0). Most of the others are
# near: of the same kind and agent, active, approved, or with the tag.
_FILL = """
INSERT INTO memory.records (
    tenant_id, project_id, record_id, revision, revision_id, agent_id, kind, type, content,
    importance, tags, state, trust, source_run_id, create_time, update_time, search_text
)
SELECT
    't0', 'p0', 'r' || n, 1, 'v' || n, agent, kind, 'note', 'body', n % 7 / 10.0, ARRAY[tag], state,
    trust, run, $2::timestamptz, $2 + n * interval '1 s',
    'note' || U&'\\2000\\2000' || 'body' || U&'\\2001' || lower(tag) || U&'\\2001'
FROM generate_series(0, $1 - 1) AS n
CROSS JOIN LATERAL (SELECT n % 1000 AS of, 'a' || 1 + n / 1000 AS other) AS o
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN of < 2 THEN ARRAY['a1', 'decision', 'active', 'approved', 'run-1', 'x']
            WHEN of < 5 THEN ARRAY['a0', 'memory', 'active', 'pending', 'run-1', 'x']
            WHEN of < 7 THEN ARRAY[other, 'memory', 'active', 'approved', '', 'Cross-Team']
            WHEN of < 8 THEN ARRAY['a0', 'session_context', 'active', 'approved', 'run-0', 'x']
            WHEN of < 200 THEN ARRAY['a0', 'decision', 'superseded', 'approved', 'run-0', 'x']
            WHEN of < 300 THEN ARRAY['a0', 'decision', 'active', 'pending', 'run-0', 'cross-team']
            WHEN of < 400 THEN ARRAY['a0', 'memory', 'archived', 'approved', 'run-0', 'cross-team']
            WHEN of < 500 THEN ARRAY['a0', 'memory', 'active', 'rejected', 'run-0', 'cross-team']
            WHEN of < 700 THEN ARRAY[other, 'memory', 'active', 'pending', 'run-0', 'cross-team']
            WHEN of < 800 THEN ARRAY[other, 'memory', 'active', 'approved', 'run-0', 'cross']
            WHEN of < 900 THEN
                ARRAY['a0', 'session_context', 'active', 'approved', 'run-' || of, 'cross-team']
            ELSE ARRAY[other, 'session_context', 'active', 'approved', 'run-0', 'cross-team']
        END AS given
) AS g
CROSS JOIN LATERAL (
    SELECT
        given[1] AS agent, given[2] AS kind, given[3] AS state, given[4] AS trust, given[5] AS run,
        given[6] AS tag
) AS a
"""


@pytest.fixture(scope="module")
def crowded(postgres_backend: PostgresBackend) -> Iterator[Database]:
    """A project in which few of many records are candidates of one run."""

    async def fill() -> Database:
        database = await postgres_backend.database()
        connection = await asyncpg.connect(database.admin_dsn)
        await connection.execute(_FILL, ROWS, START)
        await connection.close()
        return database

    database = asyncio.run(fill())
    yield database
    asyncio.run(postgres_backend.drop(database))


async def looked_at(database: Database, limit: int) -> Counter[str]:
    """Return how many rows of ``records`` each index brought, given up or not."""
    provider = PostgresMemoryProvider(database.options())

    async def explain(link: Connection) -> str:
        await link.execute(f"PREPARE choosing AS {CANDIDATES}")
        plan: str = await link.fetchval(
            "EXPLAIN (ANALYZE, FORMAT JSON)"
            f" EXECUTE choosing ('t0', 'p0', 'a0', 'run-0', {limit}, 16777216)"
        )
        return plan

    try:
        plan = await provider._connections.run(explain, timeout=30)
    finally:
        await provider.close()
    found: Counter[str] = Counter()
    for node in _nodes(json.loads(plan)[0]["Plan"]):
        if node.get("Relation Name") == "records":
            assert node["Node Type"] == "Index Scan"
            removed = node.get("Rows Removed by Filter", 0)
            found[node["Index Name"]] += round(
                node["Actual Loops"] * (node["Actual Rows"] + removed)
            )
    return found


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for each in node.get("Plans", ()):
        yield from _nodes(each)


@pytest.mark.parametrize("analysed", [False, True])
async def test_candidates_are_all_that_is_read(crowded: Database, analysed: bool) -> None:
    """004-89: each candidate twice, once to choose and once to send it; nothing beside them."""
    if analysed:
        connection = await asyncpg.connect(crowded.admin_dsn)
        await connection.execute("VACUUM ANALYZE memory.records")
        await connection.close()
    assert await looked_at(crowded, 10_001) == {**PARTS, "records_pkey": sum(PARTS.values())}


@pytest.mark.parametrize("limit", [1, 10, 50])
async def test_no_more_is_read_than_the_limit_asks_for(crowded: Database, limit: int) -> None:
    """004-89: the first of each part are chosen from, however many there are."""
    wanted = {name: min(limit, many) for name, many in PARTS.items()}
    assert await looked_at(crowded, limit) == {**wanted, "records_pkey": limit}


async def test_they_are_the_right_ones(crowded: Database) -> None:
    """004-89: what the plans above read is what was meant."""
    provider = PostgresMemoryProvider(crowded.options())
    found = await candidates(provider, PROJECT, agent_id="a0", run_id="run-0", limit=10_001)
    await provider.close()
    assert len(found.records) == sum(PARTS.values())
    assert {int(name[1:]) % 1000 for name in names(found)} == set(range(8))


async def test_what_was_stored_before_is_chosen(postgres_backend: PostgresBackend) -> None:
    """004-89, 004-101: the migration indexes what is there."""
    database = await postgres_backend.empty_database()
    await upgrade_to(database, "0003")
    connection = await asyncpg.connect(database.admin_dsn)
    await connection.execute(_FILL, 2_000, START)
    await connection.close()
    await migrate(TREE, database.admin_dsn, database.runtime_role)
    await init_resource(database.admin_dsn, RESOURCE.resource_id, RESOURCE.generation)
    provider = PostgresMemoryProvider(database.options())
    await provider.negotiate(timeout=10)
    found = await candidates(provider, PROJECT, agent_id="a0", run_id="run-0")
    await provider.close()
    await postgres_backend.drop(database)
    assert len(found.records) == 16

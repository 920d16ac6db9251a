"""How the server finds compilations: in the order of an index, whatever the statistics say."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import product
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Select
from sqlalchemy.engine import make_url

from broker.domain.compilations import CompilationQuery
from broker.store.compilation_statements import found_one, listed
from tests.fixtures.compilations import hashed
from tests.fixtures.postgres import Database

DIALECT = make_url("postgresql+asyncpg://").get_dialect()
ROWS = 10_000
START = datetime(2026, 1, 1, tzinfo=UTC)
MIDDLE = datetime(2026, 1, 1, 1, tzinfo=UTC)
USED = re.compile(r"Index.* Scan.* using (\w+).*\n\s*Index Cond: (.*)")
FIND = found_one("t", "p", "r7", "c7")
# By each list: what it asks for, and the index in whose order it walks.
LISTS: dict[str, tuple[dict[str, Any], str]] = {
    "project": ({}, "compilations_project_order"),
    "run": ({"run_id": "r7"}, "compilations_run_order"),
    "record": ({"record_id": "hot"}, "compilation_items_pkey"),
    "rare record": ({"record_id": "x7"}, "compilation_items_pkey"),
    "revision": ({"record_id": "hot", "revision": 7}, "compilation_items_revision_order"),
    "record of a run": ({"record_id": "hot", "run_id": "r7"}, "compilations_run_order"),
    "revision of a run": (
        {"record_id": "x7", "revision": 1, "run_id": "r7"},
        "compilations_run_order",
    ),
}
# Without statistics a revision may also be looked for in its record's order.
UNKNOWING = {"compilation_items_revision_order": "compilation_items_pkey"}
# What names one row in an index.
WHOLE = {
    "compilations_pkey": ["compilation_id"],
    "compilations_project_order": ["create_time", "compilation_id"],
    "compilations_run_order": ["run_id", "create_time", "compilation_id"],
    "compilation_items_pkey": ["record_id", "create_time", "compilation_id"],
    "compilation_items_revision_order": ["record_id", "revision", "create_time", "compilation_id"],
}
ANALYSED = "SELECT count(*) > 0 FROM pg_stats WHERE tablename = 'compilation_items'"
PARTS: dict[str, dict[str, Any]] = {
    "first": {},
    "next": {"after": (MIDDLE, "c3600")},
    "times": {"compiled_from": START, "compiled_before": MIDDLE},
}
# One project holds all of it, and one record entered everywhere: the worst there is.
FILL = f"""
    INSERT INTO knowledge.compilations
    SELECT 't', 'p', 'c' || n, 'r' || n % 100, 'a', '{hashed("actor")}', NULL, 4000, 20, 100, NULL,
        1, 0, 0, 0, 0, '[]', '[]', $1::timestamptz + n * interval '1 second'
    FROM generate_series(1, $2::integer) AS n
"""
FILL_ITEMS = """
    INSERT INTO knowledge.compilation_items
    SELECT 't', 'p', i.record_id, i.revision, 'r' || n % 100, 'c' || n,
        $1::timestamptz + n * interval '1 second'
    FROM generate_series(1, $2::integer) AS n
    CROSS JOIN LATERAL
        (VALUES ('hot', 1 + n / 1000), ('x' || n % 500, 1)) AS i (record_id, revision)
"""


@pytest.fixture
async def filled(
    postgres_database: Database, request: pytest.FixtureRequest
) -> AsyncIterator[asyncpg.Connection]:
    """A session of a superuser, once there are as many rows and statistics as asked for."""
    rows, analysed = request.param
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    for table in ("compilations", "compilation_items"):
        await connection.execute(f"ALTER TABLE knowledge.{table} SET (autovacuum_enabled = false)")
    await connection.execute(FILL, START, rows)
    await connection.execute(FILL_ITEMS, START, rows)
    if analysed:
        await connection.execute("ANALYZE")
    yield connection
    await connection.close()


async def plans(session: asyncpg.Connection, statement: Select[Any]) -> list[str]:
    """Return the plan for these values and the one for any."""
    compiled = statement.compile(dialect=DIALECT())
    given = compiled.construct_params()
    values = [given[name] for name in compiled.positiontup or ()]
    made = []
    for mode in ("force_custom_plan", "force_generic_plan"):
        await session.execute(f"SET plan_cache_mode = {mode}; SET jit = off")
        rows = await session.fetch(f"EXPLAIN {compiled}", *values)
        made.append("\n".join(row[0] for row in rows))
    return made


SIZES = pytest.mark.parametrize(
    "filled",
    [(0, False), (ROWS, False), (ROWS, True)],
    indirect=True,
    ids=["empty", "no statistics", "statistics"],
)


def walks_well(plan: str, indexes: set[str]) -> bool:
    """Return whether rows come in an index's order, and what belongs to each by a whole key."""
    if "Seq Scan" in plan or "Sort" in plan or "Bitmap" in plan:
        return False
    walk, *lookups = USED.findall(plan)
    return walk[0] in indexes and all(
        f"({each} = " in condition for name, condition in lookups for each in WHOLE[name]
    )


@SIZES
async def test_lists_walk_an_index_in_its_order(filled: asyncpg.Connection) -> None:
    """000-38: no table is read whole and nothing is sorted, so that a page costs a page."""
    analysed = await filled.fetchval(ANALYSED)
    wrong: list[str] = []
    for (name, (wanted, index)), (part, also) in product(LISTS.items(), PARTS.items()):
        query = CompilationQuery(tenant_id="t", project_id="p", limit=100, **wanted, **also)
        may = {index} if analysed else {index, UNKNOWING.get(index, index)}
        made = await plans(filled, listed(query))
        wrong += [f"{name}, {part}:\n{plan}" for plan in made if not walks_well(plan, may)]
    assert not wrong, "\n\n".join(wrong)


@SIZES
async def test_one_is_found_by_its_key(filled: asyncpg.Connection) -> None:
    """002-34: a proof costs one look-up."""
    for plan in await plans(filled, FIND):
        [(index, condition)] = USED.findall(plan)
        names = {"compilations_pkey": "compilation_id", "compilations_run_order": "run_id"}
        assert f"({names[index]} = " in condition, plan

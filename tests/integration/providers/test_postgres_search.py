"""How the database finds a page: by which index, and over how many rows."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from providers.conformance import specimens
from providers.model import Kind, ProjectKey
from providers.postgres import search
from providers.postgres.connections import Connection
from providers.postgres.provider import PostgresMemoryProvider
from providers.postgres.statements import WALK
from providers.requests import Committed, SearchPosition, SearchRequest
from tests.fixtures.postgres import Database, PostgresBackend

ROWS = 24_000
SCOPES = 8
PROJECT = ProjectKey("t0", "p0")
AGENT = "a0"
START = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 50

# Eight scopes of 3,000 heads, newest last; one in 1,000 has a needle, each of them its number.
_FILL = """
INSERT INTO memory.records (
    tenant_id, project_id, record_id, revision, revision_id, agent_id, kind, type, content,
    importance, tags, state, trust, create_time, update_time, search_text
)
SELECT
    't' || n % 2, 'p' || n / 2 % 2, 'r' || n, 1, 'v' || n, 'a' || n / 4 % 2, 'memory', 'note', body,
    0.5, '{}', 'active', 'pending', $2::timestamptz, $2 + n * interval '1 s', body
FROM generate_series(0, $1 - 1) AS n
CROSS JOIN LATERAL (
    SELECT 'common ' || md5(n::text) || CASE WHEN n % 1000 = 8 THEN ' needle' || n ELSE '' END
) AS t (body)
"""


@dataclass(frozen=True)
class Step:
    """One node of a plan that reads ``records``."""

    index: str | None
    rows: int

    @classmethod
    def of(cls, node: dict[str, Any]) -> "Step":
        """Count what a node gave up as well as what it gave on."""
        removed = node.get("Rows Removed by Filter", 0) + node.get(
            "Rows Removed by Index Recheck", 0
        )
        return cls(node.get("Index Name"), node["Actual Loops"] * (node["Actual Rows"] + removed))


@pytest.fixture(scope="module")
def crowded(postgres_backend: PostgresBackend) -> Iterator[Database]:
    """A database with many heads in several scopes."""

    async def fill() -> Database:
        database = await postgres_backend.database()
        connection = await asyncpg.connect(database.admin_dsn)
        await connection.execute("SELECT set_config('work_mem', '64MB', false)")
        await connection.execute(_FILL, ROWS, START)
        await connection.execute("VACUUM ANALYZE memory.records")
        await connection.close()
        return database

    database = asyncio.run(fill())
    yield database
    asyncio.run(postgres_backend.drop(database))


async def steps(database: Database, request: SearchRequest) -> list[Step]:
    """Run a search in a session of the adapter, and return how it read ``records``."""
    provider = PostgresMemoryProvider(database.options())
    statement, arguments = search._query(request)

    async def explain(link: Connection) -> str:
        given = ", ".join(map(_literal, arguments))
        await link.execute(f"PREPARE searching AS {statement}")
        plan: str = await link.fetchval(
            f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE searching ({given})"
        )
        return plan

    try:
        plan = await provider._connections.run(explain, timeout=30)
    finally:
        await provider.close()
    return [*_steps(json.loads(plan)[0]["Plan"])]


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_literal, value))}]::text[]"
    return "'" + str(value).replace("'", "''") + "'"


def _steps(node: dict[str, Any]) -> Iterator[Step]:
    children = [step for each in node.get("Plans", ()) for step in _steps(each)]
    if node.get("Relation Name") == "records":
        assert node["Node Type"] != "Seq Scan"
        yield Step.of(node)
    elif "Index Name" in node:
        yield Step(node["Index Name"], 0)
    yield from children


def asking(agent_id: str | None = AGENT, **asked: Any) -> SearchRequest:
    return SearchRequest(project=PROJECT, agent_id=agent_id, limit=LIMIT, **asked)


@pytest.mark.parametrize(("agent_id", "index"), [(AGENT, "agent"), (None, "project")])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"kinds": frozenset({Kind.MEMORY}), "importance_min": 0.5},
        {"after": SearchPosition(datetime(2026, 1, 1, 2, tzinfo=UTC), "r9")},
        {"updated_before": datetime(2026, 1, 1, 3, tzinfo=UTC)},
        {"text": "co"},
    ],
)
async def test_a_list_reads_no_more_than_its_page(
    crowded: Database, agent_id: str | None, index: str, asked: dict[str, Any]
) -> None:
    """004-66: however many heads the scope has, from wherever the page begins."""
    found = await steps(crowded, asking(agent_id, **asked))
    assert [each.index for each in found] == [f"records_{index}_order"]
    assert LIMIT < found[0].rows <= LIMIT + 2


@pytest.mark.parametrize(("agent_id", "index"), [(AGENT, "agent"), (None, "project")])
@pytest.mark.parametrize("text", ["needle8", "NEEDLE", "8 needle", "nowhere to be found"])
async def test_rare_text_is_found_by_its_index(
    crowded: Database, agent_id: str | None, index: str, text: str
) -> None:
    """004-67: over no more rows than the first look takes, and those that hold the text."""
    found = await steps(crowded, asking(agent_id, text=text))
    named = {each.index for each in found if each.index is not None}
    assert named >= {f"records_{index}_order", "records_search_text"}
    assert named <= {f"records_{index}_order", "records_search_text", "records_pkey"}
    assert sum(each.rows for each in found) <= WALK + ROWS // 1000 * 2


async def test_common_text_is_found_on_the_way(crowded: Database) -> None:
    """004-67: what many heads hold costs no more than the first look and the page."""
    found = await steps(crowded, asking(text="common"))
    assert sum(each.rows for each in found) <= WALK + LIMIT + 1


@pytest.mark.parametrize("agent_id", [AGENT, None])
async def test_text_without_trigrams_reads_its_scope_alone(
    crowded: Database, agent_id: str | None
) -> None:
    """004-67: two characters of any script; nothing of another agent, project or tenant."""
    scope = ROWS // SCOPES if agent_id else 2 * ROWS // SCOPES
    for text in ("\u77e5\u8b58", "zz", "%_"):
        found = await steps(crowded, asking(agent_id, text=text))
        assert sum(each.rows for each in found) == scope


async def test_an_index_is_used_before_the_table_was_ever_analyzed(
    postgres_database: Database,
) -> None:
    """004-67: a plan made for an empty table walks through nothing when it has grown."""
    found = await steps(postgres_database, asking(text="needle"))
    assert {each.index for each in found} >= {"records_search_text", "records_pkey"}


async def test_what_is_searched_is_kept_with_the_head(
    provider: PostgresMemoryProvider, postgres_database: Database
) -> None:
    """004-67: folded, of the newest revision alone."""
    first = specimens.memory("r1", content=specimens.content("STRASSE \u00c9", tags=("A", "B")))
    second = specimens.after(first, "Stra\u00dfe E\u0301")
    for write in (
        specimens.create(PROJECT, first),
        specimens.write(PROJECT, specimens.put(second, over=first)),
    ):
        assert await provider.commit(write, timeout=10) == Committed()
        kept = await postgres_database.fetchval("SELECT search_text FROM memory.records")
        assert kept == "fact\u2000build\u2000strasse \u00e9\u2001a\u2001b\u2001"

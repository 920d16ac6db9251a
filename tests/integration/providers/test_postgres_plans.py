"""How the server finds rows: by whole keys, whatever the statistics say, or if there are none."""

import re

import asyncpg
import pytest

from providers.conformance import specimens
from providers.model import ProjectKey
from providers.postgres import statements
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import Committed
from tests.fixtures.postgres import Database

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0

CONDITION = re.compile(r"Index Cond: (.*)")
USING = re.compile(r"(?:Index.* Scan.* using|Bitmap Index Scan on) (\w+)")
KEYS = {
    "records_pkey": ["record_id"],
    "revisions_pkey": ["record_id", "revision"],
    "revisions_revision_id_key": ["revision_id"],
    "receipts_pkey": ["actor_fingerprint", "idempotency_key"],
    "counters_pkey": ["name"],
    "claims_pkey": ["key"],
    "effects_receipt_id_key": ["receipt_id"],
    "effects_pending": ["run_id", "sequence"],
    "effects_unscoped": ["receipt_id"],
    "records_agent_order": ["agent_id"],
    "records_decision_candidates": [],
    "records_memory_candidates": ["agent_id"],
    "records_shared_candidates": [],
    "records_session_candidates": ["agent_id", "source_run_id"],
    "recall_entries_pkey": ["record_id"],
    "recall_entries_scope": ["agent_id"],
    "recall_entries_terms": ["agent_id", "terms"],
    "recall_entries_bare": ["record_id"],
    "recall_vectors_pkey": ["record_id", "vector_id"],
    "recall_vectors_scope": ["agent_id", "model", "dimension"],
}
# What is found by less, on purpose: a walk along the links of one record's history, the one look-up
# without a project, and the old vectors of a record, whichever they are.
LESS = {
    "EXPORT_NAMED": {"revision"},
    "UNSCOPED": {"project_id"},
    "COMMIT": {"vector_id"},
    "COMMIT_CHANGED": {"vector_id"},
    "INDEX": {"vector_id"},
}
FILTERS = (
    "text, text, text, boolean, timestamptz, boolean, text[], text[], text, text, float8, text[],"
    " text[], text[], text[]"
)
WRITTEN = (
    "text, text, text, bigint, json, json, text[], text, text, text, text, json, text, json,"
    " timestamptz, real[]"
)
KEPT = "text, text, text[], text, text, text[], text[]"
TYPES = {
    "LOAD": f"{KEPT}, text[], bigint[], text",
    "LOAD_KEPT": KEPT,
    "LOAD_HEADS": "text, text, text[]",
    "HEADS": "text[], text[], text[]",
    "COMMIT": f"{WRITTEN}, text[], text[], bigint[], json",
    "COMMIT_NEW": WRITTEN,
    "COMMIT_CHANGED": f"{WRITTEN}, text[]",
    "CLASSIFY": "text, text, text, text, text[], text[], text[], text[], text",
    "REVISIONS": "text, text, text, text, bigint, bigint, boolean, bigint",
    "ACQUIRE": "text, text, text, text, text, bigint, integer",
    "ACKNOWLEDGE": "text, text, text, text, text, bigint, text, text, bigint",
    "RELEASE": "text, text, text, text, text, bigint, text, text",
    "EFFECT": "text, text, text, text",
    "PENDING": "text, text, text, bigint, bigint",
    "UNSCOPED": "text, text, text, text",
    "TOMBSTONES": "text, text, text[]",
    "CANDIDATES": "text, text, text, text, bigint, bigint",
    "RECALL": f"{FILTERS}, text[], bigint, bigint",
    "RECALL_NEAREST": f"{FILTERS}, text[], bigint, bigint, real[], text, integer, bigint",
    "TAGGED": f"{FILTERS}, bigint",
    "UNINDEXED": "text, text, text, bigint",
    "UNINDEXED_MODEL": "text, text, text, bigint, text",
    "INDEX": "text, text, text, bigint, json, text[], real[]",
    "EXPORT_AGENT": "text, text, text, bigint, bigint, bigint",
    "EXPORT_NAMED": "text, text, text, bigint, bigint, bigint, text[]",
}


async def plan(session: asyncpg.Connection, name: str) -> list[str]:
    """Return the plan that the pool's sessions use for a statement."""
    await session.execute(
        "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off"
    )
    await session.execute(f"PREPARE asked ({TYPES[name]}) AS {getattr(statements, name)}")
    nulls = ", ".join(["NULL"] * len(TYPES[name].split(",")))
    rows = await session.fetch(f"EXPLAIN EXECUTE asked ({nulls})")
    await session.execute("DEALLOCATE asked")
    return [row[0] for row in rows]


def partial_lookups(lines: list[str], name: str) -> list[str]:
    """Return lookups that name less than the whole key, and walks through tables."""
    less = LESS.get(name, set())
    found: list[str] = []
    for number, line in enumerate(lines):
        if "Seq Scan on" in line and "resource" not in line:
            found.append(line)
        if used := USING.search(line):
            matched = CONDITION.search(lines[number + 1])
            whole = ["tenant_id", "project_id", *KEYS[used[1]]]
            names = [each for each in whole if each not in less]
            if matched is None or not all(re.search(rf"\b{each}\b", matched[1]) for each in names):
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
    await fill_entries(admin, crowd)
    await admin.execute(
        f"""
        INSERT INTO memory.effects
            (tenant_id, project_id, run_id, sequence, receipt_id, receipt, accept_time, delivered)
        SELECT
            't1', CASE WHEN n % 2 = 0 THEN 'p1' ELSE 'p' || n END, 'run-1', n + 1, 'e' || n, '{{}}',
            now(), n % 100 <> 0
        FROM generate_series(1, {crowd}) AS n
        """
    )


async def fill_entries(admin: asyncpg.Connection, crowd: int) -> None:
    """Give each of the crowd's memories an entry of words that many or few have, and a vector."""
    await admin.execute(
        f"""
        INSERT INTO memory.recall_entries (
            tenant_id, project_id, record_id, agent_id, live, replaced, forgotten, create_time,
            update_time, importance, namespace, tags, length, terms, counts, vector_id,
            vector_model, vector_dimension
        )
        SELECT
            't1', CASE WHEN n % 2 = 0 THEN 'p1' ELSE 'p' || n END, 'r' || n, 'a1', true, false,
            false, now(), now(), 0.5, '', '{{}}', 2, ARRAY['all', 'few' || n % 500], '{{1,1}}',
            gen_random_uuid(), 'm1', 3
        FROM generate_series(1, {crowd}) AS n
        """
    )
    await admin.execute(
        """
        INSERT INTO memory.recall_vectors (
            tenant_id, project_id, record_id, vector_id, agent_id, model, dimension, embedding
        )
        SELECT
            tenant_id, project_id, record_id, vector_id, agent_id, 'm1', 3, '{0,0,1}'::real[]
        FROM memory.recall_entries
        WHERE vector_id IS NOT NULL
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
    """004-73, 004-82, 004-89: also what is pending among much that is delivered, and candidates."""
    if crowd:
        await fill(admin, postgres_database, crowd)
    if analysed:
        await admin.execute("ANALYZE")
    lines = await plan(admin, name)
    assert any(USING.search(line) for line in lines)
    assert partial_lookups(lines, name) == []

"""What recall on PostgreSQL costs, and what it is made of."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from providers.conformance import specimens
from providers.entries import DIMENSION_MAX, MODEL_LENGTH_MAX, Vector
from providers.errors import StoredDataInvalidError
from providers.model import HeadPut, ProjectKey, Record, State
from providers.postgres.provider import PostgresMemoryProvider
from providers.recall import (
    Eligible,
    EntryPut,
    IndexRequest,
    Near,
    Recalled,
    RecallRequest,
    TaggedRequest,
)
from providers.requests import Committed
from tests.integration.providers.waiting import blocked_sessions

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0
OTHERS = 200_000
OWN = 20
NEAR = specimens.vector(1.0, 0.0, 0.0)


def eligible(**asked: Any) -> Eligible:
    given = {"project": PROJECT, "agent_id": "a1", "at": specimens.START + timedelta(minutes=1)}
    return Eligible(**{**given, **asked})


async def recalled(provider: PostgresMemoryProvider, *terms: str, **asked: Any) -> Recalled:
    request = RecallRequest(eligible=eligible(), terms=terms, **asked)
    return await provider.recall(request, timeout=SECONDS)


async def put(provider: PostgresMemoryProvider, *puts: HeadPut) -> None:
    outcome = await provider.commit(specimens.write(PROJECT, *puts), timeout=SECONDS)
    assert outcome == Committed()


async def fill(admin: asyncpg.Connection, tenant: str, agents: int, rows: int) -> None:
    """Give a tenant so many memories of so many agents, with words all have and nearer vectors."""
    await admin.execute(
        f"""
        INSERT INTO memory.recall_entries (
            tenant_id, project_id, record_id, agent_id, live, replaced, forgotten, create_time,
            update_time, importance, namespace, tags, length, terms, counts, vector_id,
            vector_model, vector_dimension
        )
        SELECT
            '{tenant}', 'p1', '{tenant}-' || n, 'b' || n % {agents}, true, false, false,
            '2026-01-01Z', '2026-12-31Z', 1.0, '', '{{build}}', 4,
            ARRAY['build', 'java', 'word' || n % 1000], '{{1,2,1}}', gen_random_uuid(), 'm1', 3
        FROM generate_series(1, {rows}) AS n
        """
    )
    await admin.execute(
        """
        INSERT INTO memory.recall_vectors (
            tenant_id, project_id, record_id, vector_id, agent_id, model, dimension, embedding
        )
        SELECT
            tenant_id, project_id, record_id, vector_id, agent_id, 'm1', 3, '{1,0,0}'::real[]
        FROM memory.recall_entries
        WHERE tenant_id = $1 AND vector_id IS NOT NULL AND record_id LIKE $1 || '-%'
        """,
        tenant,
    )


@pytest.mark.parametrize("analysed", [False, True])
async def test_a_small_tenant_beside_a_large_one(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, analysed: bool
) -> None:
    """000-42, 002-21: beside 200,000 of others, in the same project too, 10 of 10 come."""
    await fill(admin, "t1", 1, OTHERS // 2)
    await fill(admin, "t2", 50, OTHERS // 2)
    assert await admin.fetchval("SELECT count(*) FROM memory.recall_entries") == OTHERS
    if analysed:
        await admin.execute("ANALYZE memory.recall_entries, memory.recall_vectors")
    vector = specimens.vector(0.0, 1.0, 0.0)
    mine = [specimens.memory(f"mine{n:02}") for n in range(OWN)]
    entry = specimens.entry("java build", vector=vector)
    await put(provider, *(specimens.put(each, entry=entry) for each in mine))
    names = [each.current.record_id for each in mine]
    got = await recalled(provider, "java", "build", vector=NEAR, nearest_max=10)
    assert sorted(each.record_id for each in got.matches) == names
    assert [each.record_id for each in got.nearest] == names[:10]
    assert (got.documents, got.frequencies) == (OWN, (OWN, OWN))
    page = await provider.tagged(
        TaggedRequest(eligible=eligible(tags=("build",)), limit=10), timeout=SECONDS
    )
    assert [each.current.record_id for each in page.records] == names[:10]
    assert page.more


async def test_a_change_of_state_touches_no_index_of_terms(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    """000-22: archived, active again, approved: the entry's row has its next version beside it."""
    record = specimens.memory("r1")
    await put(provider, specimens.put(record, entry=specimens.entry("java", vector=NEAR)))
    for turn in range(6):
        state = (State.ARCHIVED, State.ACTIVE)[turn % 2]
        later = specimens.after(record, state=state)
        await put(provider, specimens.put(later, over=record))
        record = later
    await provider.close()
    for counted in ("tuples_updated", "tuples_hot_updated"):
        function = f"pg_stat_get_{counted}('memory.recall_entries'::regclass)"
        assert await admin.fetchval(f"SELECT {function}") == 6


async def test_the_widest_vector_has_its_place_in_a_row(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    """001-26: of 1,536 numbers, with the longest names around it; nothing is out of line."""
    wide = ProjectKey("t" * 256, "p" * 256)
    head = specimens.memory("r" * 256, agent_id="a" * 256)
    numbers = [float(n % 7 - 3) for n in range(DIMENSION_MAX)]
    vector = specimens.vector(*numbers, model="\U0001f600" * MODEL_LENGTH_MAX)
    write = specimens.write(wide, specimens.put(head, entry=specimens.entry(vector=vector)))
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    request = RecallRequest(eligible=eligible(project=wide, agent_id="a" * 256), vector=vector)
    (near,) = (await provider.recall(request, timeout=SECONDS)).nearest
    assert near.similarity == pytest.approx(1.0, abs=1e-4)
    storage = await admin.fetchval(
        "SELECT attstorage FROM pg_attribute"
        " WHERE attrelid = 'memory.recall_vectors'::regclass AND attname = 'embedding'"
    )
    assert storage == b"p"


# -------------------- an entry that is built beside an edit


@pytest.mark.parametrize("vector", [None, specimens.vector(0.0, 1.0, 0.0)], ids=["none", "other"])
async def test_a_vector_built_beside_an_edit_never_answers_for_it(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    record: Record,
    lock: None,
    vector: Vector | None,
) -> None:
    """000-14: both wait for the head; the edit's snapshot is older than the vector it drops."""
    now = record.current
    built = EntryPut(
        record_id="r1",
        revision_id=now.revision_id,
        entry=specimens.entry("java", vector=NEAR),
    )
    request = IndexRequest(project=PROJECT, entries=(built,))
    indexing = asyncio.create_task(provider.index(request, timeout=SECONDS))
    await blocked_sessions(admin, 1)
    later = specimens.after(record, "Python.")
    edit = specimens.put(later, over=record, entry=specimens.entry("python", vector=vector))
    editing = asyncio.create_task(provider.commit(specimens.write(PROJECT, edit), timeout=SECONDS))
    await blocked_sessions(admin, 2)
    await admin.execute("ROLLBACK")
    assert await indexing == 1
    assert await editing == Committed()
    got = await recalled(provider, "java", "python", vector=NEAR)
    assert got.frequencies == (0, 1)
    assert got.nearest == (() if vector is None else (Near("r1", 0.0),))
    left = await admin.fetchval("SELECT count(*) FROM memory.recall_vectors")
    assert left == (1 if vector is None else 2), "what the edit could not see is left behind"


async def test_an_entry_for_a_head_that_moved_on_meanwhile_is_not_put(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, record: Record, lock: None
) -> None:
    """001-11: who waits for the head sees what it has become."""
    later = specimens.after(record, "Python.")
    edit = specimens.put(later, over=record, entry=specimens.entry("python"))
    editing = asyncio.create_task(provider.commit(specimens.write(PROJECT, edit), timeout=SECONDS))
    await blocked_sessions(admin, 1)
    built = EntryPut(
        record_id="r1", revision_id=record.current.revision_id, entry=specimens.entry("java")
    )
    request = IndexRequest(project=PROJECT, entries=(built,))
    indexing = asyncio.create_task(provider.index(request, timeout=SECONDS))
    await blocked_sessions(admin, 2)
    await admin.execute("ROLLBACK")
    assert await editing == Committed()
    assert await indexing == 0
    assert (await recalled(provider, "java", "python")).frequencies == (0, 1)


# -------------------- what is stored and does not pass


@pytest.mark.parametrize(
    "damage",
    ["counts = '{1}'", "counts = '{1,NULL}'", "terms = '{java,NULL}'", "terms = '{{build,java}}'"],
)
async def test_damaged_entries_are_told(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, damage: str
) -> None:
    """004-44: an entry that is not whole is an error, and no smaller count."""
    entry = specimens.entry("build java")
    await put(provider, specimens.put(specimens.memory("r1"), entry=entry))
    assert len((await recalled(provider, "build", "java")).matches) == 1
    await admin.execute(f"UPDATE memory.recall_entries SET {damage}")
    with pytest.raises(StoredDataInvalidError):
        await recalled(provider, "build", "java")

"""What goes over the wire, and how the server finds rows."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from providers.conformance import specimens
from providers.errors import StoredDataInvalidError
from providers.model import Claim, ClaimRelease, ProjectKey, ReceiptKey, RevisionRef
from providers.postgres import commit
from providers.postgres.provider import PostgresMemoryProvider
from providers.recall import (
    Eligible,
    EntryPut,
    IndexRequest,
    RecallRequest,
    TaggedRequest,
    UnindexedRequest,
)
from providers.requests import (
    Committed,
    LoadRequest,
    RevisionsRequest,
    SearchRequest,
    StaleRevision,
)
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_proxy import PostgresProxy, proxied
from tests.integration.providers.unchecked import drop_checks

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


async def test_entries_cost_no_trip(counted: PostgresMemoryProvider, wire: PostgresProxy) -> None:
    """004-68: a commit with words and a vector, recall by both, tags, and what is indexed later."""
    record = specimens.memory("r1")
    entry = specimens.entry("java build", vector=specimens.vector(1.0, 2.0))
    put = specimens.put(record, entry=entry)
    eligible = Eligible(project=PROJECT, agent_id="a1", at=specimens.START)
    now = record.current
    again = EntryPut(record_id="r1", revision_id=now.revision_id, entry=entry)
    asked = RecallRequest(eligible=eligible, terms=("java",), vector=entry.vector)
    tagged = TaggedRequest(eligible=eligible, limit=1)
    for call in (
        lambda: counted.commit(specimens.write(PROJECT, put), timeout=SECONDS),
        lambda: counted.recall(asked, timeout=SECONDS),
        lambda: counted.tagged(tagged, timeout=SECONDS),
        lambda: counted.index(IndexRequest(project=PROJECT, entries=(again,)), timeout=SECONDS),
        lambda: counted.unindexed(UnindexedRequest(project=PROJECT), timeout=SECONDS),
    ):
        wire.types.clear()
        await call()
        assert wire.types == ONE_TRIP


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
    await drop_checks(admin)
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
    await drop_checks(admin)
    await admin.execute("ALTER TABLE memory.revisions DISABLE TRIGGER USER")
    await admin.execute(damage)
    with pytest.raises(StoredDataInvalidError):
        await provider.revisions(HISTORY, timeout=SECONDS)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM memory.revisions WHERE revision = 3",
        "UPDATE memory.revisions SET previous_revision_id = 'x' WHERE revision = 4",
    ],
)
@pytest.mark.parametrize("asked", [{"limit": 2}, {"bytes_max": 300}, {"limit": 2, "brief": True}])
async def test_damage_at_the_end_of_a_page_is_told(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    damage: str,
    asked: dict[str, Any],
) -> None:
    """What a page ends before is compared with its end, though it is not sent."""
    chain = [specimens.memory("r1", "x" * 100)]
    for _ in range(4):
        chain.append(specimens.after(chain[-1]))
    write = specimens.create(PROJECT, chain[-1], history=tuple(each.current for each in chain[:-1]))
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    sound = await provider.revisions(replace(HISTORY, **asked), timeout=SECONDS)
    assert ([each.revision for each in sound.revisions], sound.more) == ([5, 4], True)
    await drop_checks(admin)
    await admin.execute("ALTER TABLE memory.revisions DISABLE TRIGGER USER")
    await admin.execute(damage)
    with pytest.raises(StoredDataInvalidError):
        await provider.revisions(replace(HISTORY, **asked), timeout=SECONDS)


async def test_damaged_receipts_are_told(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    write = specimens.create(PROJECT, specimens.memory("r1"))
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    await admin.execute("ALTER TABLE memory.receipts DISABLE TRIGGER USER")
    await admin.execute("""UPDATE memory.receipts SET refs = '[["r1", "one"]]'""")
    with pytest.raises(StoredDataInvalidError):
        await provider.commit(write, timeout=SECONDS)


async def test_a_replay_is_no_error_of_the_server(
    postgres_database: Database, admin: asyncpg.Connection
) -> None:
    """004-62: retries put nothing on its record, which would show their keys."""
    created = specimens.create(PROJECT, specimens.memory("r1"))
    statement, given = commit.encode(postgres_database.resource, created)
    assert await admin.fetchval(statement, *given)
    assert not await admin.fetchval(statement, *given)

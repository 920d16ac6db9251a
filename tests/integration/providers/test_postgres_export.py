"""What an export reads, what it refuses to send, and damage that it must not pass on."""

import re
from typing import Any

import asyncpg
import pytest

from providers.conformance import specimens
from providers.conformance.delivery_steps import accepted, acknowledge, acquire, pending, release
from providers.conformance.transfer_steps import export, exported, graves, names_of
from providers.errors import StoredDataInvalidError
from providers.model import Kind, ProjectKey
from providers.postgres import statements
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import Committed
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_proxy import proxied
from tests.integration.providers.unchecked import drop_checks

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0
ONE_TRIP = ["B", "E", "S"]


async def bring(provider: PostgresMemoryProvider, *names: str, length: int = 3) -> None:
    """Write whole chains in one commit."""
    chains = [specimens.history(name, length, facet=specimens.facet()) for name in names]
    past = tuple(each.current for chain in chains for each in chain[:-1])
    write = specimens.create(PROJECT, *(chain[-1] for chain in chains), history=past)
    assert await provider.commit(write, timeout=SECONDS) == Committed()


async def test_transfers_and_deliveries_are_one_trip(postgres_database: Database) -> None:
    """004-75, 004-82: Bind, Execute, Sync; nothing is prepared in a call."""
    async with proxied(postgres_database.runtime_dsn) as wire:
        dsn = wire.dsn(postgres_database.runtime_dsn)
        options = postgres_database.options(dsn=dsn, pool_size=1, pool_ready=1)
        provider = PostgresMemoryProvider(options)
        (effect,) = await accepted(provider, PROJECT)
        calls: list[Any] = [
            lambda: export(provider, PROJECT),
            lambda: export(provider, PROJECT, "r1", "r2"),
            lambda: graves(provider, PROJECT, "k1"),
            lambda: acquire(provider, PROJECT, effect),
            lambda: release(provider, PROJECT, effect, "x"),
            lambda: acknowledge(provider, PROJECT, effect, "x"),
            lambda: pending(provider, PROJECT),
        ]
        for call in calls:
            wire.types.clear()
            await call()
            assert wire.types == ONE_TRIP
        await provider.close()


# -------------------- what is read


async def read(admin: asyncpg.Connection, name: str, *limits: int) -> str:
    """Run an export with these limits and return what the server did for it."""
    names = ", ARRAY['r1', 'r2', 'r3', 'r4', 'r5', 'r6']" if name == "EXPORT_NAMED" else ""
    await admin.execute(
        "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off"
    )
    await admin.execute(f"PREPARE asked AS {getattr(statements, name)}")
    given = ", ".join(map(str, limits))
    rows = await admin.fetch(
        f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)"
        f" EXECUTE asked ('t1', 'p1', 'a1', {given}{names})"
    )
    await admin.execute("DEALLOCATE asked")
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("name", ["EXPORT_AGENT", "EXPORT_NAMED"])
async def test_an_export_past_a_limit_reads_no_history(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, name: str
) -> None:
    """004-83: one record too many ends the search, and then no revision of it is fetched."""
    await bring(provider, *(f"r{number}" for number in range(1, 7)))
    shipped = re.compile(r"revisions_pkey on revisions r\w*\s\((.*)\)")
    for limits, wanted in (((2, 100, 10**6), 3), ((6, 17, 10**6), 6)):
        done = await read(admin, name, *limits)
        chosen = re.search(r"CTE chosen\s+->\s+(?:Limit|Nested Loop) \(actual rows=(\d+)", done)
        assert chosen is not None
        assert int(chosen[1]) == wanted
        assert [each for each in shipped.findall(done) if "never executed" not in each] == []
    done = await read(admin, name, 6, 18, 1)
    assert re.search(r"never executed", shipped.findall(done)[-1]) is None
    assert re.match(r"Sort \(actual rows=1\b", done)


@pytest.mark.parametrize("named", [False, True])
async def test_bytes_are_those_of_the_texts(provider: PostgresMemoryProvider, named: bool) -> None:
    """004-83: as UTF-8, of compressed and outlying values too; facets are not counted."""
    content = specimens.content(
        "\u8b58" * 20_000, title=None, rationale="\u00fc", tags=("a", "\U0001f600")
    )
    record = specimens.memory("r1", content=content, facet=specimens.facet(), reason="\u00fc\u00fc")
    write = specimens.create(PROJECT, record)
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    size = len("fact") + 60_000 + 2 + 1 + 4 + 4
    names = ("r1",) if named else ()
    assert names_of(await exported(provider, PROJECT, *names, bytes_max=size)) == ["r1"]
    assert (await export(provider, PROJECT, *names, bytes_max=size - 1)).exceeded == "bytes"


async def test_limits_of_any_size_are_taken(provider: PostgresMemoryProvider) -> None:
    """004-83: a limit beyond all numbers of the store is none."""
    await bring(provider, "r1")
    far = 2**70
    got = await exported(provider, PROJECT, records_max=far, revisions_max=far, bytes_max=far)
    assert names_of(got) == ["r1"]


async def test_a_record_whose_kind_changed_is_one_chain(
    provider: PostgresMemoryProvider,
) -> None:
    """004-85: the kind of the head says where a chain stands and whether it is exported."""
    for name, (before, after) in {
        "b": (Kind.MEMORY, Kind.DECISION),
        "a": (Kind.PROPOSAL, Kind.MEMORY),
        "c": (Kind.MEMORY, Kind.PROPOSAL),
        "d": (Kind.DECISION, Kind.DECISION),
    }.items():
        first = specimens.memory(name, kind=before)
        head = specimens.after(first, kind=after)
        write = specimens.create(PROJECT, head, history=(first.current,))
        assert await provider.commit(write, timeout=SECONDS) == Committed()
    chains = await exported(provider, PROJECT)
    assert names_of(chains) == ["b", "d", "a"]
    assert {len(revisions) for _, revisions in chains} == {2}


# -------------------- damage

DAMAGES = {
    "a gap": "DELETE FROM memory.revisions WHERE revision = 2",
    "no beginning": "DELETE FROM memory.revisions WHERE revision = 1",
    "no end": "DELETE FROM memory.revisions WHERE revision = 3",
    "nothing at all": "DELETE FROM memory.revisions",
    "a link that does not fit": (
        "UPDATE memory.revisions SET previous_revision_id = 'x' WHERE revision = 3"
    ),
    "an unknown state": "UPDATE memory.revisions SET state = 'melted' WHERE revision = 1",
    "an unknown kind of head": "UPDATE memory.records SET kind = 'rumour'",
    "a revision after the head": "UPDATE memory.records SET revision = 2",
    "a head of another id": "UPDATE memory.records SET revision_id = 'x'",
    "a head of another link": "UPDATE memory.records SET previous_revision_id = 'x'",
    "a head of another type": "UPDATE memory.records SET type = 'x'",
    "a head of another title": "UPDATE memory.records SET title = NULL",
    "a head of another content": "UPDATE memory.records SET content = 'x'",
    "a head of another rationale": "UPDATE memory.records SET rationale = 'x'",
    "a head of another importance": "UPDATE memory.records SET importance = 0.25",
    "a head of other tags": "UPDATE memory.records SET tags = '{x}'",
    "a head of another facet": "UPDATE memory.records SET facet = '{}'",
    "a head of another state": "UPDATE memory.records SET state = 'archived'",
    "a head of another trust": "UPDATE memory.records SET trust = 'approved'",
    "a head of another run": "UPDATE memory.records SET source_run_id = 'x'",
    "a head of another session": "UPDATE memory.records SET source_session_id = 'x'",
    "a head of another decision": "UPDATE memory.records SET promoted_decision_id = 'x'",
    "a head of another successor": "UPDATE memory.records SET superseded_by_record_id = 'x'",
    "a head of another reason": "UPDATE memory.records SET reason = 'x'",
    "a head of another change": "UPDATE memory.records SET change_kind = 'imported'",
    "a head of another actor": "UPDATE memory.records SET actor_fingerprint = repeat('0', 64)",
    "a head of another time": "UPDATE memory.records SET update_time = now()",
    "a head of no time": "UPDATE memory.records SET create_time = 'infinity'",
}


@pytest.mark.parametrize("name", DAMAGES)
async def test_a_damaged_chain_is_never_exported(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, name: str
) -> None:
    """004-44, 004-85: numbers, links, and each column of the head."""
    await bring(provider, "r1")
    assert names_of(await exported(provider, PROJECT)) == ["r1"]
    for table in ("records", "revisions"):
        await admin.execute(f"ALTER TABLE memory.{table} DISABLE TRIGGER USER")
    await drop_checks(admin)
    await admin.execute(DAMAGES[name])
    for names in ((), ("r1",)):
        with pytest.raises(StoredDataInvalidError):
            await export(provider, PROJECT, *names)

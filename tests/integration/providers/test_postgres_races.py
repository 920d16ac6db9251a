"""Commits that meet: who wins, what the losers are told, and that nobody waits for ever."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from providers.conformance import specimens
from providers.model import Claim, ClaimRelease, ProjectKey, Record, WriteSet
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import (
    AlreadyExists,
    ClaimTaken,
    CommitOutcome,
    Committed,
    Contended,
    GraphConflict,
    LoadRequest,
    Replayed,
    StaleRevision,
    Tombstoned,
)
from tests.fixtures.postgres import Database
from tests.integration.providers.waiting import blocked_sessions

PROJECT = ProjectKey("t1", "p1")
SECONDS = 30.0

Start = Callable[[WriteSet], Awaitable["asyncio.Task[CommitOutcome]"]]


async def commit(provider: PostgresMemoryProvider, write: WriteSet) -> CommitOutcome:
    return await provider.commit(write, timeout=SECONDS)


async def create(provider: PostgresMemoryProvider, *records: Record) -> None:
    assert await commit(provider, specimens.create(PROJECT, *records)) == Committed()


async def deadlocks(provider: PostgresMemoryProvider, admin: asyncpg.Connection) -> int:
    await provider.close()  # sessions that end hand in what they counted
    found: int = await admin.fetchval(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    return found


@pytest.fixture
async def crowd(postgres_database: Database) -> AsyncIterator[PostgresMemoryProvider]:
    """A provider with connections enough for all to be inside the server at once."""
    made = PostgresMemoryProvider(postgres_database.options(pool_size=50))
    yield made
    await made.close()


async def test_fifty_writers_on_one_head(crowd: PostgresMemoryProvider) -> None:
    record = specimens.memory("r1")
    await create(crowd, record)
    writes = [specimens.update(PROJECT, record, f"text {number}") for number in range(50)]
    outcomes = Counter(await asyncio.gather(*(commit(crowd, each) for each in writes)))
    assert outcomes == {Committed(): 1, StaleRevision("r1", 2): 49}


async def test_fifty_creators_of_one_record(crowd: PostgresMemoryProvider) -> None:
    writes = [specimens.create(PROJECT, specimens.memory("r1")) for _ in range(50)]
    outcomes = Counter(await asyncio.gather(*(commit(crowd, each) for each in writes)))
    assert outcomes == {Committed(): 1, AlreadyExists("r1"): 49}


async def test_fifty_identical_retries(crowd: PostgresMemoryProvider) -> None:
    record = specimens.memory("r1")
    await create(crowd, record)
    write = specimens.update(PROJECT, record)
    outcomes = await asyncio.gather(*(commit(crowd, write) for _ in range(50)))
    assert sorted(type(each).__name__ for each in outcomes) == ["Committed"] + ["Replayed"] * 49
    assert all(each in (Committed(), Replayed(write.receipt)) for each in outcomes)


async def test_fifty_takers_of_one_key(crowd: PostgresMemoryProvider) -> None:
    writes = [
        specimens.create(
            PROJECT, specimens.memory(f"r{number}"), **specimens.claiming(f"r{number}", "k")
        )
        for number in range(50)
    ]
    outcomes = await asyncio.gather(*(commit(crowd, each) for each in writes))
    winner = outcomes.index(Committed())
    assert Counter(outcomes) == {Committed(): 1, ClaimTaken("k", f"r{winner}"): 49}


async def test_fifty_first_advances_of_one_counter(crowd: PostgresMemoryProvider) -> None:
    writes = [
        specimens.create(PROJECT, specimens.memory(f"r{number}"), graph_expected=0)
        for number in range(50)
    ]
    outcomes = Counter(await asyncio.gather(*(commit(crowd, each) for each in writes)))
    assert outcomes == {Committed(): 1, GraphConflict(): 49}


async def test_tombstones_all_advance_the_transfer_counter(crowd: PostgresMemoryProvider) -> None:
    writes = [
        specimens.create(
            PROJECT, specimens.memory(f"r{number}"), tombstones=(specimens.tombstone(f"k{number}"),)
        )
        for number in range(30)
    ]
    pending = writes
    for _ in range(30):
        outcomes = await asyncio.gather(*(commit(crowd, each) for each in pending))
        assert set(outcomes) <= {Committed(), Contended()}
        pending = [w for w, o in zip(pending, outcomes, strict=True) if o == Contended()]
        if not pending:
            break
    loaded = await crowd.load(LoadRequest(project=PROJECT, transfer=True), timeout=SECONDS)
    assert loaded.transfer == 30


async def test_two_head_commits_never_deadlock(
    crowd: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    names = [f"r{number}" for number in range(6)]
    heads = {name: specimens.memory(name) for name in names}
    await create(crowd, *heads.values())
    dice = random.Random(7)
    applied = 0

    async def pair() -> None:
        nonlocal applied
        chosen = dice.sample(names, 2)
        seen = (
            await crowd.load(
                LoadRequest(project=PROJECT, record_ids=tuple(chosen)), timeout=SECONDS
            )
        ).heads
        write = specimens.write(
            PROJECT,
            *(specimens.put(specimens.after(seen[name]), over=seen[name]) for name in chosen),
        )
        outcome = await commit(crowd, write)
        assert isinstance(outcome, Committed | StaleRevision)
        applied += outcome == Committed()

    for _ in range(640 // 40):
        await asyncio.gather(*(pair() for _ in range(40)))
    bumped = await admin.fetchval("SELECT sum(revision) - 6 FROM memory.records")
    appended = await admin.fetchval("SELECT count(*) - 6 FROM memory.revisions")
    assert bumped == appended == 2 * applied
    assert applied >= 640 // 40
    assert await deadlocks(crowd, admin) == 0


async def test_commits_of_every_sort_never_deadlock(
    crowd: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    """Heads, keys and counters, named in any order, some there already and some not yet."""
    heads = [specimens.memory(f"h{number}") for number in range(4)]
    await create(crowd, *heads)
    dice = random.Random(11)

    def write_set(number: int) -> WriteSet:
        keys = dice.sample([f"k{each}" for each in range(12)], 4)
        graves = dice.sample([f"t{each}" for each in range(60)], 2)
        new = [specimens.memory(f"n{each}") for each in dice.sample(range(number, number + 5), 2)]
        old = dice.sample(heads, 2)
        return specimens.write(
            PROJECT,
            *(specimens.put(each) for each in new),
            *(specimens.put(specimens.after(each), over=each) for each in old[: number % 2]),
            claims=tuple(Claim(key, "h0", dice.choice([None, "h0"])) for key in keys[:2]),
            releases=tuple(ClaimRelease(key, "h0") for key in keys[2:]),
            must_be_absent=(graves[0],),
            tombstones=(specimens.tombstone(graves[1]),),
            graph_expected=dice.choice([None, None, 0, 1]),
        )

    seen: Counter[str] = Counter()
    for start in range(0, 600, 40):
        writes = [write_set(number) for number in range(start, start + 40)]
        outcomes = await asyncio.gather(*(commit(crowd, each) for each in writes))
        seen.update(type(each).__name__ for each in outcomes)
    assert set(seen) >= {"Committed", "AlreadyExists", "ClaimTaken", "Tombstoned"}
    assert await deadlocks(crowd, admin) == 0


# -------------------- the moment between a commit's snapshot and its locks


@pytest.fixture
async def start_blocked(provider: PostgresMemoryProvider, admin: asyncpg.Connection) -> Start:
    """Starts a commit that updates head ``gate`` and holds it there, its snapshot taken."""
    gate = specimens.memory("gate")
    await create(provider, gate)
    await admin.execute("BEGIN")
    await admin.execute("SELECT FROM memory.records WHERE record_id = 'gate' FOR UPDATE")

    async def start(write: WriteSet) -> asyncio.Task[CommitOutcome]:
        following = specimens.put(specimens.after(gate), over=gate)
        blocked = replace(write, heads=(following,))
        task = asyncio.create_task(commit(provider, blocked))
        await blocked_sessions(admin, 1)
        return task

    return start


async def let_go(admin: asyncpg.Connection) -> None:
    await admin.execute("ROLLBACK")


ASKS: dict[str, dict[str, Any]] = {
    "absence": {"must_be_absent": ("k",)},
    "claim": {"claims": (Claim("k", "y"),)},
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("before", ["nothing", "a free key"])
async def test_a_tombstone_put_meanwhile_is_seen(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    start_blocked: Start,
    ask: str,
    before: str,
) -> None:
    if before == "a free key":
        await commit(provider, specimens.write(PROJECT, must_be_absent=("k",)))
    task = await start_blocked(specimens.write(PROJECT, **ASKS[ask]))
    bury = specimens.write(PROJECT, tombstones=(specimens.tombstone("k"),))
    assert await commit(provider, bury) == Committed()
    await let_go(admin)
    assert await task == Tombstoned("k")


@pytest.mark.parametrize("before", ["nothing", "a free key"])
async def test_a_claim_taken_meanwhile_is_seen(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, start_blocked: Start, before: str
) -> None:
    if before == "a free key":
        await commit(provider, specimens.write(PROJECT, must_be_absent=("k",)))
    task = await start_blocked(specimens.write(PROJECT, claims=(Claim("k", "y"),)))
    taken = specimens.write(PROJECT, claims=(Claim("k", "x"),))
    assert await commit(provider, taken) == Committed()
    await let_go(admin)
    assert await task == ClaimTaken("k", "x")


async def test_a_claim_taken_meanwhile_is_released(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, start_blocked: Start
) -> None:
    task = await start_blocked(specimens.write(PROJECT, releases=(ClaimRelease("k", "x"),)))
    taken = specimens.write(PROJECT, claims=(Claim("k", "x"),))
    assert await commit(provider, taken) == Committed()
    await let_go(admin)
    assert await task == Committed()
    loaded = await provider.load(LoadRequest(project=PROJECT, keys=("k",)), timeout=SECONDS)
    assert loaded.keys == {}


async def test_a_claim_given_back_meanwhile_is_free(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, start_blocked: Start
) -> None:
    await commit(provider, specimens.write(PROJECT, claims=(Claim("k", "x"),)))
    task = await start_blocked(specimens.write(PROJECT, claims=(Claim("k", "y"),)))
    give_back = specimens.write(PROJECT, releases=(ClaimRelease("k", "x"),))
    assert await commit(provider, give_back) == Committed()
    await let_go(admin)
    assert await task == Committed()


async def test_a_key_handed_on_meanwhile_is_not_taken(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, start_blocked: Start
) -> None:
    await commit(provider, specimens.write(PROJECT, claims=(Claim("k", "x"),)))
    task = await start_blocked(specimens.write(PROJECT, claims=(Claim("k", "y", held_by="x"),)))
    handed = specimens.write(PROJECT, claims=(Claim("k", "z", held_by="x"),))
    assert await commit(provider, handed) == Committed()
    await let_go(admin)
    assert await task == ClaimTaken("k", "z")


async def test_a_counter_advanced_meanwhile_is_seen(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, start_blocked: Start
) -> None:
    task = await start_blocked(specimens.write(PROJECT, transfer_expected=0))
    bury = specimens.write(PROJECT, tombstones=(specimens.tombstone("k"),))
    assert await commit(provider, bury) == Committed()
    await let_go(admin)
    assert await task == GraphConflict()


async def test_tombstones_put_meanwhile_are_both_counted(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, start_blocked: Start
) -> None:
    task = await start_blocked(specimens.write(PROJECT, tombstones=(specimens.tombstone("k"),)))
    bury = specimens.write(PROJECT, tombstones=(specimens.tombstone("k", "other"),))
    assert await commit(provider, bury) == Committed()
    await let_go(admin)
    assert await task == Committed()
    loaded = await provider.load(
        LoadRequest(project=PROJECT, keys=("k",), transfer=True), timeout=SECONDS
    )
    assert loaded.transfer == 2
    assert loaded.keys["k"].tombstone_kind == "forgotten"


async def test_a_head_put_meanwhile_is_followed(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    """A commit whose snapshot is older than the revision it expects, and that still fits."""
    first, second, third = specimens.history("gate", 3)
    await create(provider, first)
    await admin.execute("BEGIN")
    await admin.execute("SELECT FROM memory.records WHERE record_id = 'gate' FOR UPDATE")
    tasks = []
    for number, (following, before) in enumerate([(second, first), (third, second)], start=1):
        write = specimens.write(PROJECT, specimens.put(following, over=before))
        tasks.append(asyncio.create_task(commit(provider, write)))
        await blocked_sessions(admin, number)
    await let_go(admin)
    assert await asyncio.gather(*tasks) == [Committed(), Committed()]
    request = LoadRequest(project=PROJECT, record_ids=("gate",))
    assert (await provider.load(request, timeout=SECONDS)).heads == {"gate": third}
    assert await admin.fetchval("SELECT count(*) FROM memory.revisions") == 3


async def test_a_marker_that_changed_meanwhile_is_told_by_the_next_call(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection
) -> None:
    await create(provider, specimens.memory("r1"))
    await admin.execute("UPDATE memory.resource SET generation = 2")
    with pytest.raises(Exception, match="live resource"):
        await commit(provider, specimens.create(PROJECT, specimens.memory("r2")))
    assert await admin.fetchval("SELECT count(*) FROM memory.records") == 1

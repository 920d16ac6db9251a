"""Instances that write at once, and documents that are not where they belong."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from broker.devstack.cosmos import Fault
from providers.conformance import specimens
from providers.conformance.delivery_steps import accepted, acknowledge, acquire, leased
from providers.conformance.steps import (
    candidates,
    commit,
    committed,
    gathered,
    head,
    load,
    nothing_of,
    page,
    persist,
    search,
    settled,
    stored,
)
from providers.conformance.transfer_steps import brought, chain_of, export, graves, renamed
from providers.cosmos import keys
from providers.cosmos.provider import CosmosMemoryProvider
from providers.errors import ProviderClosedError, ProviderUnavailableError, StoredDataInvalidError
from providers.model import ProjectKey, ReceiptKey
from providers.requests import (
    AlreadyExists,
    ClaimTaken,
    Committed,
    Contended,
    GraphConflict,
    Replayed,
    Tombstoned,
)
from tests.fixtures.cosmos_resource import CosmosResource, opened

PROJECT = ProjectKey("t1", "p1")
ROUNDS = 6
RACERS = 12


@pytest.fixture
async def pair(
    memory: CosmosResource, cosmos_provider: CosmosMemoryProvider
) -> AsyncIterator[tuple[CosmosMemoryProvider, CosmosMemoryProvider]]:
    """Two instances on one resource."""
    async with opened(memory) as other:
        yield cosmos_provider, other


async def test_two_supersessions_make_no_circle(
    pair: tuple[CosmosMemoryProvider, CosmosMemoryProvider],
) -> None:
    """C6, C7, 004-59: they touch no document in common but the graph's counter."""
    for turn in range(ROUNDS):
        left, right = specimens.decision(f"l{turn}"), specimens.decision(f"r{turn}")
        await committed(pair[0], specimens.create(PROJECT, left, right))
        crossing = [
            specimens.write(
                PROJECT,
                specimens.put(specimens.superseded(old, by=by), over=old),
                graph_expected=turn,
            )
            for old, by in ((left, f"r{turn}"), (right, f"l{turn}"))
        ]
        outcomes = await gathered(map(settled, pair, crossing))
        assert sorted(map(repr, outcomes)) == [repr(Committed()), repr(GraphConflict())]
        chain = (await load(pair[1], PROJECT, chain_from=f"l{turn}")).chain
        assert len({each.record_id for each in chain}) == len(chain)


async def test_one_of_many_claims_wins(
    pair: tuple[CosmosMemoryProvider, CosmosMemoryProvider],
) -> None:
    """C21, 004-62: and the others hear who it was."""
    writes = [
        specimens.create(PROJECT, specimens.memory(f"r{n}"), **specimens.claiming(f"r{n}", "k"))
        for n in range(RACERS)
    ]
    outcomes = await gathered(settled(pair[n % 2], each) for n, each in enumerate(writes))
    winner = outcomes.index(Committed())
    losers = [each for each in outcomes if each != Committed()]
    assert losers == [ClaimTaken("k", f"r{winner}")] * (RACERS - 1)
    for number, each in enumerate(writes):
        if number != winner:
            await nothing_of(pair[0], each)


@pytest.mark.parametrize("held", [False, True])
async def test_a_tombstone_between_read_and_write_is_met(
    pair: tuple[CosmosMemoryProvider, CosmosMemoryProvider], memory: CosmosResource, *, held: bool
) -> None:
    """C-11, 004-62: of a key that nobody holds, and of one that a record does."""
    if held:
        await committed(pair[0], specimens.write(PROJECT, **specimens.claiming("r0", "k")))
    control = memory.server.control
    control.forget()
    control.inject(Fault(kind="batch", delay_ms=800))
    absent = specimens.create(PROJECT, specimens.memory("r1"), must_be_absent=("k",))
    writing = asyncio.create_task(commit(pair[0], absent))
    while "batch" not in control.counts():  # noqa: ASYNC110 - another process counts
        await asyncio.sleep(0.01)
    await committed(pair[1], specimens.write(PROJECT, tombstones=(specimens.tombstone("k"),)))
    assert await writing == Tombstoned("k")
    await nothing_of(pair[1], absent)


async def test_one_of_many_imports_of_one_history_wins(
    pair: tuple[CosmosMemoryProvider, CosmosMemoryProvider],
) -> None:
    """C-18, 004-87: revision ids inside segments are ids too, at the same moment as well."""
    history = [each.current for each in specimens.history("h", 5)]
    moved = chain_of(*specimens.history("h", 5))
    writes = []
    for number in range(RACERS):
        head_, revisions = renamed(moved, f"r{number}")
        same = list(revisions)
        same[2] = replace(same[2], revision_id=history[2].revision_id)
        same[3] = replace(same[3], previous_revision_id=history[2].revision_id)
        writes.append(brought(PROJECT, [(head_, tuple(same))]))
    outcomes = await gathered(settled(pair[n % 2], each) for n, each in enumerate(writes))
    assert outcomes.count(Committed()) == 1
    assert sum(isinstance(each, AlreadyExists) for each in outcomes) == RACERS - 1


async def test_a_revision_id_inside_a_segment_is_taken(
    cosmos_provider: CosmosMemoryProvider,
) -> None:
    """C-18, 004-87: for an ordinary write too, if only the import was there before."""
    moved = chain_of(*specimens.history("h", 5))
    await committed(cosmos_provider, brought(PROJECT, [moved]))
    thief = specimens.memory("thief", revision_id=moved[1][2].revision_id)
    write = specimens.create(PROJECT, thief)
    assert await commit(cosmos_provider, write) == AlreadyExists("thief")


async def test_a_call_gives_up_where_others_always_come_first(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """C-14: never for ever, and nothing was written."""
    write = specimens.create(PROJECT, specimens.memory("r1"))
    memory.server.control.inject(Fault(kind="batch", inner=409, times=100))
    assert await commit(cosmos_provider, write) == Contended()
    assert memory.server.control.counts()["batch"] == 5
    memory.server.control.clear()
    await nothing_of(cosmos_provider, write)


async def test_a_read_gives_up_where_others_always_write(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """L-2: two pages of two moments are no answer."""
    left, right = specimens.memory("left"), specimens.memory("right")
    await committed(cosmos_provider, specimens.create(PROJECT, left, right))
    control = memory.server.control
    async with opened(memory) as writer:
        control.inject(Fault(kind="query", items=1, delay_ms=40, times=1_000))
        reading = asyncio.create_task(load(cosmos_provider, PROJECT, "left", "right"))
        now = left
        partition = keys.partition_of(PROJECT)
        while not reading.done():
            item = await memory.container.read_item(keys.head_id("left"), partition)
            await memory.container.replace_item(item["id"], item)
            await asyncio.sleep(0.005)
        with pytest.raises(ProviderUnavailableError):
            await reading
        control.clear()
        await stored(writer, PROJECT, now, right)


async def test_what_was_killed_comes_back_whole(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """004-43, 004-63: between two writes and in the middle of one."""
    record = specimens.memory("r1")
    await committed(cosmos_provider, specimens.create(PROJECT, record))
    memory.server.kill()
    update = specimens.update(PROJECT, record)
    with pytest.raises(ProviderUnavailableError):
        await commit(cosmos_provider, update)
    await asyncio.to_thread(memory.server.start)
    await stored(cosmos_provider, PROJECT, record)
    memory.server.control.inject(Fault(kind="batch", late_ms=60_000))
    writing = asyncio.create_task(persist(partial(commit, cosmos_provider, update)))
    while "batch" not in memory.server.control.counts():  # noqa: ASYNC110 - another process counts
        await asyncio.sleep(0.01)
    memory.server.kill()
    await asyncio.to_thread(memory.server.start)
    assert await writing == Replayed(update.receipt)
    await stored(cosmos_provider, PROJECT, update.heads[0].record)


async def test_closing_ends_what_is_under_way(memory: CosmosResource) -> None:
    """G-9: whoever is in the middle of a call hears that, or is too late to."""
    async with opened(memory) as provider:
        memory.server.control.inject(Fault(kind="query", delay_ms=500, times=20))
        calls = [asyncio.create_task(load(provider, PROJECT, "r1")) for _ in range(20)]
        await asyncio.sleep(0.1)
        await provider.close()
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(each) for each in results} <= {ProviderClosedError}


async def test_a_lease_ends_by_the_clock_of_the_service(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """C20, 004-74: whatever time it is here, and the token before is worth nothing."""
    (effect,) = await accepted(cosmos_provider, PROJECT)
    clock = memory.server.control
    token = await leased(cosmos_provider, PROJECT, effect, lease_ms=60_000)
    clock.skew(59)
    assert (await acquire(cosmos_provider, PROJECT, effect)).token is None
    clock.skew(61)
    assert not await acknowledge(cosmos_provider, PROJECT, effect, token)
    later = await leased(cosmos_provider, PROJECT, effect, lease_ms=60_000)
    assert not await acknowledge(cosmos_provider, PROJECT, effect, token)
    clock.skew(-3_600)
    assert await acknowledge(cosmos_provider, PROJECT, effect, later)


# -------------------- documents that are not where they belong


async def _moved(memory: CosmosResource, item_id: str, project: ProjectKey, **changes: Any) -> None:
    """Put a document of one project into another, as a bad tool would."""
    item = await memory.container.read_item(item_id, keys.partition_of(PROJECT))
    kept = {name: value for name, value in item.items() if not name.startswith("_")}
    await memory.container.create_item({**kept, "projectId": keys.partition_of(project), **changes})


async def test_projects_are_partitions(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """G-2: of every call; what lies in another partition is not there."""
    record = specimens.memory("r1")
    write = specimens.create(PROJECT, record, **specimens.claiming("r1", "k"))
    await committed(cosmos_provider, write)
    for other in (ProjectKey("t1/p1", ""), ProjectKey("t1", "p1/"), ProjectKey("t2", "p1")):
        assert await head(cosmos_provider, other, "r1") is None
        assert (await search(cosmos_provider, other)).records == ()
        assert (await candidates(cosmos_provider, other)).records == ()
        assert not (await page(cosmos_provider, other, "r1")).found
        assert (await export(cosmos_provider, other)).chains == ()
        assert (await graves(cosmos_provider, other, "k")).tombstones == ()
    await _moved(memory, keys.head_id("r1"), ProjectKey("t2", "p1"))
    assert await head(cosmos_provider, ProjectKey("t2", "p1"), "r1") == record


async def test_a_document_under_another_name_is_told(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """G-7: an id that leads to what is named otherwise."""
    record = specimens.memory("r1")
    receipt = specimens.receipt(key="one")
    write = specimens.create(PROJECT, record, receipt=receipt)
    await committed(cosmos_provider, write)
    other = ReceiptKey(specimens.ACTOR, "two")
    moves: dict[str, tuple[str, Callable[[], Any]]] = {
        keys.head_id("r2"): (
            keys.head_id("r1"),
            lambda: load(cosmos_provider, PROJECT, "r2"),
        ),
        keys.receipt_id(other): (
            keys.receipt_id(receipt.key),
            lambda: load(cosmos_provider, PROJECT, receipt=other),
        ),
    }
    for place, (item_id, call) in moves.items():
        await _moved(memory, item_id, PROJECT, id=place)
        with pytest.raises(StoredDataInvalidError):
            await call()

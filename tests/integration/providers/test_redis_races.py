"""Calls that meet on Redis, from several processes' providers: one winner, and the rest is told."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from providers.conformance import specimens
from providers.conformance.delivery_steps import (
    accepted,
    acknowledge,
    acquire,
    effect_of,
    leased_again,
    release,
)
from providers.model import AcceptedEffect, Claim, ClaimRelease, WriteSet
from providers.redis.provider import RedisMemoryProvider
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
)
from tests.fixtures.crowd import PROJECT, shelf_after
from tests.fixtures.redis import RedisBackend
from tests.fixtures.redis_audit import audit
from tests.fixtures.redis_faults import instances

SECONDS = 30.0
INSTANCES, CROWD = 5, 50


@pytest.fixture
async def providers(redis_backend: RedisBackend) -> AsyncIterator[list[RedisMemoryProvider]]:
    """Several processes' providers, with connections enough for all calls at once."""
    async with instances(redis_backend, INSTANCES, pool_size=20, pool_ready=10) as made:
        await asyncio.gather(*(each.ready(timeout=SECONDS) for each in made))
        yield made


async def met(
    providers: Sequence[RedisMemoryProvider], writes: Sequence[WriteSet]
) -> list[CommitOutcome]:
    """Commit all at once, each through another provider than its neighbours."""
    calls = (
        providers[number % len(providers)].commit(each, timeout=SECONDS)
        for number, each in enumerate(writes)
    )
    return await asyncio.gather(*calls)


async def create(provider: RedisMemoryProvider, *records: Any) -> WriteSet:
    write = specimens.create(PROJECT, *records)
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    return write


# -------------------- one winner


async def test_fifty_writers_on_one_head(
    redis_backend: RedisBackend, providers: list[RedisMemoryProvider]
) -> None:
    """004-55: the loser is told where the head is, and leaves nothing."""
    record = specimens.memory("r1")
    first = await create(providers[0], record)
    writes = [specimens.update(PROJECT, record, f"text {number}") for number in range(CROWD)]
    outcomes = await met(providers, writes)
    assert Counter(outcomes) == {Committed(): 1, StaleRevision("r1", 2): CROWD - 1}
    winner = writes[outcomes.index(Committed())]
    assert audit(redis_backend, PROJECT).shelf == await shelf_after([first, winner])


async def test_fifty_creators_of_one_record(providers: list[RedisMemoryProvider]) -> None:
    writes = [specimens.create(PROJECT, specimens.memory("r1")) for _ in range(CROWD)]
    outcomes = Counter(await met(providers, writes))
    assert outcomes == {Committed(): 1, AlreadyExists("r1"): CROWD - 1}


async def test_fifty_identical_retries(
    redis_backend: RedisBackend, providers: list[RedisMemoryProvider]
) -> None:
    """004-62: applied once, and each is told the same."""
    record = specimens.memory("r1")
    first = await create(providers[0], record)
    write = specimens.update(PROJECT, record)
    outcomes = await met(providers, [write] * CROWD)
    assert outcomes.count(Committed()) == 1
    assert outcomes.count(Replayed(write.receipt)) == CROWD - 1
    assert audit(redis_backend, PROJECT).shelf == await shelf_after([first, write])


async def test_fifty_identical_burials(
    redis_backend: RedisBackend, providers: list[RedisMemoryProvider]
) -> None:
    """004-62: also where nothing but the receipt stands in the way of a second time."""
    write = specimens.write(PROJECT, tombstones=(specimens.tombstone("k"),))
    outcomes = await met(providers, [write] * CROWD)
    assert outcomes.count(Committed()) == 1
    assert outcomes.count(Replayed(write.receipt)) == CROWD - 1
    assert audit(redis_backend, PROJECT).shelf.transfer == 1


async def test_fifty_takers_of_one_key(providers: list[RedisMemoryProvider]) -> None:
    names = [f"r{number}" for number in range(CROWD)]
    writes = [
        specimens.create(PROJECT, specimens.memory(name), **specimens.claiming(name, "k"))
        for name in names
    ]
    outcomes = await met(providers, writes)
    winner = names[outcomes.index(Committed())]
    assert Counter(outcomes) == {Committed(): 1, ClaimTaken("k", winner): CROWD - 1}


async def test_fifty_advances_of_one_counter(
    redis_backend: RedisBackend, providers: list[RedisMemoryProvider]
) -> None:
    """004-58: of those who saw the same graph one changes it."""
    names = [f"r{number}" for number in range(CROWD)]
    writes = [
        specimens.create(PROJECT, specimens.decision(name), graph_expected=0) for name in names
    ]
    outcomes = await met(providers, writes)
    assert Counter(outcomes) == {Committed(): 1, GraphConflict(): CROWD - 1}
    winner = writes[outcomes.index(Committed())]
    assert audit(redis_backend, PROJECT).shelf == await shelf_after([winner])


async def test_fifty_effects_of_one_place_in_a_stream(
    redis_backend: RedisBackend, providers: list[RedisMemoryProvider]
) -> None:
    """004-71: a stream has no gap and no place twice."""
    for sequence in (1, 2, 3):
        writes = [specimens.write(PROJECT, effect=specimens.effect(sequence)) for _ in range(CROWD)]
        outcomes = Counter(await met(providers, writes))
        assert outcomes == {Committed(): 1, Contended(): CROWD - 1}
    assert audit(redis_backend, PROJECT).shelf.streams == {"run-1": 3}


async def test_tombstones_all_advance_the_transfer_counter(
    redis_backend: RedisBackend, providers: list[RedisMemoryProvider]
) -> None:
    writes = [
        specimens.write(PROJECT, tombstones=(specimens.tombstone(f"k{number}"),))
        for number in range(CROWD)
    ]
    assert Counter(await met(providers, writes)) == {Committed(): CROWD}
    assert audit(redis_backend, PROJECT).shelf.transfer == CROWD


# -------------------- everything at once


async def test_64_commits_of_every_sort(
    redis_backend: RedisBackend, providers: list[RedisMemoryProvider]
) -> None:
    """004-41: heads, keys and counters that overlap: what is left is what some order left."""
    heads = [specimens.decision(f"h{number}") for number in range(4)]
    applied = [await create(providers[0], *heads)]
    seen: Counter[str] = Counter()
    dice = random.Random(11)
    for turn in range(8):
        now = await _now(providers[0])
        writes = [_any(dice, now, number) for number in range(turn * 64, turn * 64 + 64)]
        outcomes = await met(providers, writes)
        seen.update(type(each).__name__ for each in outcomes)
        applied += [w for w, told in zip(writes, outcomes, strict=True) if told == Committed()]
        assert audit(redis_backend, PROJECT).shelf.receipts.keys() == {
            each.receipt.key for each in applied
        }
    assert seen.keys() == {
        "AlreadyExists",
        "ClaimTaken",
        "Committed",
        "GraphConflict",
        "StaleRevision",
        "Tombstoned",
    }


async def _now(provider: RedisMemoryProvider) -> Any:
    asked = LoadRequest(
        project=PROJECT,
        record_ids=tuple(f"h{number}" for number in range(4)),
        keys=tuple(f"k{number}" for number in range(12)),
        graph=True,
    )
    return await provider.load(asked, timeout=SECONDS)


def _any(dice: random.Random, now: Any, number: int) -> WriteSet:
    new = [specimens.memory(f"n{each}") for each in dice.sample(range(number, number + 5), 1)]
    old = dice.sample(list(now.heads.values()), 2)
    keys = dice.sample(range(12), 3)
    holder = now.keys.get(f"k{keys[0]}")
    return specimens.write(
        PROJECT,
        *(specimens.put(each) for each in new),
        *(specimens.put(specimens.after(each), over=each) for each in old[: number % 3]),
        claims=(Claim(f"k{keys[0]}", "h0", holder and holder.record_id),) if number % 2 else (),
        releases=(ClaimRelease(f"k{keys[1]}", "h0"),),
        must_be_absent=(f"t{dice.randrange(400)}",),
        tombstones=(specimens.tombstone(f"t{dice.randrange(400)}"),),
        graph_expected=dice.choice([None, None, None, now.graph]),
    )


# -------------------- leases


async def test_eight_instances_deliver_a_stream(redis_backend: RedisBackend) -> None:
    """004-72, 004-74: each effect has one live lease and one acknowledgement, in order."""
    async with instances(redis_backend, 8) as providers:
        effects = await accepted(providers[0], PROJECT, 12)
        acknowledged: list[int] = []
        live: set[str] = set()

        async def work(provider: RedisMemoryProvider, dice: random.Random) -> None:
            while len(acknowledged) < len(effects):
                effect = effects[min(len(acknowledged), len(effects) - 1)]
                got = await acquire(provider, PROJECT, effect)
                if got.token is None:
                    await asyncio.sleep(dice.uniform(0, 0.01))
                    continue
                assert not live, "two live leases"
                live.add(got.token)
                await asyncio.sleep(dice.uniform(0, 0.01))
                live.remove(got.token)
                if dice.random() < 0.3:
                    assert await release(provider, PROJECT, effect, got.token)
                elif await acknowledge(provider, PROJECT, effect, got.token):
                    acknowledged.append(effect.sequence)

        workers = (work(each, random.Random(n)) for n, each in enumerate(providers))
        await asyncio.gather(*workers)
        assert acknowledged == [each.sequence for each in effects]
        told = [await effect_of(providers[0], PROJECT, each) for each in effects]
        assert all(each.delivered for each in told)
    audit(redis_backend, PROJECT)


async def test_a_lease_that_ran_out_is_fenced(redis_backend: RedisBackend) -> None:
    """004-74: eight who come when it is over: one has it, and the old token does nothing more."""
    async with instances(redis_backend, 8) as providers:
        (effect,) = await accepted(providers[0], PROJECT)
        old = (await acquire(providers[0], PROJECT, effect, lease_ms=50)).token
        assert old is not None
        tokens = await _raced(providers, effect)
        assert len(tokens) == 1
        assert not await acknowledge(providers[0], PROJECT, effect, old)
        assert not await release(providers[0], PROJECT, effect, old)
        fences = (acknowledge(each, PROJECT, effect, tokens[0]) for each in providers)
        assert sorted(await asyncio.gather(*fences)) == [False] * 7 + [True]


async def _raced(providers: Sequence[RedisMemoryProvider], effect: AcceptedEffect) -> list[str]:
    first = await leased_again(providers[1], PROJECT, effect)
    assert await release(providers[1], PROJECT, effect, first)
    got = await asyncio.gather(*(acquire(each, PROJECT, effect) for each in providers))
    return [each.token for each in got if each.token is not None]

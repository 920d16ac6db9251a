"""Search: what is looked at, what is left out, in which order, and how pages join."""

import asyncio
from datetime import timedelta
from itertools import product
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import committed, created, position, search, searched, trips
from providers.errors import StoredDataInvalidError
from providers.interface import IMemoryProvider
from providers.model import Kind, ProjectKey, Record, State, Trust
from providers.requests import SearchPage

PAGE_MAX = 100
MOMENT = timedelta(microseconds=1)


def _ids(records: tuple[Record, ...] | list[Record]) -> list[str]:
    return [each.current.record_id for each in records]


async def _found(provider: IMemoryProvider, project: ProjectKey, **asked: Any) -> list[str]:
    return sorted(_ids(await searched(provider, project, **asked)))


def _after_start(number: int, record_id: str, **changes: Any) -> Record:
    moment = specimens.START + timedelta(seconds=number)
    return specimens.memory(record_id, create_time=moment, **changes)


@law("S-1", "S-6", capability=Capability.SEARCH)
async def scope_filters_before_the_limit(bench: Bench) -> None:
    """004-66: newer records of other agents, projects and tenants cost no place on the page."""
    project, provider = bench.project(), bench.provider
    mine = [_after_start(n, f"mine{n}") for n in range(3)]
    await committed(provider, specimens.create(project, *mine))
    others = ("a", "a10", "A1", "a_1", "a%", "b1")
    for agent_id in others:
        theirs = [_after_start(9, f"{agent_id}-{n}", agent_id=agent_id) for n in range(5)]
        await committed(provider, specimens.create(project, *theirs))
    for elsewhere in (bench.project("p2"), bench.project("p"), bench.project(tenant_id="t2")):
        far = [_after_start(9, f"mine{n}", content=specimens.content("far")) for n in range(5)]
        await committed(provider, specimens.create(elsewhere, *far))
    for asked in ({}, {"text": "Java"}, {"tags": ("build",)}):
        got = await search(provider, project, limit=3, **asked)
        wanted = SearchPage(tuple(mine[::-1]), more=False)
        expect.equal(got, wanted, f"one agent's, asking {asked}")
        whole = await searched(provider, project, agent_id=None, limit=7, **asked)
        expect.equal(len(whole), 3 + 5 * len(others), f"the project's, asking {asked}")
    for nobody in ("", "a1 ", "*", "mine0"):
        expect.equal(await _found(provider, project, agent_id=nobody), [], f"{nobody!r}'s records")


@law("S-1", capability=Capability.SEARCH)
async def kinds_states_and_trusts_filter(bench: Bench) -> None:
    """004-66: a set lets its members through, an empty one everything; sets narrow each other."""
    project, provider = bench.project(), bench.provider
    shown = [each for each in State if each is not State.FORGOTTEN]
    made = {
        f"{kind}-{state}-{trust}": {"kind": kind, "state": state, "trust": trust}
        for kind, state, trust in product(Kind, shown, Trust)
    }
    records = [specimens.memory(name, **fields) for name, fields in made.items()]
    await created(provider, project, *records)
    for kinds, states, trusts in (
        ((), (), ()),
        ((Kind.DECISION,), (), ()),
        ((), (State.ACTIVE,), ()),
        ((), (), (Trust.LEGACY, Trust.REJECTED)),
        ((Kind.MEMORY, Kind.PROPOSAL), (State.ARCHIVED, State.ACTIVE), ()),
        ((Kind.SESSION_CONTEXT,), (State.PENDING,), (Trust.PENDING,)),
    ):
        wanted = [
            name
            for name, of in made.items()
            if (not kinds or of["kind"] in kinds)
            and (not states or of["state"] in states)
            and (not trusts or of["trust"] in trusts)
        ]
        asked = {
            "kinds": frozenset(kinds),
            "states": frozenset(states),
            "trusts": frozenset(trusts),
        }
        for text in (None, "java"):
            found = await _found(provider, project, text=text, limit=37, **asked)
            expect.equal(found, sorted(wanted), f"{kinds} {states} {trusts} {text}")
    wanted_first = await search(provider, project, kinds=frozenset({Kind.DECISION}), limit=1)
    expect.that(wanted_first.more, "more of a kind follows")


@law("S-4", capability=Capability.SEARCH)
async def forgotten_is_never_found(bench: Bench) -> None:
    """004-66: whatever is asked, a forgotten record is not there, and takes no place."""
    project, provider = bench.project(), bench.provider
    kept = _after_start(0, "kept")
    gone = [_after_start(n, f"gone{n}") for n in range(1, 4)]
    await committed(provider, specimens.create(project, kept, *gone))
    expect.equal(len(await searched(provider, project)), 4, "before they are forgotten")
    forgotten = [specimens.after(each, state=State.FORGOTTEN) for each in gone]
    puts = [specimens.put(new, over=old) for old, new in zip(gone, forgotten, strict=True)]
    await committed(provider, specimens.write(project, *puts))
    every = frozenset(State)
    for asked in ({}, {"states": every}, {"text": "Java"}, {"tags": ("build",)}):
        got = await search(provider, project, limit=1, **asked)
        expect.equal(got, SearchPage((kept,), more=False), f"asking {asked}")
    only = await search(provider, project, states=frozenset({State.FORGOTTEN}))
    expect.equal(only, SearchPage((), more=False), "asking for forgotten ones")


@law("S-5", capability=Capability.SEARCH)
async def importance_is_compared_as_a_number(bench: Bench) -> None:
    """004-66: 0.9 is above 0.5, 1e-05 below 0.25; both bounds are included."""
    project, provider = bench.project(), bench.provider
    values = (0.0, 5e-324, 1e-05, 0.1 + 0.2, 0.25, 0.3, 0.5, 0.75, 0.9, 1 - 2**-53, 1.0)
    records = [
        specimens.memory(f"r{value!r}", content=specimens.content(importance=value))
        for value in values
    ]
    await committed(provider, specimens.create(project, *records))
    bounds = (None, *values, 0.26, -1.0, 2.0, float("inf"), float("-inf"))
    for low, high in product(bounds, bounds):
        wanted = [
            f"r{value!r}"
            for value in values
            if (low is None or value >= low) and (high is None or value <= high)
        ]
        found = await _found(provider, project, importance_min=low, importance_max=high)
        expect.equal(found, sorted(wanted), f"from {low} to {high}")


@law("S-5", capability=Capability.SEARCH)
async def times_are_half_open_and_of_the_update(bench: Bench) -> None:
    """004-66: the first moment counts, the end does not, to the microsecond."""
    project, provider = bench.project(), bench.provider
    start = specimens.START
    old = specimens.memory("old", create_time=start - timedelta(days=1))
    records = [specimens.memory(f"r{n}", create_time=start + n * MOMENT) for n in range(4)]
    await committed(provider, specimens.create(project, old, *records))
    touched = specimens.after(old, create_time=start + 2 * MOMENT)
    await committed(provider, specimens.write(project, specimens.put(touched, over=old)))
    for begin, end, wanted in (
        (None, None, ["old", "r0", "r1", "r2", "r3"]),
        (2, None, ["old", "r2", "r3"]),
        (None, 2, ["r0", "r1"]),
        (1, 3, ["old", "r1", "r2"]),
        (2, 2, []),
        (3, 1, []),
    ):
        found = await _found(
            provider,
            project,
            updated_from=None if begin is None else start + begin * MOMENT,
            updated_before=None if end is None else start + end * MOMENT,
        )
        expect.equal(found, wanted, f"from {begin} before {end}")
    before = await _found(provider, project, updated_before=start)
    expect.equal(before, [], "updated before the oldest update")


@law("S-2", capability=Capability.SEARCH)
async def order_is_newest_first_then_id(bench: Bench) -> None:
    """004-67: update time descending, then the id ascending byte for byte."""
    project, provider = bench.project(), bench.provider
    names = ("B", "a", "Z", "a-b", "a.b", "a_b", "aB", "ab", "A", "10", "9", ":x", "-x", "a:b")
    tied = [specimens.memory(name) for name in names]
    newer, older = _after_start(1, "m-newer"), _after_start(-1, "m-older")
    await committed(provider, specimens.create(project, older, *tied, newer))
    wanted = ["m-newer", *sorted(names, key=str.encode), "m-older"]
    for limit, agent_id, text in product((1, 2, 5, PAGE_MAX), ("a1", None), (None, "java", "va")):
        found = await searched(provider, project, limit=limit, agent_id=agent_id, text=text)
        expect.equal(_ids(found), wanted, f"{limit} at a time, {agent_id}, {text}")
    moved = specimens.after(older, create_time=newer.create_time + MOMENT)
    await committed(provider, specimens.write(project, specimens.put(moved, over=older)))
    found = await searched(provider, project)
    expect.equal(_ids(found)[:2], ["m-older", "m-newer"], "after the oldest was updated")
    expect.equal(found[0], moved, "what is found of it")


@law("S-2", "S-6", capability=Capability.SEARCH)
async def page_sizes_1_2_default_max(bench: Bench) -> None:
    """004-66, 004-68: pages of any size give the same records, and say when nothing follows."""
    project, provider = bench.project(), bench.provider
    records = [_after_start(n // 3, f"r{n}") for n in range(PAGE_MAX + 1)]
    await created(provider, project, *records)
    wanted = sorted(records, key=lambda each: each.current.record_id)
    wanted.sort(key=lambda each: each.current.create_time, reverse=True)
    for limit, text in product((1, 2, 50, PAGE_MAX), (None, "java")):
        found = await searched(provider, project, limit=limit, text=text)
        expect.equal(_ids(found), _ids(wanted), f"{limit} at a time")
    default = await search(provider, project)
    expect.equal(default, SearchPage(tuple(wanted[:50]), more=True), "a page of the default size")
    last = await search(provider, project, limit=PAGE_MAX, after=position(wanted[0]))
    expect.equal(last, SearchPage(tuple(wanted[1:]), more=False), "a page that ends at the end")
    none = await search(provider, project, after=position(wanted[-1]))
    expect.equal(none, SearchPage((), more=False), "after the end")


@law("S-2", capability=Capability.SEARCH)
async def pages_join_under_writes(bench: Bench) -> None:
    """004-68: what does not change is there once while others insert, update and archive."""
    project, provider = bench.project(), bench.provider
    still = [_after_start(3 * n, f"still{n}") for n in range(30)]
    moving = [_after_start(3 * n + 1, f"moving{n}") for n in range(30)]
    await committed(provider, specimens.create(project, *still), specimens.create(project, *moving))
    writer = await bench.another()
    wanted = _ids(still[::-1])

    async def disturb() -> None:
        for n, record in enumerate(moving):
            updated = specimens.after(record, create_time=specimens.START + timedelta(hours=n + 1))
            await committed(writer, specimens.write(project, specimens.put(updated, over=record)))
            archived = specimens.after(updated, state=State.ARCHIVED)
            fresh = [_after_start(3 * n + 2, f"fresh{n}"), _after_start(9000 + n, f"newest{n}")]
            puts = (specimens.put(archived, over=updated), *map(specimens.put, fresh))
            await committed(writer, specimens.write(project, *puts))
            await asyncio.sleep(0)

    disturbing = asyncio.create_task(disturb())
    rounds = 0
    while not disturbing.done() or rounds == 0:
        for text in (None, "java"):
            found = _ids(await searched(provider, project, limit=4, text=text))
            expect.equal([each for each in found if each in wanted], wanted, "what did not change")
        rounds += 1
        await asyncio.sleep(0)
    await disturbing
    expect.equal(len(await searched(provider, project)), 120, "the records at the end")


@law("S-7", capability=Capability.SEARCH, facts=(StoreFact.COUNTED,))
async def search_is_one_round_trip(bench: Bench) -> None:
    """004-68: a page costs one trip, whatever is asked and found."""
    project, provider = bench.project(), bench.provider
    record = specimens.memory("r1")
    await committed(provider, specimens.create(project, record))
    for agent_id, text in product(("a1", None), (None, "va", "Java", "nowhere", "\0")):
        await search(provider, project, agent_id=agent_id, text=text)
        before = bench.round_trips()
        got = await search(provider, project, agent_id=agent_id, text=text)
        trips(bench, before, "search")
        wanted = () if text in ("nowhere", "\0") else (record,)
        expect.equal(got.records, wanted, f"what is found of {text!r}")


@law("G-7", capability=Capability.SEARCH, facts=(StoreFact.CORRUPTIBLE,))
async def damaged_record_is_told_by_a_search(bench: Bench) -> None:
    """004-44: a page that would hold a damaged record is an error, never a shorter page."""
    project, provider = bench.project(), bench.provider
    good, bad = specimens.memory("good"), specimens.memory("bad")
    await committed(provider, specimens.create(project, good, bad))
    expect.equal(len(await searched(provider, project)), 2, "before the damage")
    await bench.corrupt(project, "bad")
    for text in (None, "java"):
        call = search(provider, project, text=text)
        await expect.raises(call, StoredDataInvalidError, what=f"a search for {text}")

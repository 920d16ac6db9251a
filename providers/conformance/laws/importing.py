"""Imports: one commit brings records with all their past, or nothing; what is buried stays so."""

import asyncio
from dataclasses import replace
from itertools import product

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import commit, committed, load, settled, trips
from providers.conformance.transfer_steps import (
    Chain,
    as_imported,
    brought,
    chain_of,
    exported,
    graves,
    nothing_came,
    renamed,
)
from providers.exports import KeysFound
from providers.model import Record, Revision, State, Trust, WriteSet
from providers.requests import AlreadyExists, Committed, Replayed

RECORDS, REVISIONS, BYTES = 25, 500, 1_048_576
"""A bundle of full size (004-83)."""
SPARED = 16
"""Bytes of each revision that are not its content."""
SCRIPTS = {
    "ASCII": "a",
    "CJK": "\u8b58",
    "emoji": "\U0001f600",
    "control characters": "\u0001",
}
GRAVES = 30


def _bundle() -> tuple[Chain, ...]:
    """Make what an export may hold: links, any trust, and old revisions of which less is known."""
    first = specimens.memory("m1", facet=specimens.facet(), trust=Trust.LEGACY)
    bare = replace(
        first.current, actor_fingerprint=None, change_kind=None, reason="moved from a file"
    )
    memory = [Record(bare, first.create_time)]
    memory.append(specimens.after(memory[0], "said again", trust=Trust.REJECTED))
    memory.append(specimens.after(memory[1], state=State.ARCHIVED, change_kind=None))
    old, new = specimens.decision("d1", source_session_id="s-1"), specimens.decision("d2")
    replaced = specimens.superseded(old, by="d2")
    return chain_of(old, replaced), chain_of(new), chain_of(*memory)


@law("C-8", "C-18", "X-1", capability=Capability.REVISIONS)
async def import_round_trip(bench: Bench) -> None:
    """004-88: what was exported arrives verbatim below a new head, here and in a second place."""
    provider, project = bench.provider, bench.project()
    bundle = _bundle()
    write = brought(project, bundle, transfer_expected=0, graph_expected=0)
    await committed(provider, write)
    expect.equal(await commit(await bench.another(), write), Replayed(write.receipt), "again")
    first = await exported(provider, project)
    expect.equal(list(first), as_imported(write), "what was imported")
    counters = await load(provider, project, transfer=True, graph=True)
    expect.equal((counters.transfer, counters.graph), (1, 1), "the counters")
    there = bench.project("p2")
    onward = brought(there, first, transfer_expected=0)
    await committed(provider, onward)
    second = await exported(provider, there)
    expect.equal(list(second), as_imported(onward), "what was imported from an export")
    for (_, before), (_, after) in zip(first, second, strict=True):
        expect.equal(after[: len(before)], before, "what came from the first place, verbatim")
    expect.equal(await exported(provider, project), first, "the first place, untouched")


@law("C-1", "C-5", "C-18", capability=Capability.REVISIONS)
async def import_collision_nothing_written(bench: Bench) -> None:
    """004-87: an id that exists, wherever in the bundle it is, refuses the whole of it by name."""
    provider, project = bench.provider, bench.project()
    there = specimens.memory("there")
    moved = specimens.after(there, "moved on")
    await committed(
        provider,
        specimens.create(project, moved, history=(there.current,)),
    )
    for taken in (there.current.revision_id, moved.current.revision_id):
        for place in range(6):
            write = _with_revision_id(brought(project, _bundle()), place, taken)
            name = _revisions(write)[place].record_id
            expect.equal(await commit(provider, write), AlreadyExists(name), f"place {place}")
            await nothing_came(provider, write)
    for chains in (_bundle(), _bundle()[:1]):
        clash = renamed(chains[0], "there")
        write = brought(project, (*chains[1:], clash))
        expect.equal(await commit(provider, write), AlreadyExists("there"), "a record id")
        await nothing_came(provider, write)
    both = _with_revision_id(
        brought(project, (*_bundle(), renamed(_bundle()[1], "there"))), 0, moved.current.revision_id
    )
    expect.equal(await commit(provider, both), AlreadyExists("there"), "records come first")
    untouched = await exported(provider, project)
    expect.equal(untouched, (chain_of(there, moved),), "what was there")
    elsewhere = bench.project("p2")
    write = _with_revision_id(brought(elsewhere, _bundle()), 3, moved.current.revision_id)
    await committed(provider, write, specimens.create(elsewhere, specimens.memory("there")))


def _revisions(write: WriteSet) -> list[Revision]:
    return [*write.history, *(put.record.current for put in write.heads)]


def _with_revision_id(write: WriteSet, place: int, revision_id: str) -> WriteSet:
    """Give the revision at a place among history and heads another id, and mend its link."""
    was = _revisions(write)[place].revision_id

    def mended(each: Revision) -> Revision:
        named = replace(each, revision_id=revision_id) if each.revision_id == was else each
        linked = named.previous_revision_id == was
        return replace(named, previous_revision_id=revision_id) if linked else named

    heads = tuple(
        replace(put, record=replace(put.record, current=mended(put.record.current)))
        for put in write.heads
    )
    return replace(write, heads=heads, history=tuple(map(mended, write.history)))


@law("C-1", "C-15", "C-18", "X-1", capability=Capability.REVISIONS)
async def import_full_size_bundle_atomic(bench: Bench) -> None:
    """004-83: 25 records, 500 revisions, 1 MiB, of any shape and script, in one piece."""
    shapes = ((RECORDS, REVISIONS // RECORDS), (1, REVISIONS))
    for number, ((records, length), script) in enumerate(product(shapes, SCRIPTS)):
        project = bench.project(f"p{number}")
        what = f"{records} x {length} of {script}"
        bundle = [_full(f"r{n:02}", length, SCRIPTS[script]) for n in range(records)]
        write = brought(project, bundle, transfer_expected=0)
        size = sum(len(each.content.content.encode()) for each in write.history)
        expect.that(BYTES - REVISIONS * (SPARED + 4) <= size <= BYTES, f"the size of {what}")
        last = write.history[-1]
        blocker = specimens.memory("blocker", revision_id=last.revision_id, agent_id="a2")
        await committed(bench.provider, specimens.create(project, blocker))
        outcome = await commit(bench.provider, write)
        expect.equal(outcome, AlreadyExists(last.record_id), f"a clash at the end of {what}")
        expect.equal(await exported(bench.provider, project), (), f"what came of {what}")
        await nothing_came(bench.provider, write)
        good = _with_revision_id(write, len(write.history) - 1, specimens.fresh("rev"))
        await committed(bench.provider, good)
        found = list(await exported(bench.provider, project))
        expect.equal(len(found), records, f"the records of {what}")
        for chain, wanted in zip(found, as_imported(good), strict=True):
            expect.that(chain == wanted, f"every revision of {what} as it was given")


def _full(record_id: str, length: int, character: str) -> Chain:
    """Make a chain whose part of the bundle's bytes is as large as it may be."""
    text = character * ((BYTES // REVISIONS - SPARED) // len(character.encode()))
    chain = [specimens.memory(record_id, text)]
    while len(chain) < length:
        chain.append(specimens.after(chain[-1]))
    return chain_of(*chain)


# -------------------- tombstones


@law("T-2", "G-2", capability=Capability.REVISIONS)
async def tombstones_are_found_by_key(bench: Bench) -> None:
    """004-87: as they were put, by key byte for byte; no claim, no free key, no other project's."""
    provider, project = bench.provider, bench.project()
    keys = ("k", "K", "k_", "k%", "k/1", "k.1")
    buried = [specimens.tombstone(key, kind=f"kind of {key}") for key in keys]
    record = specimens.memory("r1")
    write = specimens.create(project, record, **specimens.claiming("r1", "held"))
    await committed(provider, write, specimens.write(project, tombstones=tuple(buried)))
    elsewhere = specimens.write(bench.project("p2"), tombstones=(specimens.tombstone("other"),))
    await committed(provider, elsewhere)
    order = tuple(sorted(buried, key=lambda each: each.key))
    asked = ("other", "held", "free", "\0", "k1", *keys, *keys)
    found = await graves(await bench.another(), project, *asked)
    expect.equal(found, KeysFound(order), "the tombstones")
    some = await graves(provider, project, "k%", "k")
    expect.equal([each.key for each in some.tombstones], ["k", "k%"], "some of them")
    for where, names in ((project, ()), (bench.project(tenant_id="t2"), keys)):
        expect.equal(await graves(provider, where, *names), KeysFound(()), "none of them")
    many = [f"grave-{number}" for number in range(GRAVES)]
    await committed(
        provider,
        specimens.write(project, tombstones=tuple(map(specimens.tombstone, many))),
    )
    wide = [*many, *(f"absent-{number}" for number in range(1_000 - GRAVES))]
    got = await graves(provider, project, *wide)
    expect.equal([each.key for each in got.tombstones], sorted(many), "those among a thousand")


@law("T-1", capability=Capability.REVISIONS)
async def tombstone_before_the_counter_is_seen(bench: Bench) -> None:
    """004-87: whoever read the counter sees every tombstone that had moved it by then."""
    provider, project = bench.provider, bench.project()
    writer = await bench.another()
    keys = [f"k{number:03}" for number in range(GRAVES)]

    async def bury() -> None:
        for key in keys:
            grave = specimens.write(project, tombstones=(specimens.tombstone(key),))
            expect.equal(await settled(writer, grave), Committed(), "a tombstone")
            await asyncio.sleep(0)

    burying = asyncio.create_task(bury())
    while not burying.done():
        counted = (await load(provider, project, transfer=True)).transfer
        found = {each.key for each in (await graves(provider, project, *keys)).tombstones}
        expect.that(found >= set(keys[:counted]), f"the {counted} tombstones that were counted")
        await asyncio.sleep(0)
    await burying
    found = {each.key for each in (await graves(provider, project, *keys)).tombstones}
    expect.equal(found, set(keys), "the tombstones in the end")


@law("T-3", capability=Capability.REVISIONS, facts=(StoreFact.COUNTED,))
async def tombstones_are_one_round_trip(bench: Bench) -> None:
    """004-87: however many keys are asked for."""
    provider, project = bench.provider, bench.project()
    await committed(provider, specimens.write(project, tombstones=(specimens.tombstone("k"),)))
    await graves(provider, project)
    for keys in (("k",), ("k", *(f"k{number}" for number in range(999)))):
        before = bench.round_trips()
        found = await graves(provider, project, *keys)
        trips(bench, before, "tombstones")
        expect.equal(len(found.tombstones), 1, "the tombstones")

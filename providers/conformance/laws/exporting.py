"""Exports: whole chains of one agent, of one snapshot, within limits or not at all."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import commit, committed, trips
from providers.conformance.transfer_steps import (
    Chain,
    chain_of,
    export,
    exported,
    names_of,
)
from providers.errors import StoredDataInvalidError
from providers.exports import Export
from providers.interface import IMemoryProvider
from providers.model import ChangeKind, Content, Kind, ProjectKey, Record, State
from providers.requests import Committed

TURNS = 40


async def _write_chain(
    provider: IMemoryProvider, project: ProjectKey, chain: tuple[Record, ...]
) -> Chain:
    await committed(provider, specimens.create(project, chain[0]))
    for earlier, later in pairwise(chain):
        await committed(provider, specimens.write(project, specimens.put(later, over=earlier)))
    return chain_of(*chain)


@law("X-1", capability=Capability.REVISIONS)
async def export_stable_bytes(bench: Bench) -> None:
    """004-82, 004-85: by kind, then id byte for byte; the same again as long as nothing changes."""
    provider, other, project = bench.provider, await bench.another(), bench.project()
    expect.equal(await export(provider, project), Export(()), "the export of nothing")
    written: list[Chain] = []
    for name in ("b", "B", "a.b", "a", "a_b", "a-b", "A"):
        said = {"facet": specimens.facet(), "reason": f"about {name}"}
        written.append(await _write_chain(provider, project, specimens.history(name, 3, **said)))
        made = specimens.decision(f"d-{name}")
        written.append(await _write_chain(provider, project, (made, specimens.after(made, "!"))))
    order = sorted(written, key=lambda each: (each[0].current.kind, each[0].current.record_id))
    first = await exported(provider, project)
    expect.equal(first, tuple(order), "all chains, whole, in order")
    expect.equal(await exported(other, project), first, "the export of another instance")
    some = await exported(provider, project, "b", "d-b", "a_b", "b", "absent", "\0")
    wanted = tuple(each for each in order if each[0].current.record_id in {"b", "d-b", "a_b"})
    expect.equal(some, wanted, "the chains that were named, in order")
    moved = specimens.after(order[0][0], "moved on")
    await committed(provider, specimens.write(project, specimens.put(moved, over=order[0][0])))
    again = await exported(provider, project)
    grown = (moved, (*order[0][1], moved.current))
    expect.equal(again, (grown, *order[1:]), "after one record moved on")


@law("X-1", "X-3", "G-2", capability=Capability.REVISIONS)
async def export_is_of_one_agent_and_two_kinds(bench: Bench) -> None:
    """004-82: no other agent's records, no other project's, no other kinds, nothing forgotten."""
    provider, project = bench.provider, bench.project()
    mine, gone = specimens.memory("mine"), specimens.memory("gone")
    others = (
        specimens.memory("theirs", agent_id="a10"),
        specimens.memory("THEIRS", agent_id="A1"),
        specimens.proposal("offer"),
        specimens.memory("context", kind=Kind.SESSION_CONTEXT),
    )
    await committed(provider, specimens.create(project, mine, gone, *others))
    for where in (bench.project("p2"), bench.project("p10"), bench.project(tenant_id="t2")):
        await committed(provider, specimens.create(where, specimens.memory("elsewhere")))
    forgotten = specimens.after(gone, state=State.FORGOTTEN, change_kind=ChangeKind.FORGOTTEN)
    await committed(provider, specimens.write(project, specimens.put(forgotten, over=gone)))
    archived = specimens.after(mine, state=State.ARCHIVED, change_kind=ChangeKind.ARCHIVED)
    await committed(provider, specimens.write(project, specimens.put(archived, over=mine)))
    wanted = (chain_of(mine, archived),)
    expect.equal(await exported(provider, project), wanted, "what the agent exports")
    named = ("mine", "gone", "theirs", "THEIRS", "offer", "context", "elsewhere")
    expect.equal(await exported(provider, project, *named), wanted, "what it exports by name")
    for agent_id in ("a1\0", "a", "a_", "%"):
        none = await exported(provider, project, agent_id=agent_id)
        expect.equal(none, (), f"what agent {agent_id!r} exports")


@law("X-3", capability=Capability.REVISIONS)
async def export_follows_links(bench: Bench) -> None:
    """004-82: with a record come those that any revision of it names as its replacement."""
    provider, project = bench.provider, bench.project()
    first, second, third, loose, theirs, gone, beyond = records = [
        specimens.decision(name) for name in ("d1", "d2", "d3", "d4", "d5", "d6", "d7")
    ]
    records[4] = theirs = replace(theirs, current=replace(theirs.current, agent_id="a2"))
    await committed(provider, specimens.create(project, *records))
    old = specimens.superseded(first, by="d2")
    back = specimens.after(old, superseded_by_record_id=None, state=State.ACTIVE)
    chains = {
        "d1": (first, old, back, specimens.superseded(back, by="absent")),
        "d2": (second, specimens.superseded(second, by="d3")),
        "d3": (third, specimens.superseded(third, by="d1")),
        "d5": (theirs, specimens.superseded(theirs, by="d4")),
    }
    middle = specimens.superseded(gone, by="d7")
    chains["d6"] = (gone, middle, specimens.after(middle, state=State.FORGOTTEN))
    for chain in chains.values():
        for earlier, later in pairwise(chain):
            await committed(provider, specimens.write(project, specimens.put(later, over=earlier)))
    round_about = [chain_of(*chains[name]) for name in ("d1", "d2", "d3")]
    for start in ("d1", "d2", "d3"):
        got = await exported(provider, project, start)
        expect.equal(got, tuple(round_about), f"what comes with {start}")
    both = await exported(provider, project, "d2", "d4")
    expect.equal(names_of(both), ["d1", "d2", "d3", "d4"], "what comes with two")
    for start in ("d5", "d6"):
        expect.equal(await exported(provider, project, start), (), f"what comes with {start}")
    theirs_too = await exported(provider, project, "d5", agent_id="a2")
    expect.equal(names_of(theirs_too), ["d5"], "what comes with another agent's")
    expect.equal(loose.current.record_id, names_of(both)[-1], "what nothing links to")
    alone = await exported(provider, project, beyond.current.record_id)
    expect.equal(alone, (chain_of(beyond),), "what only a forgotten one links to")


@law("X-3", capability=Capability.REVISIONS)
async def export_follows_every_branch(bench: Bench) -> None:
    """004-82: where revisions of one record name several others, all of them come, and theirs."""
    provider, project = bench.provider, bench.project()
    names = [f"d{number}" for number in range(7)]
    records = {name: specimens.decision(name) for name in names}
    await committed(provider, specimens.create(project, *records.values()))
    branches = {"d0": ("d1", "d2", "d3"), "d1": ("d4",), "d2": ("d5",), "d3": ("d6",)}
    for name, links in branches.items():
        now = records[name]
        for link in links:
            later = specimens.superseded(now, by=link)
            await committed(provider, specimens.write(project, specimens.put(later, over=now)))
            now = later
    found = names_of(await exported(provider, project, "d0"))
    expect.equal(found, names, "what comes with the root")
    expect.equal(names_of(await exported(provider, project, "d2")), ["d2", "d5"], "with a branch")
    got = await export(provider, project, "d0", records_max=len(names) - 1)
    expect.equal(got.exceeded, "records", "the limit that all of them pass")


@law("X-2", capability=Capability.REVISIONS)
async def export_limits(bench: Bench) -> None:
    """004-83: at a limit all comes, one past it nothing, and the first limit passed is named."""
    provider, project = bench.provider, bench.project()
    said = {"title": "\u00fc", "rationale": "\U0001f600", "tags": ("\u77e5", "x")}
    size = 0
    for name in ("r1", "r2", "r3"):
        chain = specimens.history(name, 4, content=specimens.content("\u8b58", **said))
        _, revisions = await _write_chain(provider, project, chain)
        size += sum(_size(each.content) for each in revisions)
    exact = {"records_max": 3, "revisions_max": 12, "bytes_max": size}
    expect.equal(
        names_of(await exported(provider, project, **exact)), ["r1", "r2", "r3"], "at the limits"
    )
    less = {name: value - 1 for name, value in exact.items()}
    for passed in (("bytes",), ("revisions", "bytes"), ("records", "revisions", "bytes")):
        changes = {f"{name}_max": less[f"{name}_max"] for name in passed}
        for names in ((), ("r1", "r2", "r3")):
            got = await export(provider, project, *names, **{**exact, **changes})
            expect.equal(got, Export((), passed[0]), f"past {passed}")
    for alone in ("records", "revisions"):
        got = await export(provider, project, **{**exact, f"{alone}_max": 1})
        expect.equal(got.exceeded, alone, f"past {alone} alone")
    some = await exported(provider, project, "r2", records_max=1, revisions_max=4)
    expect.equal(names_of(some), ["r2"], "one that is within")


def _size(content: Content) -> int:
    texts = (content.type, content.title, content.content, content.rationale, *content.tags)
    return sum(len((each or "").encode()) for each in texts)


@law("X-1", capability=Capability.REVISIONS)
async def export_is_of_one_snapshot(bench: Bench) -> None:
    """004-85: records that are always changed together are exported as one commit left them."""
    provider, project = bench.provider, bench.project()
    pair = [specimens.memory(name) for name in ("a", "z")]
    await committed(provider, specimens.create(project, *pair))
    writer = await bench.another()
    lengths: set[int] = set()

    async def update() -> None:
        now = pair
        for turn in range(TURNS):
            later = [specimens.after(each, f"turn {turn}") for each in now]
            puts = [specimens.put(new, over=old) for new, old in zip(later, now, strict=True)]
            outcome = await commit(writer, specimens.write(project, *puts))
            expect.equal(outcome, Committed(), "an update of both")
            now = later
            await asyncio.sleep(0)

    updating = asyncio.create_task(update())
    while not updating.done():
        for names in ((), ("a", "z")):
            chains = await exported(provider, project, *names)
            found = {len(revisions) for _, revisions in chains}
            texts = {head.current.content.content for head, _ in chains}
            expect.equal((len(chains), len(found), len(texts)), (2, 1, 1), "what belongs together")
            for head, revisions in chains:
                expect.equal(revisions[-1], head.current, "a head and its newest revision")
            lengths |= found
        await asyncio.sleep(0)
    await updating
    last = await exported(provider, project)
    expect.equal({len(each) for _, each in last}, {TURNS + 1}, "the chains in the end")


@law("X-4", "G-7", capability=Capability.REVISIONS, facts=(StoreFact.CORRUPTIBLE,))
async def export_of_a_damaged_record_raises(bench: Bench) -> None:
    """004-44, 004-85: what does not fit together is told, and is left out of nothing."""
    provider, project = bench.provider, bench.project()
    records = [specimens.memory(name) for name in ("r1", "r2", "r3")]
    await committed(provider, specimens.create(project, *records))
    expect.equal(len(await exported(provider, project)), 3, "the chains before")
    await bench.corrupt(project, "r2")
    for names in ((), ("r1", "r2"), ("r2",)):
        call = export(provider, project, *names)
        await expect.raises(call, StoredDataInvalidError, what=f"an export of {names or 'all'}")
    whole = await exported(provider, project, "r1", "r3")
    expect.equal(names_of(whole), ["r1", "r3"], "what is not damaged")


@law("X-5", capability=Capability.REVISIONS, facts=(StoreFact.COUNTED,))
async def export_is_one_round_trip(bench: Bench) -> None:
    """004-82: an export costs one trip, by name or not, within its limits or past them."""
    provider, project = bench.provider, bench.project()
    for name in ("r1", "r2"):
        await _write_chain(provider, project, specimens.history(name, 3))
    await export(provider, project)
    await export(provider, project, "r1")
    cases: tuple[tuple[tuple[str, ...], dict[str, Any], int], ...] = (
        ((), {}, 2),
        (("r1",), {}, 1),
        (("absent",), {}, 0),
        ((), {"records_max": 1}, 0),
        ((), {"bytes_max": 1}, 0),
    )
    for names, changes, wanted in cases:
        before = bench.round_trips()
        got = await export(provider, project, *names, **changes)
        trips(bench, before, "export")
        expect.equal(len(got.chains), wanted, f"chains of {names} {changes}")

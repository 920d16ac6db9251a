"""Recall by tags in its order, and entries that are built later or refused."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.recall_steps import (
    followed,
    found_by,
    index,
    listed,
    matched,
    recalled,
    remembered,
    tagged,
    unindexed,
)
from providers.conformance.steps import (
    SECONDS,
    commit,
    created,
    load,
    nothing_of,
    stored,
    trips,
)
from providers.entries import (
    DIMENSION_MAX,
    MODEL_LENGTH_MAX,
    RECORD_TERMS_MAX,
    TERM_LENGTH_MAX,
    RecallEntry,
    TermVector,
    Vector,
)
from providers.errors import StoredDataInvalidError, WriteSetInvalidError
from providers.model import Kind, MemoryFacet, Record, State, Trust
from providers.recall import EntryPut, IndexRequest

NAN = b"\0\0\xc0\x7f"
ONE = b"\0\0\x80\x3f"


@law("B-1", capability=Capability.RECALL)
async def most_important_come_first(bench: Bench) -> None:
    """003-04: importance as a number, then the newest, then the id; sorted before the limit."""
    project, provider = bench.project(), bench.provider
    values = (1.0, 1 - 2**-53, 0.9, 0.75, 0.3, 0.25, 0.1 + 0.2, 1e-05, 5e-324, 0.0)
    newer, older = (specimens.START + timedelta(microseconds=n) for n in (1, -1))
    tied = sorted(("B", "a", "Z", "a-b", "a.b", "a_b", "aB", "ab", "10", "9", ":x"), key=str.encode)
    records = [
        specimens.memory(f"v{value!r}", content=specimens.content(importance=value))
        for value in values
    ]
    records += [specimens.memory("newer", create_time=newer)]
    records += [specimens.memory(name) for name in tied]
    records += [specimens.memory("older", create_time=older)]
    usual, by_value = specimens.content().importance, sorted(values, reverse=True)
    wanted = [f"v{value!r}" for value in by_value if value > usual]
    wanted += ["newer", *tied, "older"]
    wanted += [f"v{value!r}" for value in by_value if value < usual]
    await created(provider, project, *records[::-1])
    others = [specimens.memory(f"other{n}", agent_id="a2") for n in range(9)]
    await created(provider, project, *others)
    heads = {each.current.record_id: each for each in records}
    for limit in (1, 2, 5, len(wanted) - 1, len(wanted), 100):
        got = await tagged(provider, project, limit=limit, tags=("build",))
        expect.equal(listed(got), wanted[:limit], f"the first {limit}")
        expect.equal(got.more, limit < len(wanted), f"whether more than {limit} fit")
        expect.equal(got.records, tuple(heads[name] for name in wanted[:limit]), "whole heads")


@law("B-1", "Q-2", capability=Capability.RECALL)
async def filters_act_before_the_limit(bench: Bench) -> None:
    """003-04, 000-42: what is more important and filtered takes no place, and is not more."""
    project, provider = bench.project(), bench.provider
    weighty = specimens.content(importance=1.0, tags=("other",))
    above = [
        *(specimens.memory(f"tag{n}", content=weighty) for n in range(40)),
        *(
            specimens.memory(f"space{n}", facet=MemoryFacet(namespace="away"), content=weighty)
            for n in range(40)
        ),
        *(specimens.memory(f"theirs{n}", agent_id="a2", content=weighty) for n in range(40)),
        specimens.decision("decision", content=weighty),
    ]
    await created(provider, project, *above, specimens.memory("mine1"), specimens.memory("mine2"))
    for asked in (
        {"tags": ("build",)},
        {"patterns": ("b*",)},
        {"subject": None, "tags": ("BUILD",)},
    ):
        got = await tagged(provider, project, limit=1, **asked)
        expect.equal((listed(got), got.more), (["mine1"], True), f"the first of {asked}")
        both = await tagged(provider, project, limit=2, **asked)
        expect.equal((listed(both), both.more), (["mine1", "mine2"], False), f"both of {asked}")
    found = await recalled(provider, project, "java")
    expect.equal(found.unindexed, 82, "how many have no entry")


@law("B-3", "I-1", capability=Capability.RECALL, facts=(StoreFact.COUNTED,))
async def tagged_and_unindexed_are_one_round_trip(bench: Bench) -> None:
    """004-68: one trip each, whatever is asked and found."""
    project, provider = bench.project(), bench.provider
    await created(provider, project, *(specimens.memory(f"r{n}") for n in range(50)))
    await tagged(provider, project)
    for asked, wanted in (
        ({}, 50),
        ({"limit": 7}, 7),
        ({"patterns": ("b*d",)}, 50),
        ({"tags": ("absent",)}, 0),
        ({"agent_id": "nobody"}, 0),
    ):
        before = bench.round_trips()
        got = await tagged(provider, project, **asked)
        trips(bench, before, "tagged")
        expect.equal(len(got.records), wanted, f"what is found for {asked}")
    await unindexed(provider, project)
    before = bench.round_trips()
    bare = await unindexed(provider, project)
    trips(bench, before, "unindexed")
    expect.equal(len(bare), 50, "how many have no entry")


@law("G-7", "B-1", "I-1", capability=Capability.RECALL, facts=(StoreFact.CORRUPTIBLE,))
async def damaged_memory_is_told(bench: Bench) -> None:
    """004-44: where a damaged head would be given back it is an error, and not one fewer."""
    project, provider = bench.project(), bench.provider
    await created(provider, project, specimens.memory("good"), specimens.memory("bad"))
    expect.equal(len((await tagged(provider, project)).records), 2, "before the damage")
    expect.equal(len(await unindexed(provider, project)), 2, "without an entry, before")
    await bench.corrupt(project, "bad")
    what = "tagged, one damaged"
    await expect.raises(tagged(provider, project), StoredDataInvalidError, what=what)
    what = "unindexed, one damaged"
    await expect.raises(unindexed(provider, project), StoredDataInvalidError, what=what)


@law("I-1", capability=Capability.RECALL)
async def unindexed_are_listed_in_pages(bench: Bench) -> None:
    """000-01: every agent's memories without an entry, once each, in the order of ids."""
    project, provider = bench.project(), bench.provider
    names = ("B", "a", "Z", "a-b", "a.b", "a_b", "aB", "ab", "10", "9", ":x", "-")
    states = [each for each in State if each is not State.FORGOTTEN]
    bare = [specimens.memory(name, agent_id=f"a{n % 3}") for n, name in enumerate(names)]
    bare += [
        specimens.memory(f"{state}-{trust}", state=state, trust=trust)
        for state, trust in product(states, Trust)
    ]
    await created(provider, project, *bare)
    kinds = (Kind.DECISION, Kind.PROPOSAL, Kind.SESSION_CONTEXT)
    others = [specimens.memory(f"kind-{kind}", kind=kind) for kind in kinds]
    await created(provider, project, *others, specimens.memory("gone", state=State.FORGOTTEN))
    await created(provider, bench.project("p2"), specimens.memory("far"))
    held = specimens.memory("held")
    await remembered(provider, project, (held, specimens.entry()))
    wanted = sorted(bare, key=lambda each: each.current.record_id.encode())
    for limit in (1, 7, 100):
        found: list[Record] = []
        while part := await unindexed(
            provider,
            project,
            after=found[-1].current.record_id if found else None,
            limit=limit,
        ):
            expect.that(len(part) <= limit, "a page holds at most its limit")
            expect.that(part[0] not in found, "a page begins after the one before")
            found += part
        expect.equal(found, wanted, f"{limit} at a time")
    await followed(provider, project, wanted[0], text="Python.")
    still = await unindexed(provider, project, limit=1)
    expect.equal(still[0].current.revision, 2, "after an edit without an entry")


@law("I-2", "Q-10", capability=Capability.RECALL)
async def index_puts_entries_for_the_head_that_was_read(bench: Bench) -> None:
    """001-11: a head that moved on keeps what it has; nothing but the entry changes."""
    project, provider = bench.project(), bench.provider
    heads = [specimens.memory(f"r{n}") for n in range(3)]
    decision = specimens.decision("d1")
    await created(provider, project, *heads, decision)
    moved = await followed(
        provider, project, heads[1], text="Python.", entry=specimens.entry("python")
    )
    old = specimens.entry("java java")
    puts = tuple(
        EntryPut(record_id=now.record_id, revision_id=now.revision_id, entry=old)
        for now in (each.current for each in (*heads[:2], decision, specimens.memory("absent")))
    )
    unstorable = EntryPut(record_id="r\0", revision_id="\ud800", entry=old)
    request = IndexRequest(project=project, entries=(*puts, unstorable))
    expect.equal(await provider.index(request, timeout=SECONDS), 1, "how many were put")
    expect.equal(await provider.index(request, timeout=SECONDS), 1, "how many at the second time")
    got = await recalled(provider, project, "java", "python")
    expect.equal(matched(got), ["r0", "r1"], "what is found")
    expect.equal(found_by(got, "r0"), ((2, 0), 2), "how the indexed one matches")
    expect.equal(found_by(got, "r1"), ((0, 1), 1), "how the one that moved on matches")
    expect.equal((got.documents, got.unindexed), (2, 1), "the statistics")
    await stored(provider, project, heads[0], moved, heads[2])
    left = await load(provider, project, graph=True, transfer=True)
    expect.equal((left.graph, left.transfer), (0, 0), "the counters")
    foreign = replace(request, project=bench.project("p2"))
    expect.equal(await provider.index(foreign, timeout=SECONDS), 0, "in another project")
    expect.equal(await index(provider, project, moved, specimens.entry("rust")), 1, "a new one")
    replaced = await recalled(provider, project, "python", "rust")
    expect.equal(found_by(replaced, "r1"), ((0, 1), 1), "how it matches then")


@law("I-2", capability=Capability.RECALL)
async def archived_and_superseded_ones_are_indexed_too(bench: Bench) -> None:
    """000-22: what is out of use gets its entry, and is found by it once it is back in use."""
    project, provider = bench.project(), bench.provider
    archived = specimens.memory("r1", state=State.ARCHIVED)
    await created(provider, project, archived)
    expect.equal(await index(provider, project, archived, specimens.entry("java")), 1, "put")
    expect.equal(matched(await recalled(provider, project, "java")), [], "while it is archived")
    await followed(provider, project, archived, state=State.ACTIVE)
    expect.equal(matched(await recalled(provider, project, "java")), ["r1"], "active again")


def _terms(counts: dict[str, int], length: int | None = None) -> RecallEntry:
    return RecallEntry(TermVector(counts, sum(counts.values()) if length is None else length))


def _vector(packed: bytes, model: str = "m1") -> RecallEntry:
    return RecallEntry(TermVector({}, 0), Vector(model, packed))


_BROKEN: dict[str, RecallEntry] = {
    "too many terms": _terms({f"t{n}": 1 for n in range(RECORD_TERMS_MAX + 1)}),
    "a term that is too long": _terms({"x" * (TERM_LENGTH_MAX + 1): 1}),
    "an empty term": _terms({"": 1}),
    "a term with a line's end": _terms({"a\n": 1}),
    "a term with NUL": _terms({"a\0": 1}),
    "a term with a surrogate": _terms({"a\ud800": 1}),
    "a term that occurs nowhere": _terms({"a": 1, "b": 0}),
    "a length below its counts": _terms({"a": 2, "b": 1}, 2),
    "a length past any count": _terms({"a": 1}, 2**31),
    "a vector without numbers": _vector(b""),
    "a vector that is too long": _vector(ONE * (DIMENSION_MAX + 1)),
    "a vector cut short": _vector(ONE + b"\0"),
    "a vector with no number": _vector(ONE + NAN),
    "a model without a name": _vector(ONE, ""),
    "a model with too long a name": _vector(ONE, "m" * (MODEL_LENGTH_MAX + 1)),
    "a model with NUL": _vector(ONE, "m\0"),
}


@law("C-15", "C-5", "I-2", capability=Capability.RECALL)
async def entries_past_a_limit_are_refused(bench: Bench) -> None:
    """004-83, 004-84: in a commit and by index, before anything is put; at the limit all is."""
    project, provider = bench.project(), bench.provider
    head = specimens.memory("kept")
    await created(provider, project, head, specimens.memory("beside"))
    for number, (what, broken) in enumerate(_BROKEN.items()):
        put = specimens.put(specimens.memory(f"r{number}"), entry=broken)
        write = specimens.write(project, put)
        await expect.raises(commit(provider, write), WriteSetInvalidError, what=what)
        await nothing_of(provider, write)
        call = index(provider, project, head, broken)
        await expect.raises(call, WriteSetInvalidError, what=f"{what}, by index")
    got = await recalled(provider, project, "a", "b")
    expect.equal((got.documents, got.unindexed), (0, 2), "what refused entries left")
    widest: dict[str, Any] = {"x" * TERM_LENGTH_MAX: 1, "\U0001f600" * TERM_LENGTH_MAX: 70_000}
    expect.equal(await index(provider, project, head, _terms(widest, 2**31 - 1)), 1, "at the limit")
    found = await recalled(provider, project, *widest)
    expect.equal(found_by(found, "kept"), ((1, 70_000), 2**31 - 1), "how that matches")

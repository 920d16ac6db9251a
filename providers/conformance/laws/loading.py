"""Load: everything of one snapshot, in one trip, and what is absent is simply not there."""

import asyncio

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import (
    SECONDS,
    committed,
    gathered,
    head,
    load,
    present,
    stored,
    trips,
)
from providers.errors import StoredDataInvalidError
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, ReceiptKey, RevisionRef, WriteSet
from providers.requests import ChainLink, KeyHolder, Loaded, LoadRequest

CHAIN_HOPS_MAX = 64
LINKS_MAX = 66


@law("L-3", capability=Capability.READ)
async def absent_things_are_left_out(bench: Bench) -> None:
    """004-56: no error and no empty shape tells what is not there; what is there is returned."""
    project = bench.project()
    nothing = ReceiptKey(specimens.ACTOR, "never used")
    empty = await load(
        bench.provider,
        project,
        "r1",
        "r2",
        revisions=(RevisionRef("r1", 1),),
        keys=("k1", "k2"),
        receipt=nothing,
        chain_from="r1",
        graph=True,
        transfer=True,
        stream_run_id="run-1",
    )
    expect.equal(_plain(empty), _plain(Loaded()), "what is found in an empty project")
    record = specimens.memory("r1")
    write = specimens.create(project, record, **specimens.claiming("r1", "k1"))
    await committed(bench.provider, write)
    some = await load(
        bench.provider,
        project,
        "r1",
        "r2",
        revisions=(RevisionRef("r1", 1), RevisionRef("r1", 2), RevisionRef("r2", 1)),
        keys=("k1", "k2"),
        receipt=write.receipt.key,
    )
    wanted = Loaded(
        heads={"r1": record},
        revisions={RevisionRef("r1", 1): record.current},
        keys={"k1": KeyHolder("r1", None)},
        receipt=write.receipt,
    )
    expect.equal(_plain(some), _plain(wanted), "what is found")


def _plain(loaded: Loaded) -> tuple[object, ...]:
    return (
        dict(loaded.heads),
        dict(loaded.revisions),
        dict(loaded.keys),
        loaded.receipt,
        loaded.chain,
        (loaded.graph, loaded.transfer, loaded.stream),
    )


@law("L-3", "L-5", capability=Capability.READ)
async def hundred_of_each_are_loaded(bench: Bench) -> None:
    """004-83: a load takes a hundred heads, revisions and keys at once."""
    project = bench.project()
    for start in range(0, 100, 25):
        records = [specimens.memory(f"r{n}") for n in range(start, start + 25)]
        claims = tuple(
            claim
            for each in records
            for claim in specimens.claiming(
                each.current.record_id, f"key:{each.current.record_id}"
            )["claims"]
        )
        await committed(bench.provider, specimens.create(project, *records, claims=claims))
    names = [f"r{n}" for n in range(100)]
    loaded = await load(
        bench.provider,
        project,
        *names,
        revisions=tuple(RevisionRef(name, 1) for name in names),
        keys=tuple(f"key:{name}" for name in names),
    )
    expect.equal(set(loaded.heads), set(names), "the heads")
    expect.equal({each.record_id for each in loaded.revisions}, set(names), "the revisions")
    holders = {each.record_id for each in loaded.keys.values()}
    expect.equal(holders, set(names), "the holders")


@law("L-5", capability=Capability.READ)
async def committed_is_seen_at_once(bench: Bench) -> None:
    """004-63: once a commit has answered, every instance sees it."""
    project = bench.project()
    other = await bench.another()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    for turn in range(40):
        writer, reader = (bench.provider, other) if turn % 2 else (other, bench.provider)
        following = specimens.after(record, f"text {turn}")
        await committed(writer, specimens.write(project, specimens.put(following, over=record)))
        record = following
        expect.equal(await head(reader, project, "r1"), record, "the head, asked for as before")
        await stored(reader, project, record)


@law("L-2", capability=Capability.READ)
async def receipt_is_never_seen_without_its_heads(bench: Bench) -> None:
    """004-63: heads, receipt, keys and counters of one load belong together."""
    project = bench.project()
    writer = await bench.another()
    left, right = specimens.decision("left"), specimens.decision("right")
    await committed(writer, specimens.create(project, left, right))
    steps: list[WriteSet] = []
    for turn in range(60):
        pair = [specimens.after(each, f"step {turn}") for each in (left, right)]
        steps.append(
            specimens.keyed(
                specimens.write(
                    project,
                    *(
                        specimens.put(now, over=was)
                        for now, was in zip(pair, (left, right), strict=True)
                    ),
                    graph_expected=turn,
                ),
                key=f"step-{turn}",
            )
        )
        left, right = pair
    writing = asyncio.create_task(_write(writer, steps))
    seen = await gathered(_watch(bench.provider, project, writing) for _ in range(3))
    await writing
    expect.that(max(seen) == len(steps), "the readers saw the last step")


async def _write(provider: IMemoryProvider, steps: list[WriteSet]) -> None:
    """Commit in turn and let others run in between."""
    for each in steps:
        await committed(provider, each)
        await asyncio.sleep(0)


async def _watch(
    provider: IMemoryProvider, project: ProjectKey, writing: asyncio.Task[None]
) -> int:
    """Load while somebody writes; return the last step that was seen."""
    step = 0
    while True:
        over = writing.done()
        loaded = await load(
            provider,
            project,
            "left",
            "right",
            receipt=ReceiptKey(specimens.ACTOR, f"step-{step}"),
            graph=True,
        )
        left = present(loaded, "left").current.revision
        right = present(loaded, "right").current.revision
        expect.equal((left, right), (loaded.graph + 1,) * 2, "two heads and their counter")
        written = loaded.graph > step
        expect.equal(loaded.receipt is not None, written, f"the receipt of step {step}")
        if over:
            return loaded.graph
        step = loaded.graph
        await asyncio.sleep(0)


async def _write_links(
    provider: IMemoryProvider, project: ProjectKey, links: dict[str, str | None]
) -> None:
    """Write decisions and make each the predecessor of another, a part at a time."""
    records = [specimens.decision(each) for each in links]
    for start in range(0, len(records), 40):
        part = records[start : start + 40]
        await committed(provider, specimens.create(project, *part))
        linked = [
            specimens.put(specimens.superseded(each, by=by), over=each)
            for each in part
            if (by := links[each.current.record_id]) is not None
        ]
        await committed(provider, specimens.write(project, *linked))


def _line(hops: int, prefix: str) -> dict[str, str | None]:
    links: dict[str, str | None] = {f"{prefix}{n}": f"{prefix}{n + 1}" for n in range(hops)}
    return {**links, f"{prefix}{hops}": None}


async def _walked(provider: IMemoryProvider, project: ProjectKey, start: str) -> list[str]:
    loaded = await load(provider, project, chain_from=start)
    return [each.record_id for each in loaded.chain]


@law("L-4", capability=Capability.READ)
async def chain_of_64_and_65(bench: Bench) -> None:
    """004-58: a chain of 64 hops is whole, of 65 too, and of more the first 66 links come."""
    project, provider = bench.project(), bench.provider
    for hops in (0, 1, CHAIN_HOPS_MAX, CHAIN_HOPS_MAX + 1, CHAIN_HOPS_MAX + 6):
        await _write_links(provider, project, _line(hops, f"d{hops}-"))
        wanted = [f"d{hops}-{n}" for n in range(hops + 1)][:LINKS_MAX]
        expect.equal(await _walked(provider, project, f"d{hops}-0"), wanted, f"{hops} hops")


@law("L-4", capability=Capability.READ)
async def chain_ends_where_it_repeats(bench: Bench) -> None:
    """004-58: the first record met again is the last link, wherever the circle begins."""
    project, provider = bench.project(), bench.provider
    await _write_links(provider, project, {"in": "a", "a": "b", "b": "c", "c": "a", "self": "self"})
    for start, wanted in (
        ("a", ["a", "b", "c", "a"]),
        ("in", ["in", "a", "b", "c", "a"]),
        ("self", ["self", "self"]),
    ):
        expect.equal(await _walked(provider, project, start), wanted, f"from {start}")


@law("L-4", capability=Capability.READ)
async def chain_ends_at_a_missing_link(bench: Bench) -> None:
    """004-58: a link that leads nowhere, or out of the project, ends the chain."""
    project, provider = bench.project(), bench.provider
    elsewhere = bench.project("p2")
    await committed(provider, specimens.create(elsewhere, specimens.decision("far")))
    await _write_links(provider, project, {"a": "b", "b": "far"})
    loaded = await load(provider, project, chain_from="a")
    now = present(await load(provider, project, "a"), "a").current
    first = ChainLink("a", now.agent_id, now.kind, now.state, "b")
    expect.equal(loaded.chain[:1], (first,), "the first link, in full")
    expect.equal([each.record_id for each in loaded.chain], ["a", "b"], "the chain")
    expect.equal(loaded.chain[-1].superseded_by_record_id, "far", "where it leads")
    expect.equal(await _walked(provider, project, "far"), [], "a chain from nowhere")


@law("L-1", "C-9", "G-11", capability=Capability.READ, facts=(StoreFact.COUNTED,))
async def load_and_commit_are_one_round_trip(bench: Bench) -> None:
    """004-35: whatever is asked for, one trip; a commit is sent once."""
    project, provider = bench.project(), bench.provider
    record = specimens.decision("d1")
    write = specimens.create(project, record, **specimens.claiming("d1", "k1"))
    await committed(provider, write)
    await load(provider, project, "d1")
    asked = LoadRequest(
        project=project,
        record_ids=("d1", "d2"),
        revisions=(RevisionRef("d1", 1),),
        receipt=write.receipt.key,
        keys=("k1", "k2"),
        chain_from="d1",
        graph=True,
        transfer=True,
        stream_run_id="run-1",
    )
    before = bench.round_trips()
    loaded = await provider.load(asked, timeout=SECONDS)
    trips(bench, before, "load")
    expect.equal(dict(loaded.heads), {"d1": record}, "what was loaded")
    before = bench.round_trips()
    await committed(provider, specimens.update(project, record))
    trips(bench, before, "commit")


@law("G-7", capability=Capability.READ, facts=(StoreFact.CORRUPTIBLE,))
async def damaged_record_is_told(bench: Bench) -> None:
    """004-44: stored data that fails its check is an error, never left out."""
    project = bench.project()
    good, bad = specimens.memory("good"), specimens.memory("bad")
    await committed(bench.provider, specimens.create(project, good, bad))
    await stored(bench.provider, project, good, bad)
    await bench.corrupt(project, "bad")
    for asked in (("bad",), ("good", "bad")):
        await expect.raises(
            load(bench.provider, project, *asked), StoredDataInvalidError, what=f"load {asked}"
        )
    await stored(bench.provider, project, good)

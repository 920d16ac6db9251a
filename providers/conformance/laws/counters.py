"""The counters of a project: decision graph, transfer fence and effect streams."""

from dataclasses import replace

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.delivery_steps import pending
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import (
    commit,
    committed,
    gathered,
    load,
    nothing_of,
    settled,
    stored,
)
from providers.interface import IMemoryProvider
from providers.model import ChangeKind, ProjectKey, Record, State, Trust, WriteSet
from providers.requests import (
    AlreadyExists,
    Committed,
    Contended,
    GraphConflict,
    Replayed,
    StaleRevision,
)

RACERS = 20
COUNTER_ROUNDS = 3
"""The first of them starts where the counter was never advanced."""


async def _counters(provider: IMemoryProvider, project: ProjectKey) -> tuple[int, int]:
    loaded = await load(provider, project, graph=True, transfer=True)
    return loaded.graph, loaded.transfer


async def _stream(provider: IMemoryProvider, project: ProjectKey, run_id: str = "run-1") -> int:
    return (await load(provider, project, stream_run_id=run_id)).stream


@law("C-12", capability=Capability.WRITE)
async def graph_counter_guards_decisions(bench: Bench) -> None:
    """004-59: a change of the graph needs the counter it read, and moves it by one."""
    project = bench.project()
    expect.equal(await _counters(bench.provider, project), (0, 0), "counters never advanced")
    old, new = specimens.decision("d1"), specimens.decision("d2")
    await committed(bench.provider, specimens.create(project, old, new))
    expect.equal(await _counters(bench.provider, project), (0, 0), "counters not expected")
    linked = specimens.put(specimens.superseded(old, by="d2"), over=old)
    await committed(bench.provider, specimens.write(project, linked, graph_expected=0))
    expect.equal(await _counters(bench.provider, project), (1, 0), "after one change")
    back = specimens.put(specimens.superseded(new, by="d1"), over=new)
    for wrong in (0, 2):
        refused = specimens.write(project, back, graph_expected=wrong)
        expect.equal(await commit(bench.provider, refused), GraphConflict(), f"expecting {wrong}")
        await nothing_of(bench.provider, refused, known=[new])
    expect.equal(await _counters(bench.provider, project), (1, 0), "after refusals")
    expect.equal(await _counters(bench.provider, bench.project("p2")), (0, 0), "elsewhere")


@law("C-2", "C-12", "C-14", capability=Capability.WRITE)
async def graph_race_has_one_winner(bench: Bench) -> None:
    """004-59: of changes made on one reading of the graph one happens, on whatever records."""
    project = bench.project()
    records = [specimens.decision(f"d{n}") for n in range(RACERS)]
    await committed(bench.provider, specimens.create(project, *records))
    for reading in range(COUNTER_ROUNDS):
        linked = [
            specimens.put(specimens.superseded(each, by="d0"), over=each) for each in records[1:]
        ]
        writes = [specimens.write(project, each, graph_expected=reading) for each in linked]
        winner = await _race(bench, writes, GraphConflict)
        records = [each for n, each in enumerate(records) if n != winner + 1]
        expect.equal(await _counters(bench.provider, project), (reading + 1, 0), "the counters")


@law("C-2", "C-12", "C-14", capability=Capability.WRITE)
async def transfer_race_has_one_winner(bench: Bench) -> None:
    """004-87: of imports that read one transfer counter one happens."""
    project = bench.project()
    for reading in range(COUNTER_ROUNDS):
        writes = [
            specimens.create(
                project, specimens.memory(f"r{reading}-{n}"), transfer_expected=reading
            )
            for n in range(RACERS)
        ]
        await _race(bench, writes, GraphConflict)
        expect.equal(await _counters(bench.provider, project), (0, reading + 1), "the counters")


async def _race(bench: Bench, writes: list[WriteSet], refusal: type) -> int:
    """Commit side by side over two instances; return which one of them was applied."""
    both = (bench.provider, await bench.another())
    outcomes = await gathered(commit(both[n % 2], each) for n, each in enumerate(writes))
    while Contended() in outcomes and refusal is not Contended:
        again = outcomes.index(Contended())
        outcomes[again] = await settled(bench.provider, writes[again])
    expect.exactly(1, outcomes, Committed, "commits on one reading")
    expect.exactly(len(writes) - 1, outcomes, refusal, "commits on one reading")
    winner = outcomes.index(Committed())
    await stored(bench.provider, writes[0].project, *(e.record for e in writes[winner].heads))
    for n, each in enumerate(writes):
        if n != winner:
            loaded = await load(bench.provider, each.project, receipt=each.receipt.key)
            expect.equal(loaded.receipt, None, "the receipt of a loser")
    return winner


@law("C-12", capability=Capability.WRITE)
async def transfer_counter_fences_imports(bench: Bench) -> None:
    """004-87: it moves where expected and with a set that puts a tombstone, each time by one."""
    project = bench.project()
    provider = bench.provider
    await committed(provider, specimens.write(project, transfer_expected=0))
    expect.equal(await _counters(provider, project), (0, 1), "after an import")
    buried = specimens.write(project, tombstones=(specimens.tombstone("k1"),))
    await committed(provider, buried)
    expect.equal(await _counters(provider, project), (0, 2), "after a tombstone")
    late = specimens.create(project, specimens.memory("r1"), transfer_expected=1)
    expect.equal(await commit(provider, late), GraphConflict(), "an import that read too early")
    await nothing_of(provider, late)
    both = specimens.write(
        project, tombstones=(specimens.tombstone("k2"),), transfer_expected=2, graph_expected=0
    )
    await committed(provider, both)
    expect.equal(await _counters(provider, project), (1, 3), "all in one set")
    expect.equal(await commit(provider, buried), Replayed(buried.receipt), "the replay")
    expect.equal(await _counters(provider, project), (1, 3), "after a replay")


@law("C-2", "C-12", "C-14", capability=Capability.WRITE)
async def import_races_a_tombstone(bench: Bench) -> None:
    """004-87: an import that did not see a tombstone happens before it or not at all."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    fence = 0
    for turn in range(RACERS):
        brought = specimens.create(project, specimens.memory(f"r{turn}"), transfer_expected=fence)
        grave = specimens.write(project, tombstones=(specimens.tombstone(f"k{turn}"),))
        came, buried = await gathered([settled(both[0], brought), settled(both[1], grave)])
        expect.one_of(came, (Committed, GraphConflict), "the import")
        expect.equal(buried, Committed(), "the tombstone")
        fence += 2 if came == Committed() else 1
        found = (await _counters(bench.provider, project))[1]
        expect.equal(found, fence, "the transfer counter")


@law("C-13", capability=Capability.PROMOTE)
async def stream_counts_every_effect(bench: Bench) -> None:
    """004-73: an effect needs the sequence after the stream's last, in its own run alone."""
    project, provider = bench.project(), bench.provider
    for sequence in (1, 2):
        await committed(provider, specimens.write(project, effect=specimens.effect(sequence)))
        expect.equal(await _stream(provider, project), sequence, "the stream's counter")
    for wrong in (1, 2, 4):
        refused = specimens.create(
            project, specimens.decision("d9"), effect=specimens.effect(wrong)
        )
        expect.equal(await commit(provider, refused), Contended(), f"sequence {wrong}")
        await nothing_of(provider, refused)
    other = specimens.effect(1, run_id="run-10")
    await committed(provider, specimens.write(project, effect=other))
    expect.equal(await _stream(provider, project), 2, "the first run's counter")
    expect.equal(await _stream(provider, project, "run-10"), 1, "the other run's counter")
    expect.equal(await _stream(provider, bench.project("p2")), 0, "another project's counter")
    expect.equal(await _stream(provider, bench.project(tenant_id="t2")), 0, "another tenant's")


@law("C-2", "C-13", "C-14", capability=Capability.PROMOTE)
async def stream_race_has_one_winner(bench: Bench) -> None:
    """004-73: of effects with one sequence one is accepted; the others may decide again."""
    project = bench.project()
    for sequence in range(1, COUNTER_ROUNDS + 1):
        names = [f"d{sequence}-{n}" for n in range(RACERS)]
        writes = [
            specimens.create(project, specimens.decision(each), effect=specimens.effect(sequence))
            for each in names
        ]
        winner = await _race(bench, writes, Contended)
        expect.equal(await _stream(bench.provider, project), sequence, "the stream's counter")
        heads = (await load(bench.provider, project, *names)).heads
        expect.equal(set(heads), {names[winner]}, "the decisions written")


@law("C-1", "C-5", "C-13", capability=Capability.PROMOTE)
async def promote_all_or_nothing(bench: Bench) -> None:
    """004-71: proposal, decision, effect and receipt appear together or none of them does."""
    project, provider = bench.project(), bench.provider
    offered = specimens.proposal("p1")
    await committed(provider, specimens.create(project, offered))
    good = _promotion(project, offered)
    stale_head = replace(good.heads[0].record.current, revision=3)
    stale = replace(
        good,
        heads=(
            specimens.put(replace(good.heads[0].record, current=stale_head), over=2),
            good.heads[1],
        ),
    )
    for refused, wanted in (
        (stale, StaleRevision("p1", 1)),
        (replace(good, effect=specimens.effect(2)), Contended()),
    ):
        expect.equal(await commit(provider, refused), wanted, "a promotion that may not be")
        await nothing_of(provider, refused, known=[offered])
        expect.equal(await _stream(provider, project), 0, "the stream after a refusal")
    await committed(provider, good)
    await stored(provider, project, *(put.record for put in good.heads))
    expect.equal(await _stream(provider, project), 1, "the stream after the promotion")
    expect.equal(await commit(provider, good), Replayed(good.receipt), "the same promotion again")
    expect.equal(await _stream(provider, project), 1, "the stream after a replay")


@law("C-4", "C-13", "C-17", capability=Capability.PROMOTE)
async def promote_twice_one_effect(bench: Bench) -> None:
    """004-71, 004-75: whoever promotes again, with the same key or another, makes no second one."""
    project, provider = bench.project(), bench.provider
    offered = specimens.proposal("p1")
    await committed(provider, specimens.create(project, offered))
    good = _promotion(project, offered)
    both = (provider, await bench.another())
    outcomes = await gathered(settled(both[n % 2], good) for n in range(RACERS))
    expect.exactly(1, outcomes, Committed, "promotions with one key")
    replays = [each for each in outcomes if each != Committed()]
    expect.equal(replays, [Replayed(good.receipt)] * (RACERS - 1), "the other answers")
    late = replace(specimens.effect(2), receipt_id=specimens.fresh("effect"))
    other = replace(
        specimens.keyed(_promotion(project, offered, "d2"), key="another key"), effect=late
    )
    expect.equal(await commit(provider, other), StaleRevision("p1", 2), "promoted by another key")
    await nothing_of(provider, other, known=[good.heads[0].record])
    expect.equal(await _stream(provider, project), 1, "the stream")
    if Capability.DELIVERY in bench.declaration.capabilities:
        page = await pending(provider, project)
        expect.equal([each.effect for each in page.effects], [good.effect], "the effects")


@law("C-3", "C-5", "C-17", capability=Capability.PROMOTE)
async def effect_receipt_id_is_new(bench: Bench) -> None:
    """004-71, 004-72: a receipt id that is in use refuses the promotion and is named."""
    project, provider = bench.project(), bench.provider
    first = specimens.effect(1)
    await committed(provider, specimens.write(project, effect=first))
    for sequence, run_id in ((2, "run-1"), (1, "run-2"), (7, "run-2")):
        again = replace(first, sequence=sequence, run_id=run_id)
        made = specimens.decision("d1")
        refused = specimens.create(project, made, effect=again, **specimens.claiming("d1", "k"))
        outcome = await commit(provider, refused)
        expect.equal(outcome, AlreadyExists(first.receipt_id), f"at {sequence} of {run_id}")
        await nothing_of(provider, refused)
        expect.equal(await _stream(provider, project, "run-2"), 0, "the other run's counter")
    expect.equal(await _stream(provider, project), 1, "the run's counter")
    taken = specimens.create(project, specimens.decision("d2"), **specimens.claiming("d2", "k"))
    await committed(provider, taken)
    claiming = specimens.write(
        project, effect=replace(first, sequence=2), **specimens.claiming("d9", "k")
    )
    expect.equal(
        await commit(provider, claiming), AlreadyExists(first.receipt_id), "before a claim"
    )
    clash = specimens.create(project, specimens.decision("d2"), effect=replace(first, sequence=2))
    expect.equal(await commit(provider, clash), AlreadyExists("d2"), "after a record's own id")
    for elsewhere in (bench.project("p2"), bench.project(tenant_id="t2")):
        await committed(provider, specimens.write(elsewhere, effect=first))


def _promotion(project: ProjectKey, offered: Record, decision_id: str = "d1") -> WriteSet:
    decided = specimens.decision(decision_id, source_run_id="run-1")
    promoted = specimens.after(
        offered,
        state=State.PROMOTED,
        trust=Trust.APPROVED,
        change_kind=ChangeKind.PROPOSAL_PROMOTED,
        promoted_decision_id=decision_id,
    )
    return specimens.write(
        project,
        specimens.put(promoted, over=offered),
        specimens.put(decided),
        effect=specimens.effect(1),
    )

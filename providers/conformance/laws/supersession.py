"""Decisions that replace each other, and records that are put back: as write sets."""

from dataclasses import replace
from itertools import pairwise

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import (
    commit,
    committed,
    gathered,
    load,
    nothing_of,
    pages,
    settled,
    stored,
)
from providers.interface import IMemoryProvider
from providers.model import ChangeKind, ProjectKey, Record, State, WriteSet
from providers.requests import Committed, GraphConflict, StaleRevision

ROUNDS = 12


async def _chain(provider: IMemoryProvider, project: ProjectKey, start: str) -> list[str]:
    return [each.record_id for each in (await load(provider, project, chain_from=start)).chain]


def _supersede(project: ProjectKey, old: Record, by: str, graph: int) -> WriteSet:
    linked = specimens.superseded(old, by=by)
    return specimens.write(project, specimens.put(linked, over=old), graph_expected=graph)


@law("C-8", capability=Capability.REVISIONS)
async def restore_appends_head(bench: Bench) -> None:
    """004-53, 004-54: putting an old revision back is a new one; none before it changes."""
    project, provider = bench.project(), bench.provider
    chain = [specimens.decision("d1", facet=specimens.facet())]
    chain.append(specimens.after(chain[-1], "second", facet=specimens.empty_facet()))
    chain.append(specimens.after(chain[-1], state=State.ARCHIVED))
    first = chain[0].current
    chain.append(
        specimens.after(
            chain[-1],
            content=first.content,
            facet=first.facet,
            state=first.state,
            change_kind=ChangeKind.DECISION_RESTORED,
        )
    )
    await committed(provider, specimens.create(project, chain[0]))
    for number, (old, new) in enumerate(pairwise(chain)):
        put = specimens.put(new, over=old)
        await committed(provider, specimens.write(project, put, graph_expected=number))
    await stored(provider, project, chain[-1])
    found = await pages(provider, project, "d1")
    expect.equal(found, [each.current for each in chain], "the history, oldest first")
    expect.equal(found[-1].content, found[0].content, "what was restored")
    late = specimens.write(project, specimens.put(specimens.after(chain[2]), over=3))
    expect.equal(await commit(provider, late), StaleRevision("d1", 4), "over what was restored")


@law("C-1", "C-12", capability=Capability.WRITE)
async def supersede_atomic(bench: Bench) -> None:
    """004-57, 004-59: state, link, revision and graph counter change together or not at all."""
    project, provider = bench.project(), bench.provider
    old, new = specimens.decision("d1"), specimens.decision("d2")
    await committed(provider, specimens.create(project, old, new))
    good = _supersede(project, old, "d2", 0)
    stale = specimens.after(specimens.superseded(old, by="d2"))
    for refused, wanted in (
        (replace(good, graph_expected=1), GraphConflict()),
        (specimens.write(project, specimens.put(stale, over=2), graph_expected=0), None),
    ):
        outcome = await commit(provider, refused)
        expect.equal(outcome, wanted or StaleRevision("d1", 1), "a supersession that may not be")
        await nothing_of(provider, refused, known=[old])
        loaded = await load(provider, project, graph=True, chain_from="d1")
        expect.equal(loaded.graph, 0, "the graph after a refusal")
        expect.equal(loaded.chain[0].superseded_by_record_id, None, "the link after a refusal")
    await committed(provider, good)
    await stored(provider, project, good.heads[0].record, new)
    loaded = await load(provider, project, graph=True, chain_from="d1")
    expect.equal(loaded.graph, 1, "the graph after the supersession")
    expect.equal([each.record_id for each in loaded.chain], ["d1", "d2"], "the chain")
    expect.equal(loaded.chain[0].state, State.SUPERSEDED, "the state in the chain")


@law("C-2", "C-12", "C-14", capability=Capability.WRITE)
async def cycle_refused_under_race(bench: Bench) -> None:
    """004-59: of two supersessions that would close a circle one happens; the other decides again.

    They touch different heads, so that the graph counter alone stands between them.
    """
    project = bench.project()
    one, two = bench.provider, await bench.another()
    for turn in range(ROUNDS):
        left, right = specimens.decision(f"left{turn}"), specimens.decision(f"right{turn}")
        await committed(one, specimens.create(project, left, right))
        forth = _supersede(project, left, f"right{turn}", turn)
        back = _supersede(project, right, f"left{turn}", turn)
        outcomes = await gathered([settled(one, forth), settled(two, back)])
        expect.exactly(1, outcomes, Committed, "two halves of a circle")
        expect.exactly(1, outcomes, GraphConflict, "two halves of a circle")
        winner, loser = (forth, back) if outcomes[0] == Committed() else (back, forth)
        unchanged = right if winner is forth else left
        await nothing_of(one, loser, known=[unchanged])
        start = winner.heads[0].record.current.record_id
        end = unchanged.current.record_id
        expect.equal(await _chain(two, project, start), [start, end], "the chain of the winner")
        expect.equal(await _chain(two, project, end), [end], "the chain of the loser")
        expect.equal((await load(two, project, graph=True)).graph, turn + 1, "the graph")

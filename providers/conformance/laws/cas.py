"""Creating records and replacing heads over the revision that is expected."""

from itertools import permutations

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import (
    commit,
    committed,
    gathered,
    head,
    load,
    nothing_of,
    pages,
    present,
    settled,
    stored,
)
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, RevisionRef
from providers.requests import AlreadyExists, Committed, Contended, StaleRevision

WRITERS = 50


@law("C-2", capability=Capability.WRITE)
async def create_returns_revision_1(bench: Bench) -> None:
    """004-51, 004-52: a new record is there at revision 1, unlinked, exactly as it was given."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    await stored(bench.provider, project, record)
    await stored(await bench.another(), project, record)
    found = expect.some(await head(bench.provider, project, "r1"), "the head")
    expect.equal(found.current.revision, 1, "the revision of a new record")
    expect.equal(found.current.previous_revision_id, None, "the link of a first revision")


@law("C-2", "C-3", capability=Capability.WRITE)
async def create_same_id_conflicts(bench: Bench) -> None:
    """004-87: an id that is taken stays with whom it belongs to."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    again = specimens.create(project, specimens.memory("r1", "Something else.", agent_id="a2"))
    expect.equal(await commit(bench.provider, again), AlreadyExists("r1"), "a second creation")
    await nothing_of(bench.provider, again, known=[record])


@law("C-2", "C-3", capability=Capability.WRITE)
async def revision_id_of_another_record_conflicts(bench: Bench) -> None:
    """004-87: a revision id is one revision's in the whole project."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    thief = specimens.memory("r2", revision_id=record.current.revision_id)
    theft = specimens.create(project, thief)
    expect.equal(await commit(bench.provider, theft), AlreadyExists("r2"), "a used revision id")
    await nothing_of(bench.provider, theft)


@law("C-2", "C-14", capability=Capability.WRITE)
async def creation_race_has_one_winner(bench: Bench) -> None:
    """004-87: of many creators of one id exactly one wins and the others are told."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    writes = [
        specimens.create(project, specimens.memory("r1", f"text {n}")) for n in range(WRITERS)
    ]
    outcomes = await gathered(settled(both[n % 2], each) for n, each in enumerate(writes))
    expect.exactly(1, outcomes, Committed, "creations of one id")
    expect.exactly(WRITERS - 1, outcomes, AlreadyExists, "creations of one id")
    winner = writes[outcomes.index(Committed())]
    await stored(bench.provider, project, winner.heads[0].record)


@law("C-2", "C-5", "C-6", capability=Capability.WRITE)
async def wrong_expected_changes_nothing(bench: Bench) -> None:
    """004-55: too old, too new and absent heads are all stale; the current revision is told."""
    project = bench.project()
    first, second = specimens.history("r1", 2)
    await committed(bench.provider, specimens.create(project, first))
    await committed(bench.provider, specimens.write(project, specimens.put(second, over=first)))
    ahead = specimens.after(specimens.after(second))
    for wrong, over, current in (
        (specimens.after(first, "too old"), 1, 2),
        (ahead, 3, 2),
        (specimens.after(specimens.memory("nobody")), 1, 0),
    ):
        refused = specimens.write(project, specimens.put(wrong, over=over))
        record_id = wrong.current.record_id
        outcome = await commit(bench.provider, refused)
        expect.equal(outcome, StaleRevision(record_id, current), f"expecting {over}")
        known = [second] if record_id == "r1" else []
        await nothing_of(bench.provider, refused, known=known)


@law("C-2", "C-6", "C-14", capability=Capability.WRITE)
async def fifty_writers_one_winner(bench: Bench) -> None:
    """004-55: of fifty updates of one revision one wins; the others hear of its revision."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    writes = [specimens.update(project, record, f"writer {n}") for n in range(WRITERS)]
    outcomes = await gathered(settled(both[n % 2], each) for n, each in enumerate(writes))
    expect.exactly(1, outcomes, Committed, "updates of one revision")
    losers = [each for each in outcomes if each != Committed()]
    expect.equal(losers, [StaleRevision("r1", 2)] * (WRITERS - 1), "the losers' answers")
    winner = writes[outcomes.index(Committed())]
    await stored(bench.provider, project, winner.heads[0].record)


@law("C-1", "C-5", capability=Capability.WRITE)
async def last_operation_bad_changes_nothing(bench: Bench) -> None:
    """004-71: one stale head at the end undoes all that stood before it."""
    project = bench.project()
    old = specimens.memory("z")
    moved = specimens.after(old, "moved on")
    await committed(bench.provider, specimens.create(project, old))
    await committed(bench.provider, specimens.write(project, specimens.put(moved, over=old)))
    refused = specimens.write(
        project,
        *(specimens.put(specimens.memory(f"a{n}")) for n in range(5)),
        specimens.put(specimens.after(old), over=old),
        tombstones=(specimens.tombstone("gone"),),
        graph_expected=0,
        transfer_expected=0,
        **specimens.claiming("a0", "claimed"),
    )
    expect.equal(await commit(bench.provider, refused), StaleRevision("z", 2), "the outcome")
    await nothing_of(bench.provider, refused, known=[moved])
    loaded = await load(
        bench.provider, project, keys=("claimed", "gone"), graph=True, transfer=True
    )
    expect.equal(dict(loaded.keys), {}, "keys of a refused commit")
    expect.equal((loaded.graph, loaded.transfer), (0, 0), "counters after a refused commit")


@law("C-1", "C-8", "C-14", capability=Capability.REVISIONS)
async def crossing_commits_never_raise(bench: Bench) -> None:
    """004-60: commits that lock two heads in either order are applied or refused, never stuck."""
    project = bench.project()
    both = (bench.provider, await bench.another())
    names = [f"r{n}" for n in range(5)]
    for name in names:
        await committed(bench.provider, specimens.create(project, specimens.memory(name)))
    pairs = [*permutations(names, 2)] * 6
    outcomes = await gathered(
        _update_pair(both[n % 2], project, pair) for n, pair in enumerate(pairs)
    )
    for each in outcomes:
        expect.one_of(each, (Committed, StaleRevision, Contended), "a crossing commit")
    applied = sum(isinstance(each, Committed) for each in outcomes)
    expect.that(applied > 0, "some crossing commit was applied")
    grown = 0
    for name in names:
        chain = await pages(bench.provider, project, name)
        expect.equal([each.revision for each in chain], [*range(1, len(chain) + 1)], "a chain")
        grown += len(chain) - 1
    expect.equal(grown, 2 * applied, "revisions appended by applied commits")


async def _update_pair(
    provider: IMemoryProvider, project: ProjectKey, pair: tuple[str, str]
) -> object:
    loaded = await load(provider, project, *pair)
    heads = [present(loaded, name) for name in pair]
    write = specimens.write(
        project, *(specimens.put(specimens.after(each), over=each) for each in heads)
    )
    return await commit(provider, write)


@law("C-5", "C-8", capability=Capability.WRITE)
async def losing_revision_is_never_seen(bench: Bench) -> None:
    """004-53: what a loser wrote at a revision is not there; the winner's stays."""
    project = bench.project()
    record = specimens.memory("r1")
    won, lost = specimens.after(record, "won"), specimens.after(record, "lost")
    await committed(bench.provider, specimens.create(project, record))
    await committed(bench.provider, specimens.write(project, specimens.put(won, over=record)))
    late = specimens.write(project, specimens.put(lost, over=record))
    expect.equal(await commit(bench.provider, late), StaleRevision("r1", 2), "the loser")
    found = await load(bench.provider, project, revisions=(RevisionRef("r1", 2),))
    expect.equal(found.revisions.get(RevisionRef("r1", 2)), won.current, "revision 2")


@law("C-8", "C-5", capability=Capability.WRITE)
async def link_to_another_revision_is_refused(bench: Bench) -> None:
    """004-52: a revision that does not name the head it follows is not appended."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    astray = specimens.after(record, previous_revision_id=specimens.fresh("rev"))
    refused = specimens.write(project, specimens.put(astray, over=record))
    outcome = await commit(bench.provider, refused)
    expect.equal(outcome, StaleRevision("r1", 1), "a link to nowhere")
    await nothing_of(bench.provider, refused, known=[record])

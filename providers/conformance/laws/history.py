"""Revisions: kept for ever, linked without a gap, read in pages newest first."""

import asyncio
from itertools import pairwise

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import committed, load, page, pages, stored, trips
from providers.interface import IMemoryProvider
from providers.model import ChangeKind, ProjectKey, Record, Revision, RevisionRef, State

UPDATES = 200
PAGE_MAX = 100


async def _write_chain(
    provider: IMemoryProvider, project: ProjectKey, chain: tuple[Record, ...]
) -> None:
    await committed(provider, specimens.create(project, chain[0]))
    for earlier, later in pairwise(chain):
        await committed(provider, specimens.write(project, specimens.put(later, over=earlier)))


def _expect_chain(found: list[Revision], chain: tuple[Record, ...]) -> None:
    expect.equal(found, [each.current for each in chain], "the history, oldest first")


@law("C-8", capability=Capability.REVISIONS)
async def chain_is_gap_free_and_linked(bench: Bench) -> None:
    """004-52: revisions count from 1 and each names the one before."""
    project = bench.project()
    chain = specimens.history("r1", 12)
    await _write_chain(bench.provider, project, chain)
    found = await pages(bench.provider, project, "r1")
    expect.equal([each.revision for each in found], [*range(1, 13)], "the revisions")
    links = [each.previous_revision_id for each in found]
    expect.equal(links, [None, *(each.revision_id for each in found[:-1])], "the links")
    _expect_chain(found, chain)


@law("C-8", capability=Capability.REVISIONS)
async def whole_history_is_put_at_once(bench: Bench) -> None:
    """004-88: one commit may bring a record with all its past."""
    project = bench.project()
    chain = specimens.history("r1", 20)
    brought = specimens.create(
        project, chain[-1], history=tuple(each.current for each in chain[:-1])
    )
    await committed(bench.provider, brought)
    await stored(bench.provider, project, chain[-1])
    _expect_chain(await pages(bench.provider, project, "r1"), chain)
    following = specimens.after(chain[-1], "grows on")
    await committed(
        bench.provider, specimens.write(project, specimens.put(following, over=chain[-1]))
    )
    _expect_chain(await pages(bench.provider, project, "r1"), (*chain, following))


@law("C-8", capability=Capability.REVISIONS)
async def revision_bytes_immutable_after_200_updates(bench: Bench) -> None:
    """004-53, 004-100: every revision reads the same however often the record moved on."""
    project = bench.project()
    chain = specimens.history("r1", UPDATES + 1)
    await _write_chain(bench.provider, project, chain)
    for start in range(0, len(chain), PAGE_MAX):
        wanted = {specimens.ref(each): each.current for each in chain[start : start + PAGE_MAX]}
        loaded = await load(bench.provider, project, revisions=tuple(wanted))
        expect.equal(dict(loaded.revisions), wanted, f"revisions from {start + 1}")
    _expect_chain(await pages(bench.provider, project, "r1"), chain)


@law("V-1", capability=Capability.REVISIONS)
async def history_of_a_forgotten_record_is_not_found(bench: Bench) -> None:
    """004-56: what is forgotten reads as if it had never been."""
    project = bench.project()
    made = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, made))
    expect.equal((await page(bench.provider, project, "r1")).found, True, "found before")
    gone = specimens.after(made, state=State.FORGOTTEN, change_kind=ChangeKind.FORGOTTEN)
    await committed(bench.provider, specimens.write(project, specimens.put(gone, over=made)))
    got = await page(bench.provider, project, "r1")
    expect.equal((got.found, got.revisions, got.more), (False, (), False), "the page")


@law("V-2", capability=Capability.REVISIONS)
async def page_sizes_1_2_max(bench: Bench) -> None:
    """004-68: pages of any size give the same history, newest first, and say when it ends."""
    project = bench.project()
    chain = specimens.history("r1", PAGE_MAX + 1)
    brought = specimens.create(
        project, chain[-1], history=tuple(each.current for each in chain[:-1])
    )
    await committed(bench.provider, brought)
    for limit in (1, 2, PAGE_MAX):
        _expect_chain(await pages(bench.provider, project, "r1", limit=limit), chain)
    whole = await page(bench.provider, project, "r1", before=PAGE_MAX + 1, limit=PAGE_MAX)
    expect.equal(
        ([each.revision for each in whole.revisions], whole.more),
        ([*range(PAGE_MAX, 0, -1)], False),
        "a page that ends exactly at revision 1",
    )
    none = await page(bench.provider, project, "r1", before=1)
    expect.equal((none.found, none.revisions, none.more), (True, (), False), "before revision 1")


@law("V-2", capability=Capability.REVISIONS)
async def page_under_writes(bench: Bench) -> None:
    """004-68: pages join without gap or repetition while the record is being updated."""
    project = bench.project()
    chain = specimens.history("r1", 60)
    await _write_chain(bench.provider, project, chain[:30])
    writer = await bench.another()

    async def update() -> None:
        for earlier, later in pairwise(chain[29:]):
            await committed(writer, specimens.write(project, specimens.put(later, over=earlier)))
            await asyncio.sleep(0)

    updating = asyncio.create_task(update())
    while not updating.done():
        found = await pages(bench.provider, project, "r1", limit=4)
        _expect_chain(found, chain[: len(found)])
        await asyncio.sleep(0)
    await updating
    _expect_chain(await pages(bench.provider, project, "r1", limit=4), chain)


@law("V-1", capability=Capability.REVISIONS)
async def history_of_another_agent_is_not_found(bench: Bench) -> None:
    """004-56: absent, another agent's and another project's records look the same."""
    project = bench.project()
    mine = specimens.memory("mine", agent_id="a1")
    theirs = specimens.memory("theirs", agent_id="a10")
    await committed(bench.provider, specimens.create(project, mine, theirs))
    own = await page(bench.provider, project, "theirs", agent_id="a10")
    expect.equal(own.revisions, (theirs.current,), "the owner's page")
    for where, record_id in (
        (project, "theirs"),
        (project, "absent"),
        (bench.project("p2"), "mine"),
        (bench.project(tenant_id="t2"), "mine"),
    ):
        got = await page(bench.provider, where, record_id, agent_id="a1")
        expect.equal((got.found, got.revisions, got.more), (False, (), False), record_id)


@law("V-3", capability=Capability.REVISIONS, facts=(StoreFact.COUNTED,))
async def page_is_one_round_trip(bench: Bench) -> None:
    """004-68: a page costs one trip, found or not."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    await page(bench.provider, project, "r1")
    for record_id, wanted in (("r1", (record.current,)), ("absent", ())):
        before = bench.round_trips()
        got = await page(bench.provider, project, record_id)
        trips(bench, before, "revisions")
        expect.equal(got.revisions, wanted, "the page")


@law("C-8", capability=Capability.WRITE)
async def stored_values_are_nobodys_to_change(bench: Bench) -> None:
    """004-53: a caller that changes what it gave or got changes nothing that is stored."""
    project = bench.project()
    given: dict[str, object] = {"source": ["first"]}
    facet = specimens.facet(metadata=given)
    record = specimens.memory("r1", facet=facet)
    await committed(bench.provider, specimens.create(project, record))
    given["source"] = ["changed by the giver"]
    for _ in range(2):
        loaded = await load(bench.provider, project, "r1", revisions=(RevisionRef("r1", 1),))
        found = expect.some(loaded.revisions.get(RevisionRef("r1", 1)), "revision 1")
        kept = expect.some(expect.some(found.facet, "the facet").metadata, "its metadata")
        expect.equal(dict(kept), {"source": ["first"]}, "the stored metadata")
        if isinstance(kept, dict):
            kept["source"] = ["changed by the reader"]

"""Identifiers mean themselves, byte for byte, and one project knows nothing of another."""

from dataclasses import replace

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import commit, committed, load, page, stored
from providers.interface import IMemoryProvider
from providers.model import ClaimRelease, ProjectKey, ReceiptKey, Record, RevisionRef
from providers.requests import ClaimTaken, Committed, KeyHolder, Replayed, Tombstoned

CASES = ("abc", "ABC", "Abc", "aBC")
METACHARACTERS = (
    "a_b", "a-b", "axb", "a.b", "a:b", "a|b", "a/b", "a%b", "a%", "%", "_", "a*b", "a?b", "a[b]",
    "{a}b", "a#b", "a'b", 'a"b', "a\\b", "a b", "a;b", "a$1", "--", "..",
)  # fmt: skip
PREFIXES = ("p1", "p12", "p1/", "p1:", "a", "a_b", "john_doe", "john-doe", "john")
UNKNOWN = ("ab", "a", "b", "aab", "%b", "a_", "A_B", "a%%b", "abc ", " abc", "a\nb", "é")


async def _told_apart(provider: IMemoryProvider, project: ProjectKey, ids: tuple[str, ...]) -> None:
    """Write one record, claim and receipt for each id and find each under it alone."""
    records = [specimens.memory(each, f"this is {each}", agent_id=each) for each in ids]
    for record_id, record in zip(ids, records, strict=True):
        write = specimens.create(
            project, record, **specimens.claiming(record_id, f"key:{record_id}")
        )
        await committed(provider, specimens.keyed(write, key=record_id, request=record_id))
    for record_id, record in zip(ids, records, strict=True):
        loaded = await load(
            provider,
            project,
            record_id,
            keys=(f"key:{record_id}",),
            receipt=ReceiptKey(specimens.ACTOR, record_id),
            chain_from=record_id,
        )
        expect.equal(dict(loaded.heads), {record_id: record}, f"the head of {record_id!r}")
        holders = {f"key:{record_id}": KeyHolder(record_id, None)}
        expect.equal(dict(loaded.keys), holders, f"the claim of {record_id!r}")
        kept = expect.some(loaded.receipt, f"the receipt of {record_id!r}")
        expect.equal(kept.fingerprint, specimens.digest(record_id), "its fingerprint")
        expect.equal([each.record_id for each in loaded.chain], [record_id], "its chain")
    await stored(provider, project, *records)


@law("G-1", capability=Capability.READ)
async def ids_case_sensitive_bytewise(bench: Bench) -> None:
    """004-48: ids that differ by case are different things."""
    await _told_apart(bench.provider, bench.project(), CASES)


@law("G-1", capability=Capability.READ)
async def ids_with_metacharacters(bench: Bench) -> None:
    """004-48: no character of an id is a wildcard or a separator."""
    project = bench.project()
    await _told_apart(bench.provider, project, METACHARACTERS)
    found = await load(bench.provider, project, *UNKNOWN, keys=UNKNOWN, chain_from="a")
    expect.equal((dict(found.heads), dict(found.keys), found.chain), ({}, {}, ()), "unknown ids")


@law("G-1", capability=Capability.REVISIONS)
async def agents_are_compared_bytewise(bench: Bench) -> None:
    """004-56: an agent's history answers to the agent's exact id."""
    project = bench.project()
    record = specimens.memory("r1", agent_id="john_doe")
    await committed(bench.provider, specimens.create(project, record))
    for agent_id in ("john-doe", "johnXdoe", "JOHN_DOE", "john_doe ", "john", "john%", ""):
        got = await page(bench.provider, project, "r1", agent_id=agent_id)
        expect.that(not got.found, f"the history as {agent_id!r}")
    own = await page(bench.provider, project, "r1", agent_id="john_doe")
    expect.equal(own.revisions, (record.current,), "the history as its agent")


@law("G-2", capability=Capability.READ)
async def sibling_prefix_isolation(bench: Bench) -> None:
    """004-56: a project or tenant whose name begins another's reaches nothing of it."""
    projects = [bench.project(each) for each in PREFIXES]
    projects += [bench.project("p1", tenant_id=each) for each in PREFIXES]
    await _kept_apart(bench.provider, projects)


@law("G-2", "C-16", capability=Capability.READ)
async def same_ids_in_two_projects_and_two_tenants(bench: Bench) -> None:
    """004-56: equal record, revision, agent, key and run ids elsewhere are other things."""
    projects = [
        bench.project("p1", tenant_id="t1"),
        bench.project("p2", tenant_id="t1"),
        bench.project("p1", tenant_id="t2"),
        bench.project("p2", tenant_id="t2"),
        bench.project("t1", tenant_id="p1"),
    ]
    await _kept_apart(bench.provider, projects)


async def _kept_apart(provider: IMemoryProvider, projects: list[ProjectKey]) -> None:
    """Write the same ids into each project, differently, and see that each keeps its own."""
    records = [_everywhere(number) for number in range(len(projects))]
    for number, (project, record) in enumerate(zip(projects, records, strict=True)):
        write = specimens.keyed(
            specimens.create(project, record, graph_expected=0, **specimens.claiming("r", "held")),
            key="same key",
            request=f"request {number}",
        )
        await committed(provider, write)
        expect.equal(await commit(provider, write), Replayed(write.receipt), "the replay")
        taking = specimens.write(project, **specimens.claiming("s", "held"))
        expect.equal(await commit(provider, taking), ClaimTaken("held", "r"), "the claim")
    first, *others = projects
    moved = specimens.after(records[0], "moved on")
    await committed(
        provider,
        specimens.write(
            first,
            specimens.put(moved, over=records[0]),
            tombstones=(specimens.tombstone("grave"),),
            releases=(ClaimRelease("held", "r"),),
        ),
    )
    beside = specimens.write(first, must_be_absent=("grave",))
    expect.equal(await commit(provider, beside), Tombstoned("grave"), "the tombstone")
    for project, record in zip(others, records[1:], strict=True):
        await stored(provider, project, record)
        found = await load(
            provider,
            project,
            revisions=(RevisionRef("r", 2),),
            keys=("held", "grave"),
            graph=True,
            transfer=True,
        )
        expect.equal(dict(found.keys), {"held": KeyHolder("r", None)}, "another project's keys")
        expect.equal((found.graph, found.transfer), (1, 0), "another project's counters")
        expect.equal(dict(found.revisions), {}, "another project's revisions")
        free = specimens.write(project, must_be_absent=("grave",))
        expect.equal(await commit(provider, free), Committed(), "no tombstone in another project")
    await stored(provider, first, moved)


def _everywhere(number: int) -> Record:
    record = specimens.memory("r", f"text {number}", revision_id="the same revision id")
    return replace(record, current=replace(record.current, source_run_id="run-1"))

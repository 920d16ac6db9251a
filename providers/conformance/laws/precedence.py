"""Which refusal is told when several hold at once: clause C-3, pair by pair."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import commit, committed, load
from providers.interface import IMemoryProvider
from providers.model import Claim, ProjectKey, Record, WriteSet
from providers.requests import (
    AlreadyExists,
    ClaimTaken,
    CommitOutcome,
    Committed,
    Contended,
    GraphConflict,
    IdempotencyReused,
    Replayed,
    StaleRevision,
    Tombstoned,
)


@dataclass(frozen=True, slots=True)
class Flaw:
    """One reason to refuse: its place in the order, what it adds, and what must be answered."""

    rank: int
    name: str
    add: Callable[[WriteSet], WriteSet]
    outcome: CommitOutcome


@law("C-3", "C-5", capability=Capability.PROMOTE)
async def refusals_come_in_order(bench: Bench) -> None:
    """004-55, 004-62: of any two refusals, and of all together, the earlier one is told."""
    project = bench.project()
    flaws = await _prepare(bench.provider, project)
    for flaw in flaws:
        await _expect_refused(bench.provider, project, [flaw])
    for pair in combinations(flaws, 2):
        if pair[0].rank != pair[1].rank:
            await _expect_refused(bench.provider, project, list(pair))
    for first in flaws[:2]:
        await _expect_refused(bench.provider, project, [first, *flaws[2:]])
    await committed(bench.provider, _blank(project))


async def _expect_refused(
    provider: IMemoryProvider, project: ProjectKey, flaws: list[Flaw]
) -> None:
    write_set = _blank(project)
    for flaw in reversed(flaws):
        write_set = flaw.add(write_set)
    named = " and ".join(flaw.name for flaw in flaws)
    outcome = await commit(provider, write_set)
    expect.that(outcome != Committed(), f"{named}: is refused")
    expect.equal(outcome, flaws[0].outcome, f"{named}: the refusal told")
    left = await load(provider, project, "bystander", graph=True, stream_run_id="run-1")
    expect.equal(
        (dict(left.heads), left.graph, left.stream), ({}, 1, 1), f"{named}: what is left behind"
    )


def _blank(project: ProjectKey) -> WriteSet:
    return specimens.create(project, specimens.memory("bystander"))


async def _prepare(provider: IMemoryProvider, project: ProjectKey) -> list[Flaw]:
    """Write what the flaws run into, and make the flaws in the order of the clause."""
    old = specimens.memory("stale")
    first = specimens.keyed(specimens.create(project, old, specimens.memory("taken")), key="kept")
    await committed(
        provider,
        first,
        specimens.update(project, old),
        specimens.write(project, tombstones=(specimens.tombstone("grave"),)),
        specimens.write(
            project, graph_expected=0, effect=specimens.effect(1), **specimens.claiming("x", "held")
        ),
    )
    return [
        Flaw(0, "replayed", lambda ws: replace(ws, receipt=first.receipt), Replayed(first.receipt)),
        Flaw(
            0,
            "reused",
            lambda ws: specimens.keyed(ws, key="kept", request="another"),
            IdempotencyReused(),
        ),
        Flaw(
            1,
            "absence",
            lambda ws: replace(ws, must_be_absent=(*ws.must_be_absent, "grave")),
            Tombstoned("grave"),
        ),
        Flaw(1, "claim on a tombstone", _claims("grave"), Tombstoned("grave")),
        Flaw(2, "taken id", _puts(specimens.memory("taken"), None), AlreadyExists("taken")),
        Flaw(2, "taken claim", _claims("held"), ClaimTaken("held", "x")),
        Flaw(3, "graph", lambda ws: replace(ws, graph_expected=0), GraphConflict()),
        Flaw(3, "transfer", lambda ws: replace(ws, transfer_expected=0), GraphConflict()),
        Flaw(3, "stream", lambda ws: replace(ws, effect=specimens.effect(1)), Contended()),
        Flaw(4, "stale", _puts(specimens.after(old), 1), StaleRevision("stale", 2)),
        Flaw(4, "absent head", _puts(_second_of("absent"), 1), StaleRevision("absent", 0)),
    ]


def _claims(key: str) -> Callable[[WriteSet], WriteSet]:
    return lambda ws: replace(ws, claims=(*ws.claims, Claim(key, "bystander")))


def _puts(record: Record, over: int | None) -> Callable[[WriteSet], WriteSet]:
    return lambda ws: replace(ws, heads=(*ws.heads, specimens.put(record, over=over)))


def _second_of(record_id: str) -> Record:
    return specimens.after(specimens.memory(record_id))

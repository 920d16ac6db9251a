"""What a call of the broker costs in requests: the table of the README."""

from collections.abc import Awaitable, Callable

from providers.conformance import specimens
from providers.conformance.delivery_steps import (
    accepted,
    acknowledge,
    acquire,
    effect_of,
    leased,
    pending,
    release,
)
from providers.conformance.recall_steps import recalled, tagged, unindexed
from providers.conformance.steps import candidates, commit, committed, load, page, search
from providers.conformance.transfer_steps import brought, chain_of, export, graves
from providers.cosmos.provider import CosmosMemoryProvider
from providers.model import ProjectKey, RevisionRef, State
from providers.recall import EntryPut, IndexRequest
from tests.fixtures.cosmos_resource import CosmosResource, opened

PROJECT = ProjectKey("t1", "p1")
HERE = specimens.vector(1.0, 0.0)
Call = Callable[[], Awaitable[object]]
Cost = tuple[int, int, int, int]
"""Point reads, queries, batches, and operations of the batches."""


def _cost(memory: CosmosResource) -> Cost:
    counts = memory.server.control.counts()
    # The SDK looks at the account by itself, now and then.
    assert not counts.keys() - {"account", "read", "query", "batch"}
    batches = [each for each in memory.server.control.heads() if each["kind"] == "batch"]
    operations = sum(each["operations"] for each in batches)
    return counts.get("read", 0), counts.get("query", 0), counts.get("batch", 0), operations


async def test_each_call_costs_what_is_said(memory: CosmosResource) -> None:
    """004-35, G-11, C-9: with a marker that was read lately."""
    async with opened(memory, marker_ms=30_000) as provider:
        await _reads(memory, provider)
        await _writes(memory, provider)
        await _deliveries(memory, provider)
        await _recall(memory, provider)


async def _expect(memory: CosmosResource, costs: dict[str, tuple[Call, Cost]]) -> None:
    for name, (call, cost) in costs.items():
        memory.server.control.forget()
        await call()
        assert _cost(memory) == cost, name


async def _reads(memory: CosmosResource, provider: CosmosMemoryProvider) -> None:
    first, second, third = (specimens.decision(name) for name in ("d1", "d2", "d3"))
    await committed(provider, specimens.create(PROJECT, first, second, third))
    one, two = specimens.superseded(first, by="d2"), specimens.superseded(second, by="d3")
    put = specimens.put(one, over=first), specimens.put(two, over=second)
    await committed(provider, specimens.write(PROJECT, *put, graph_expected=0))
    refs = tuple(RevisionRef(name, 1) for name in ("d1", "d2"))
    everything = {"revisions": refs, "keys": ("k",), "graph": True, "transfer": True}
    await _expect(
        memory,
        {
            "load": (lambda: load(provider, PROJECT, "d1", "d2", **everything), (0, 1, 0, 0)),
            "load of a chain of three": (
                lambda: load(provider, PROJECT, "d1", chain_from="d1"),
                (0, 3, 0, 0),
            ),
            "history": (lambda: page(provider, PROJECT, "d1"), (0, 1, 0, 0)),
            "search": (lambda: search(provider, PROJECT, text="java"), (0, 1, 0, 0)),
            "candidates": (lambda: candidates(provider, PROJECT), (0, 1, 0, 0)),
            "export": (lambda: export(provider, PROJECT), (0, 2, 0, 0)),
            "export by links": (lambda: export(provider, PROJECT, "d1"), (0, 5, 0, 0)),
            "tombstones": (lambda: graves(provider, PROJECT, "k", "l"), (0, 1, 0, 0)),
            "readiness": (lambda: provider.ready(timeout=20), (1, 0, 0, 0)),
        },
    )


async def _writes(memory: CosmosResource, provider: CosmosMemoryProvider) -> None:
    record = specimens.memory("m1")
    created = specimens.create(PROJECT, record, **specimens.claiming("m1", "content"))
    several = [specimens.memory(f"b{n}") for n in range(12)]
    moved = chain_of(*specimens.history("h1", 20))
    grave = specimens.write(PROJECT, tombstones=(specimens.tombstone("grave"),))
    imported = brought(PROJECT, [moved], transfer_expected=1)
    proposed = specimens.create(PROJECT, specimens.proposal("p1"), must_be_absent=("said",))
    await _expect(
        memory,
        {
            "a new record with a claim": (lambda: commit(provider, created), (0, 1, 1, 4)),
            "a replay": (lambda: commit(provider, created), (0, 1, 0, 0)),
            "an update": (
                lambda: commit(provider, specimens.update(PROJECT, record)),
                (0, 1, 1, 3),
            ),
            "twelve records": (
                lambda: commit(provider, specimens.create(PROJECT, *several)),
                (0, 1, 1, 25),
            ),
            "a tombstone": (lambda: commit(provider, grave), (0, 1, 1, 4)),
            "a proposal": (lambda: commit(provider, proposed), (0, 1, 1, 4)),
            "an import of 21 revisions": (lambda: commit(provider, imported), (0, 1, 1, 6)),
        },
    )


async def _recall(memory: CosmosResource, provider: CosmosMemoryProvider) -> None:
    project, entry = ProjectKey("t1", "p2"), specimens.entry("java", vector=HERE)
    first = specimens.memory("r00")
    created = specimens.write(project, specimens.put(first, entry=entry))
    archived = specimens.after(first, state=State.ARCHIVED)
    moved = specimens.write(project, specimens.put(archived, over=first))
    later = specimens.after(archived, "Java 25.")
    edited = specimens.write(project, specimens.put(later, over=archived, entry=entry))
    bare = [specimens.memory(f"r{n:02}") for n in range(1, 13)]
    puts = tuple(
        EntryPut(record_id=now.record_id, revision_id=now.revision_id, entry=entry)
        for now in (each.current for each in bare)
    )
    indexed = IndexRequest(project=project, entries=puts)
    await _expect(
        memory,
        {
            "a new record with an entry": (lambda: commit(provider, created), (0, 1, 1, 3)),
            "an update that keeps the entry": (lambda: commit(provider, moved), (0, 1, 1, 3)),
            "an update with an entry": (lambda: commit(provider, edited), (0, 1, 1, 3)),
            "twelve more": (
                lambda: commit(provider, specimens.create(project, *bare)),
                (0, 1, 1, 25),
            ),
            "unindexed": (lambda: unindexed(provider, project), (0, 1, 0, 0)),
            "twelve entries": (lambda: provider.index(indexed, timeout=20), (0, 1, 1, 12)),
            "recall": (lambda: recalled(provider, project, "java", vector=HERE), (0, 1, 0, 0)),
            "tagged": (lambda: tagged(provider, project), (0, 1, 0, 0)),
        },
    )


async def _deliveries(memory: CosmosResource, provider: CosmosMemoryProvider) -> None:
    (effect,) = await accepted(provider, PROJECT)
    token = ""

    async def take() -> None:
        nonlocal token
        token = await leased(provider, PROJECT, effect)

    await _expect(
        memory,
        {
            "an effect": (lambda: effect_of(provider, PROJECT, effect), (0, 1, 0, 0)),
            "pending effects": (lambda: pending(provider, PROJECT), (0, 1, 0, 0)),
            "a lease": (take, (0, 1, 1, 1)),
            "no lease": (lambda: acquire(provider, PROJECT, effect), (0, 1, 0, 0)),
            "a release": (lambda: release(provider, PROJECT, effect, token), (0, 1, 1, 1)),
            "a lease again": (take, (0, 1, 1, 1)),
            "an acknowledgement": (
                lambda: acknowledge(provider, PROJECT, effect, token),
                (0, 1, 1, 2),
            ),
        },
    )

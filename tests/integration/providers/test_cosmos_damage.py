"""Stored documents that were damaged, each field of each kind: told as such, or of no matter."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from providers.conformance import specimens
from providers.conformance.delivery_steps import (
    accepted,
    acknowledge,
    acquire,
    deliver,
    effect_of,
    pending,
    release,
)
from providers.conformance.recall_steps import index, recalled, tagged, unindexed
from providers.conformance.steps import candidates, commit, committed, load, page, search
from providers.conformance.transfer_steps import brought, chain_of, export, graves
from providers.cosmos import keys
from providers.cosmos.provider import CosmosMemoryProvider
from providers.counters import TRANSFER
from providers.errors import ProviderError, ProviderUnavailableError, StoredDataInvalidError
from providers.model import AcceptedEffect, ProjectKey, RevisionRef, WriteSet
from tests.fixtures.cosmos_resource import CosmosResource, opened

PROJECT = ProjectKey("t1", "p1")
PARTITION = keys.partition_of(PROJECT)
GONE = object()
DAMAGES: Mapping[str, Any] = {"gone": GONE, "null": None, "a list": [[1]]}
KINDS = ("head", "revision", "segment", "receipt", "key", "counter", "effect", "stream", "fence")
VECTOR = specimens.vector(0.6, 0.8)
ENTRY = specimens.entry("java build", vector=VECTOR)
Calls = Mapping[str, Callable[[], Awaitable[object]]]


async def _filled(provider: CosmosMemoryProvider) -> tuple[WriteSet, tuple[AcceptedEffect, ...]]:
    """Store something of every kind: r1 with a claim, h1 imported, d1 superseded, two effects."""
    put = specimens.put(specimens.memory("r1"), entry=ENTRY)
    first = specimens.write(PROJECT, put, **specimens.claiming("r1", "held"))
    grave = specimens.write(PROJECT, tombstones=(specimens.tombstone("grave"),))
    moved = brought(PROJECT, [chain_of(*specimens.history("h1", 3))], transfer_expected=1)
    one, two = specimens.decision("one"), specimens.decision("two")
    await committed(provider, first, grave, moved, specimens.create(PROJECT, one, two))
    linked = specimens.put(specimens.superseded(one, by="two"), over=one)
    await committed(provider, specimens.write(PROJECT, linked, graph_expected=0))
    effects = tuple(await accepted(provider, PROJECT, 2))
    await deliver(provider, PROJECT, effects[0])
    return first, effects


def _calls(
    provider: CosmosMemoryProvider, first: WriteSet, effects: tuple[AcceptedEffect, ...]
) -> Calls:
    delivered, waiting = effects
    everything: dict[str, Any] = {
        "revisions": (RevisionRef("r1", 1), RevisionRef("h1", 2)),
        "keys": ("held", "grave"),
        "graph": True,
        "transfer": True,
        "stream_run_id": "run-1",
        "receipt": first.receipt.key,
        "chain_from": "one",
    }
    again = brought(PROJECT, [chain_of(*specimens.history("h1", 3))], transfer_expected=9)
    thief = specimens.create(PROJECT, specimens.memory("new"), **specimens.claiming("new", "held"))
    stale = specimens.update(PROJECT, specimens.memory("r1"))
    absent = specimens.create(PROJECT, specimens.memory("r1"), must_be_absent=("grave",))
    taken = specimens.create(PROJECT, specimens.decision("r1"), effect=waiting)
    return {
        "load": lambda: load(provider, PROJECT, "r1", "h1", "one", **everything),
        "a history": lambda: page(provider, PROJECT, "h1"),
        "a brief history": lambda: page(provider, PROJECT, "r1", brief=True),
        "search": lambda: search(provider, PROJECT),
        "a bounded search": lambda: search(provider, PROJECT, bytes_max=100),
        "candidates": lambda: candidates(provider, PROJECT),
        "export": lambda: export(provider, PROJECT),
        "an export by name": lambda: export(provider, PROJECT, "one", "r1"),
        "tombstones": lambda: graves(provider, PROJECT, "held", "grave"),
        "a replay": lambda: commit(provider, first),
        "a stale update": lambda: commit(provider, stale),
        "a taken claim": lambda: commit(provider, thief),
        "a tombstone": lambda: commit(provider, absent),
        "an import": lambda: commit(provider, again),
        "an effect again": lambda: commit(provider, taken),
        "a lease": lambda: acquire(provider, PROJECT, waiting),
        "a release": lambda: release(provider, PROJECT, waiting, "none"),
        "an acknowledgement": lambda: acknowledge(provider, PROJECT, delivered, "none"),
        "an effect": lambda: effect_of(provider, PROJECT, delivered),
        "pending effects": lambda: pending(provider, PROJECT),
        "recall": lambda: recalled(provider, PROJECT, "java", vector=VECTOR),
        "recall by words": lambda: recalled(provider, PROJECT, "java"),
        "tagged": lambda: tagged(provider, PROJECT),
        "unindexed": lambda: unindexed(provider, PROJECT, vector_model="m2"),
        # The last: it puts an entry over the damaged one.
        "index": lambda: index(provider, PROJECT, first.heads[0].record, ENTRY),
    }


def _allowed(field: str) -> tuple[type[ProviderError], ...]:
    """What may be told of it; the stand-in takes no order by what an item has not.

    Nor does it compare a text with anything else.
    """
    ordered = field in {"newest", "place", "recordId", "last", "sequence", "model"}
    return (StoredDataInvalidError, *([ProviderUnavailableError] if ordered else []))


async def _documents(memory: CosmosResource, kind: str) -> list[dict[str, Any]]:
    """One document of a kind in each form, without what the service adds."""
    found = memory.container.query_items("SELECT * FROM c", partition_key=PARTITION)
    forms: dict[tuple[bool, ...], dict[str, Any]] = {}
    async for each in found:
        kept = {name: value for name, value in each.items() if not name.startswith("_")}
        if kept["doc"] == kind:
            form = tuple(kept.get(name) is None for name in ("packed", "holder", "fact"))
            forms[form] = kept
    return [*forms.values()]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_damaged_field_is_told_or_of_no_matter(memory: CosmosResource, kind: str) -> None:
    """G-5, G-7, 004-44: whatever is wrong with a document, nothing else is raised."""
    async with opened(memory, marker_ms=30_000) as provider:
        calls = _calls(provider, *await _filled(provider))
        for kept in await _documents(memory, kind):
            for name in kept.keys() - {"id", "projectId"}:
                for how, value in DAMAGES.items():
                    damaged = {key: it for key, it in kept.items() if key != name}
                    if value is not GONE:
                        damaged[name] = value
                    await memory.container.replace_item(kept["id"], damaged)
                    for called, call in calls.items():
                        try:
                            await call()
                        except _allowed(name):
                            continue
                        except Exception as error:
                            what = f"{called}, {kept['doc']}.{name} {how}"
                            raise AssertionError(what) from error
            await memory.container.replace_item(kept["id"], kept)
        for call in calls.values():
            try:
                await call()
            except ProviderError as error:
                raise AssertionError("a document was not put back") from error


@pytest.mark.parametrize(
    ("name", "value"),
    [("sequence", 7), ("delivered", "no"), ("until", "later"), ("token", 5), ("code", 5)],
)
async def test_an_effect_that_says_two_things_is_told(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource, name: str, value: object
) -> None:
    """G-7, 004-44: or it would wait for ever, and all after it."""
    _, (_, waiting) = await _filled(cosmos_provider)
    item = await memory.container.read_item(keys.effect_id(waiting.receipt_id), PARTITION)
    await memory.container.replace_item(item["id"], item | {name: value})
    for call in (acquire, effect_of):
        with pytest.raises(StoredDataInvalidError):
            await call(cosmos_provider, PROJECT, waiting)


@pytest.mark.parametrize("doc", ["head", "revision", "receipt", "key", "effect", "counter"])
async def test_a_document_that_is_to_expire_is_told(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource, doc: str
) -> None:
    """004-34, 004-45: no tool may have the service remove what was acknowledged."""
    first, effects = await _filled(cosmos_provider)
    calls = _calls(cosmos_provider, first, effects)
    ids = {
        "head": keys.head_id("r1"),
        "revision": keys.revision_id(first.heads[0].record.current.revision_id),
        "receipt": keys.receipt_id(first.receipt.key),
        "key": keys.key_id("held"),
        "effect": keys.effect_id(effects[1].receipt_id),
        "counter": keys.counter_id(TRANSFER),
    }
    item = await memory.container.read_item(ids[doc], PARTITION)
    await memory.container.replace_item(item["id"], item | {"ttl": 100_000})
    with pytest.raises(StoredDataInvalidError):
        await calls["a lease" if doc == "effect" else "load"]()


async def test_a_marker_that_is_to_expire_is_told(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """004-34, 004-45: without it all would be refused, some day."""
    item = await memory.container.read_item(keys.MARKER_ID, keys.MARKER_PARTITION)
    await memory.container.replace_item(item["id"], item | {"ttl": 100_000})
    for call in (cosmos_provider.negotiate, cosmos_provider.ready):
        with pytest.raises(StoredDataInvalidError):
            await call(timeout=20)

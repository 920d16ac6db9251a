"""Exports and imports over a scripted authority and the in-memory model of a store."""

import threading
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, Final

import pytest

from broker.api.v1 import transfer_pb2
from broker.domain.errors import (
    BrokerError,
    BundleConflictError,
    BundleIncompleteError,
    BundleInvalidError,
    BundleTooLargeError,
    ConcurrentWriteError,
    FieldInvalidError,
    IdempotencyKeyReusedError,
    PermissionMissingError,
    ReplacementInvalidError,
    RunSelectionNotFoundError,
)
from broker.domain.requests import RestoreRecord, ScopeInput, SupersedeDecision
from broker.server.bundles import MessageBundle
from broker.services.access import ATTEMPTS_MAX
from broker.transfer import links
from broker.transfer.bundle import BYTES_MAX, VALUES_MAX, Bundle
from broker.transfer.given import ExportRecords, Imported, ImportRecords
from providers.conformance import specimens
from providers.exports import Export, Limit
from providers.model import ProjectKey
from providers.requests import AlreadyExists, Contended, GraphConflict, LoadRequest
from tests.fixtures.bundles import DECISION, bundle, history, linked
from tests.unit.services.world import SCOPE, World

WRITE: Final = ["check 1", "bind", "load", "check 2", "commit"]
AGENT: Final[dict[str, Any]] = {"agent_id": "agent"}


def small(*names: str) -> transfer_pb2.Bundle:
    """Return a bundle of memories of this scope."""
    return bundle("project", *(history("project", n, 2, **AGENT) for n in names), agent="agent")


async def imports(world: World, made: transfer_pb2.Bundle, **changes: Any) -> Imported:
    """Import into a world."""
    source = MessageBundle(made, present=True)
    given: dict[str, Any] = {
        "scope": SCOPE,
        "idempotency_key": "k",
        "bundle": source,
        "validate_only": False,
    }
    return await world.transfers.import_(world.call(), ImportRecords(**(given | changes)))


async def exports(world: World, *record_ids: str, scope: ScopeInput = SCOPE) -> Bundle:
    """Export from a world."""
    written = await world.transfers.export(
        world.call(), ExportRecords(scope=scope, record_ids=record_ids)
    )
    return written.bundle


async def test_an_import_is_a_write_like_others() -> None:
    """004-15, 004-88: two checks, two trips; the counters that were loaded are expected."""
    world = World()
    done = await imports(world, small("b", "a"))
    assert world.events == WRITE
    assert [each.current.record_id for each in done.records] == ["b", "a"]
    assert [each.current.revision for each in done.records] == [3, 3]
    assert await imports(world, small("b", "a")) == replace(done, replayed=True)
    with pytest.raises(IdempotencyKeyReusedError):
        await imports(world, small("b"))


async def test_an_export_is_a_read_like_others() -> None:
    """004-15, 004-82: two checks, one trip."""
    world = World()
    await imports(world, small("a"))
    world.events.clear()
    world.checks = 0
    made = await exports(world)
    assert world.events == ["check 1", "bind", "export", "check 2"]
    assert [each.record.current.record_id for each in made.chains] == ["a"]


async def test_only_checked() -> None:
    """004-86: no commit, and neither a receipt's reply nor its refusal."""
    world = World()
    await imports(world, small("a"))
    world.events.clear()
    world.checks = 0
    checked = await imports(world, small("b"), validate_only=True)
    assert world.events == WRITE[:-1]
    assert not checked.replayed
    with pytest.raises(BundleConflictError):
        await imports(world, small("a"), validate_only=True)


async def test_both_counters_advance() -> None:
    """004-59, 0005: links appear, and text that was forgotten meanwhile must not come back."""
    world = World()
    project = ProjectKey("tenant", "project")
    for imported in range(3):
        found = await world.provider.load(
            LoadRequest(project=project, graph=True, transfer=True), timeout=1.0
        )
        assert (found.graph, found.transfer) == (imported, imported)
        await imports(world, small(f"m{imported}"), idempotency_key=f"k{imported}")


@pytest.mark.parametrize("outcome", [GraphConflict(), Contended()])
async def test_contention_is_decided_again(outcome: GraphConflict | Contended) -> None:
    """004-59, 004-60: a counter that moved in between is loaded again."""
    world = World(outcomes=[outcome])
    assert not (await imports(world, small("a"))).replayed
    assert world.events[2:] == ["load", "check 2", "commit", "load", "check 3", "commit"]
    world = World(outcomes=[outcome] * ATTEMPTS_MAX)
    with pytest.raises(ConcurrentWriteError):
        await imports(world, small("a"))


async def test_links_are_judged_once_and_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """004-87: the worst bundle takes a while; other calls and other attempts do not pay for it."""
    judged = []
    real = links._closing

    def closing(made: Any) -> Any:
        judged.append(threading.current_thread())
        return real(made)

    monkeypatch.setattr(links, "_closing", closing)
    await imports(World(outcomes=[Contended()] * (ATTEMPTS_MAX - 1)), small("a"))
    assert len(judged) == 1
    assert judged[0] is not threading.main_thread()


async def test_an_id_that_exists_is_told_at_once() -> None:
    """004-87: the commit names the record; nothing is tried again with the same ids."""
    world = World(outcomes=[AlreadyExists("b")])
    with pytest.raises(BundleConflictError) as refused:
        await imports(world, small("a", "b"))
    assert refused.value.metadata == {"index": "1"}
    assert world.events == WRITE


async def test_an_id_of_ours_that_exists_is_replaced() -> None:
    """004-52: a record of ours gets other ids, and its caller is told nothing."""
    world = World(outcomes=[AlreadyExists("id-0001")])
    assert not (await world.create()).replayed
    assert world.events.count("commit") == 2


async def test_rights_before_everything_of_a_bundle() -> None:
    """004-05, 004-16: neither a fault, nor the store's word, to who may not enter."""
    denied: BrokerError = PermissionMissingError("AccessPrivateKnowledge")
    for number, made in ((1, bundle("other")), (2, small("a"))):
        world = World(refusals={number: denied})
        with pytest.raises(PermissionMissingError):
            await imports(world, made)
        assert "commit" not in world.events


async def test_a_bundle_is_judged_before_the_selection() -> None:
    """004-14, 004-86: fields first, then the run, as for every method."""
    world = World(selection=RunSelectionNotFoundError("none"))
    broken = history("project", "m", type="", **AGENT)
    for records in ((), (broken,)):
        with pytest.raises(BundleInvalidError):
            await imports(world, bundle("project", *records, agent="agent"))
    with pytest.raises(RunSelectionNotFoundError):
        await imports(world, small("a"))
    with pytest.raises(FieldInvalidError):
        await exports(world, "a b")


async def test_links_that_lead_away() -> None:
    """004-87: what they lead to is loaded with the rest."""
    world = World()
    made = bundle("project", linked("project", "a", "away"), agent="agent")
    snapshots: tuple[Any, ...] = (made.records[0].record, *made.records[0].revisions)
    for each in snapshots:
        each.agent_id = "agent"
    with pytest.raises(ReplacementInvalidError):
        await imports(world, made)
    assert world.events == WRITE[:-1]


# -------------------- what a store answers


@pytest.mark.parametrize("over", [0, 1])
async def test_values_are_counted_before_anything_is_written(over: int) -> None:
    """004-83: what an import refuses is not exported; heads count beside their revisions."""
    facet = specimens.facet(metadata={"a": [[]] * (VALUES_MAX // 2 - 3 + over), "b": {"c": 1}})
    memory = specimens.memory("m")
    record = replace(memory, current=replace(memory.current, facet=facet))
    world = World(export=Export(((record, (record.current,)),)))
    if not over:
        assert len((await exports(world)).chains) == 1
        assert world.forms == 1
        return
    with pytest.raises(BundleTooLargeError) as refused:
        await exports(world)
    assert refused.value.metadata == {"limit": "values", "max": str(VALUES_MAX)}
    assert world.forms == 0


@pytest.mark.parametrize("limit", ["records", "revisions", "bytes"])
async def test_more_than_a_bundle_holds(limit: Limit) -> None:
    """004-83: the store counted more."""
    with pytest.raises(BundleTooLargeError) as refused:
        await exports(World(export=Export((), limit)))
    assert refused.value.metadata["limit"] == limit


@pytest.mark.parametrize("size", [BYTES_MAX - 1, BYTES_MAX, BYTES_MAX + 1])
async def test_the_canonical_form_is_measured(size: int) -> None:
    """004-83: 1 MiB is the most."""
    world = World(canonical_bytes=size)
    if size <= BYTES_MAX:
        assert (await exports(world)).chains == ()
        return
    with pytest.raises(BundleTooLargeError):
        await exports(world)


async def test_a_torn_answer() -> None:
    """004-85: told only after the second check."""
    record = specimens.memory("m")
    torn = Export(((record, ()),))
    with pytest.raises(BundleIncompleteError):
        await exports(World(export=torn))
    denied: BrokerError = PermissionMissingError("AccessPrivateKnowledge")
    with pytest.raises(PermissionMissingError):
        await exports(World(export=torn, refusals={2: denied}))


async def test_a_clock_ahead_makes_no_circle() -> None:
    """004-87: superseded, restored, and then the other way round, by a clock that is behind."""
    world = World()
    ahead = world.now() + timedelta(minutes=4)
    there = history("project", "there", kind=DECISION, create_time=ahead, **AGENT)
    here = history("project", "here", kind=DECISION, **AGENT)
    await imports(world, bundle("project", there, here, agent="agent"))

    changes = world.changes
    numbers = count(1)

    async def change(method: Any, request: Any, record_id: str, **more: Any) -> int:
        given = {"scope": SCOPE, "record_id": record_id, "reason": ""} | more
        asked = request(idempotency_key=f"change-{next(numbers)}", **given)
        return int((await method(world.call(), asked)).record.current.revision)

    async def supersede(record_id: str, by: str) -> int:
        more = {"expected_revision": 2, "replacement_record_id": by}
        return await change(changes.supersede, SupersedeDecision, record_id, **more)

    revision = await supersede("there", "here")
    back = {"expected_revision": revision, "source_revision": 1}
    await change(changes.restore, RestoreRecord, "there", **back)
    await supersede("here", "there")
    made = await exports(world)
    assert links.judged_links(made).closing is None

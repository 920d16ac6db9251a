"""The order of checks of one call, over a scripted authority and the in-memory model of a store."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from broker.domain.errors import (
    AuthorityChangedError,
    BindingMismatchError,
    BrokerError,
    ConcurrentWriteError,
    DeadlineExceededError,
    FieldInvalidError,
    IdempotencyKeyReusedError,
    PermissionMissingError,
    RecordNotFoundError,
    RunSelectionNotFoundError,
    SourceNotAllowedError,
    StaleRevisionError,
    TombstonedError,
)
from broker.domain.requests import (
    CreateRecord,
    FacetInput,
    GetRecord,
    GetRevision,
    ListRevisions,
    ScopeInput,
)
from broker.services.access import ATTEMPTS_MAX
from providers.errors import (
    OutcomeUnknownError,
    ProviderUnavailableError,
    StoredDataInvalidError,
)
from providers.model import Kind, OriginTier, SourceType, Trust
from providers.requests import (
    CommitOutcome,
    Contended,
    GraphConflict,
    Loaded,
    LoadRequest,
    Tombstoned,
)
from tests.unit.services.world import CONTENT, SCOPE, World


async def test_a_write_is_two_checks_and_at_most_two_trips() -> None:
    """004-15: check, bind, load beside the second check, commit; a memory is created unseen."""
    world = World()
    made = await world.create()
    assert world.events == ["check 1", "bind", "check 2", "commit"]
    assert not made.replayed and made.record.current.revision == 1
    world.events.clear()
    world.checks = 0
    await world.update(made.record.current.record_id)
    assert world.events == ["check 1", "bind", "load", "check 2", "commit"]


async def test_a_read_is_two_checks_and_one_trip() -> None:
    """004-15: the second check begins after the read."""
    world = World()
    made = await world.create()
    record_id = made.record.current.record_id
    for read, trip in (
        (
            lambda: world.reads.get(world.call(), GetRecord(scope=SCOPE, record_id=record_id)),
            "load",
        ),
        (
            lambda: world.reads.get_revision(
                world.call(), GetRevision(scope=SCOPE, record_id=record_id, revision=1)
            ),
            "load",
        ),
        (
            lambda: world.reads.list_revisions(
                world.call(),
                ListRevisions(
                    scope=SCOPE, record_id=record_id, page_size=0, page_token="", full=True
                ),
            ),
            "revisions",
        ),
    ):
        world.events.clear()
        world.checks = 0
        await read()
        assert world.events == ["check 1", "bind", trip, "check 2"]


async def test_a_replay_is_behind_a_check_that_began_after_its_receipt_was_read() -> None:
    """004-15, 004-63: three checks, two trips, the original reply."""
    world = World()
    made = await world.create()
    await world.update(made.record.current.record_id)
    world.events.clear()
    world.checks = 0
    again = await world.create()
    assert again == replace(made, replayed=True)
    assert world.events[:4] == ["check 1", "bind", "check 2", "commit"]
    assert sorted(world.events[4:]) == ["check 3", "load"]


@pytest.mark.parametrize("number", [1, 2])
async def test_a_write_revoked_at_either_check_writes_nothing(number: int) -> None:
    """004-16: refused, and no commit was sent."""
    world = World(refusals={number: PermissionMissingError("AccessPrivateKnowledge")})
    with pytest.raises(PermissionMissingError):
        await world.create()
    assert not {"load", "commit"} & set(world.events)


@pytest.mark.parametrize(
    "refusal", [PermissionMissingError("AccessPrivateKnowledge"), AuthorityChangedError("x")]
)
async def test_nothing_of_a_provider_is_told_before_the_second_check(refusal: BrokerError) -> None:
    """004-15..17: not absence, not staleness, not an outage, not another request's receipt."""
    world = World()
    made = await world.create()
    record_id = made.record.current.record_id
    await world.update(record_id)
    attempts: list[Callable[[], Awaitable[Any]]] = [
        lambda: world.reads.get(world.call(), GetRecord(scope=SCOPE, record_id="absent")),
        lambda: world.update(record_id, "stale"),
        lambda: world.update("absent", "absent"),
        lambda: world.create("u"),
    ]
    for attempt in attempts:
        world.checks, world.refusals = 0, {2: refusal}
        with pytest.raises(type(refusal)):
            await attempt()
    world.load_error = ProviderUnavailableError("down")
    world.checks = 0
    with pytest.raises(type(refusal)):
        await attempts[0]()
    world.checks, world.binding = 0, BindingMismatchError("x")
    with pytest.raises(type(refusal)):
        await attempts[0]()


async def test_a_replay_revoked_after_its_receipt_was_read_is_refused() -> None:
    """004-16: authority precedes replay, at every check."""
    world = World()
    await world.create()
    for number in (1, 2, 3):
        world.checks, world.refusals = 0, {number: PermissionMissingError("X")}
        with pytest.raises(PermissionMissingError):
            await world.create()


async def test_a_receipt_that_names_nothing_is_damaged_data() -> None:
    """004-63: a write's receipt names the revision it left."""
    world = World()
    record_id = (await world.create()).record.current.record_id
    await world.update(record_id)
    created = world.provider.load

    async def emptied(request: LoadRequest, *, timeout: float) -> Loaded:
        loaded = await created(request, timeout=timeout)
        receipt = None if loaded.receipt is None else replace(loaded.receipt, refs=())
        return replace(loaded, receipt=receipt)

    world.provider.load = emptied  # type: ignore[method-assign]
    with pytest.raises(StoredDataInvalidError):
        await world.update(record_id)


async def test_permissions_come_before_fields_and_fields_before_the_selection() -> None:
    """004-05, 004-48: the order in which one request with every fault is refused."""
    world = World(selection=RunSelectionNotFoundError("none"))
    bad = replace(CONTENT, content="")
    world.refusals = {1: PermissionMissingError("X")}
    with pytest.raises(PermissionMissingError):
        await world.create(content=bad)
    world.checks, world.refusals = 0, {}
    with pytest.raises(FieldInvalidError):
        await world.create(content=bad)
    with pytest.raises(RunSelectionNotFoundError):
        await world.create()
    with pytest.raises(FieldInvalidError):
        await world.create(scope=ScopeInput("bad project", "run", "agent"), content=bad)
    assert "bind" not in world.events


@pytest.mark.parametrize("outcome", [Contended(), GraphConflict()])
async def test_contention_is_decided_again_behind_a_fresh_check(outcome: CommitOutcome) -> None:
    """004-60: load, check and decide again; the fifth failure is told."""
    world = World(outcomes=[outcome, outcome])
    made = await world.create()
    assert made.record.current.revision == 1
    assert world.events.count("commit") == 3 and world.checks == 4
    world = World(outcomes=[outcome] * ATTEMPTS_MAX)
    with pytest.raises(ConcurrentWriteError):
        await world.create()
    assert world.events.count("commit") == ATTEMPTS_MAX


async def test_refusals_of_the_store_are_told() -> None:
    """004-55, 004-62: stale with the current revision, reuse, tombstones, the unknown outcome."""
    world = World()
    made = await world.create()
    record_id = made.record.current.record_id
    await world.update(record_id)
    with pytest.raises(StaleRevisionError) as stale:
        await world.update(record_id, "other")
    assert stale.value.metadata == {"current_revision": "2"}
    with pytest.raises(IdempotencyKeyReusedError):
        await world.create("u")
    with pytest.raises(RecordNotFoundError):
        await world.update(record_id, "x", scope=ScopeInput("project", "run", "other"))
    world.outcomes = [Tombstoned("key")] * 2
    with pytest.raises(TombstonedError):
        await world.create("t")
    world.outcomes = [OutcomeUnknownError("lost")]
    with pytest.raises(OutcomeUnknownError):
        await world.create("l")


async def test_a_refused_write_leaves_its_key_free() -> None:
    """004-64: the same key with the corrected request works."""
    world = World()
    made = await world.create()
    record_id = made.record.current.record_id
    with pytest.raises(StaleRevisionError):
        await world.update(record_id, "k2", expected_revision=7)
    assert (await world.update(record_id, "k2")).record.current.revision == 2


async def test_a_commit_outlives_its_caller() -> None:
    """004-63: what was sent runs to its end, holds its caller's place, and a retry finds it."""
    world = World()
    started, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        await go.wait()

    world.before_commit = wait
    caller = asyncio.create_task(world.create())
    await started.wait()
    caller.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not caller.done()
    caller.cancel()  # a caller that may not even wait: the commit goes on all the same
    with pytest.raises(asyncio.CancelledError):
        await caller
    draining = asyncio.create_task(world.path.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    go.set()
    await draining
    world.before_commit = None
    assert (await world.create()).replayed


async def test_a_call_knows_whether_it_may_have_written() -> None:
    """004-63: true from the moment a commit is sent, false again when the store refused it."""
    world = World(outcomes=[OutcomeUnknownError("lost")])
    call = world.call()
    request = CreateRecord(
        scope=SCOPE, idempotency_key="k", kind=Kind.MEMORY, content=CONTENT, facet=None
    )
    with pytest.raises(OutcomeUnknownError):
        await world.writes.create(call, request)
    assert call.commit_sent
    world.outcomes = [Tombstoned("key")] * 2
    with pytest.raises(TombstonedError):
        await world.writes.create(call, request)
    assert not call.commit_sent


async def test_a_call_out_of_time_asks_the_store_nothing() -> None:
    """004-63: no time, no trip."""
    world = World()
    with pytest.raises(DeadlineExceededError):
        await world.writes.create(
            world.call(seconds=-1.0),
            CreateRecord(
                scope=SCOPE, idempotency_key="k", kind=Kind.MEMORY, content=CONTENT, facet=None
            ),
        )
    assert "commit" not in world.events


OPERATOR = FacetInput(source_type=SourceType.OPERATOR)


async def test_an_operator_source_needs_the_right_at_both_checks() -> None:
    """000-08: unbound, with WriteProjects, then and now; it starts approved."""
    world = World(writes_granted={1: True, 2: True})
    made = (await world.create(facet=OPERATOR)).record.current
    assert made.trust is Trust.APPROVED
    assert made.facet is not None and made.facet.origin_tier is OriginTier.OPERATOR
    for granted, bound in (({}, False), ({1: True}, False), ({1: True, 2: True}, True)):
        world = World(writes_granted=granted, bound_token=bound)
        with pytest.raises(SourceNotAllowedError):
            await world.create(facet=OPERATOR)
        assert "commit" not in world.events


async def test_an_edit_by_an_agent_lowers_the_tier() -> None:
    """000-08: decided by the fresher answer."""
    world = World(writes_granted={1: True, 2: True, 3: True, 4: False})
    made = (await world.create(facet=OPERATOR)).record.current
    edited = (await world.update(made.record_id)).record.current
    assert edited.facet is not None and edited.facet.origin_tier is OriginTier.AGENT
    assert edited.trust is Trust.PENDING

"""The order of checks of one call, over a scripted authority and the in-memory model of a store."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from broker.domain.authority import Authorized, Need, RunSelection
from broker.domain.call import Call, Caller, RunScope
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
from broker.domain.ports import Bound
from broker.domain.requests import (
    ContentInput,
    CreateRecord,
    FacetInput,
    GetRecord,
    GetRevision,
    ListRevisions,
    ScopeInput,
    UpdateRecord,
    Written,
)
from broker.services.access import ATTEMPTS_MAX, AccessPath
from broker.services.record_reads import RecordReads
from broker.services.record_writes import RecordWrites
from providers.capabilities import Capability
from providers.conformance.reference import ReferenceMemoryProvider, ReferenceStore
from providers.errors import OutcomeUnknownError, ProviderUnavailableError
from providers.interface import IMemoryProvider
from providers.model import Kind, OriginTier, ResourceIdentity, SourceType, Trust, WriteSet
from providers.requests import (
    CommitOutcome,
    Contended,
    GraphConflict,
    Loaded,
    LoadRequest,
    Negotiated,
    RevisionsPage,
    RevisionsRequest,
    Tombstoned,
)
from tests.unit.binding.test_binder import SELECTION

SCOPE = ScopeInput("project", "run", "agent")
CONTENT = ContentInput(type="note", title="", content="text", rationale="", importance=0.5, tags=())


@dataclass
class World:
    """A call's surroundings. ``events`` notes what happens, in order; the rest scripts it."""

    events: list[str] = field(default_factory=list)
    refusals: dict[int, BrokerError] = field(default_factory=dict)
    writes_granted: dict[int, bool] = field(default_factory=dict)
    selection: RunSelection | BrokerError = SELECTION
    binding: BrokerError | None = None
    outcomes: list[CommitOutcome | Exception] = field(default_factory=list)
    load_error: Exception | None = None
    before_commit: Callable[[], Awaitable[None]] | None = None
    bound_token: bool = False
    checks: int = 0

    def __post_init__(self) -> None:
        """Wire the use cases to this world."""
        resource = ResourceIdentity("resource", 1)
        self.provider = WatchedProvider(
            self, ReferenceMemoryProvider(ReferenceStore(resource), resource)
        )
        path = AccessPath(ScriptedAuthority(self), ScriptedBindings(self))
        self.path = path
        self.reads = RecordReads(path)
        numbers = count(1)
        self.writes = RecordWrites(path, self, lambda: f"id-{next(numbers):04}")

    def now(self) -> datetime:
        """Return a time that stands still."""
        return datetime(2026, 5, 1, tzinfo=UTC)

    def call(self, seconds: float = 10.0) -> Call:
        """Return a call of the one caller there is."""
        caller = Caller(
            issuer="https://i",
            subject="s",
            bearer="Bearer x",
            bound_project_id="project" if self.bound_token else None,
        )
        return Call(caller, "request", asyncio.get_running_loop().time() + seconds)

    async def create(self, key: str = "k", **changes: Any) -> Written:
        """Create a memory."""
        given: dict[str, Any] = {
            "scope": SCOPE,
            "idempotency_key": key,
            "kind": Kind.MEMORY,
            "content": CONTENT,
            "facet": None,
        }
        return await self.writes.create(self.call(), CreateRecord(**(given | changes)))

    async def update(self, record_id: str, key: str = "u", **changes: Any) -> Written:
        """Update a memory at revision 1."""
        given: dict[str, Any] = {
            "scope": SCOPE,
            "idempotency_key": key,
            "record_id": record_id,
            "expected_revision": 1,
            "content": replace(CONTENT, content="other"),
            "reason": "",
            "facet": None,
            "facet_mask": None,
        }
        return await self.writes.update(self.call(), UpdateRecord(**(given | changes)))


class ScriptedAuthority:
    """Grants, refuses the n-th check, or changes what it grants."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def check(self, call: Call, scope: RunScope, need: Need) -> Authorized:
        return self._answer(call, scope)

    async def recheck(self, first: Authorized, need: Need) -> Authorized:
        await asyncio.sleep(0)
        return self._answer(first.call, first.scope)

    def _answer(self, call: Call, scope: RunScope) -> Authorized:
        world = self._world
        world.checks += 1
        world.events.append(f"check {world.checks}")
        if world.checks in world.refusals:
            raise world.refusals[world.checks]
        return Authorized(
            call=call,
            scope=scope,
            tenant_id="tenant",
            membership_revision=1,
            grants_write=world.writes_granted.get(world.checks, False),
            selection=world.selection,
        )


class ScriptedBindings:
    """Binds every run to the one provider, or refuses."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def bind(self, authorized: Authorized, *, create: bool) -> Bound:
        self._world.events.append("bind")
        if self._world.binding is not None:
            raise self._world.binding
        return Bound(self._world.provider, "native", frozenset(Capability))


class WatchedProvider(IMemoryProvider):
    """The in-memory model, which notes its calls and ends them as scripted."""

    def __init__(self, world: World, model: ReferenceMemoryProvider) -> None:
        self._world, self._model = world, model

    async def negotiate(self, *, timeout: float) -> Negotiated:
        raise AssertionError

    async def ready(self, *, timeout: float) -> None:
        raise AssertionError

    async def close(self) -> None:
        raise AssertionError

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        self._world.events.append("load")
        if self._world.load_error is not None:
            raise self._world.load_error
        return await self._model.load(request, timeout=timeout)

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        self._world.events.append("commit")
        if self._world.before_commit is not None:
            await self._world.before_commit()
        if self._world.outcomes:
            scripted = self._world.outcomes.pop(0)
            if isinstance(scripted, Exception):
                raise scripted
            return scripted
        return await self._model.commit(write_set, timeout=timeout)

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        self._world.events.append("revisions")
        return await self._model.revisions(request, timeout=timeout)


async def test_a_write_is_two_checks_and_two_trips() -> None:
    """004-15: check, bind, load beside the second check, commit."""
    world = World()
    made = await world.create()
    assert world.events == ["check 1", "bind", "load", "check 2", "commit"]
    assert not made.replayed and made.record.current.revision == 1


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
                ListRevisions(scope=SCOPE, record_id=record_id, page_size=0, page_token=""),
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
    assert world.events[:4] == ["check 1", "bind", "load", "check 2"]
    assert sorted(world.events[4:]) == ["check 3", "load"]


@pytest.mark.parametrize("number", [1, 2])
async def test_a_write_revoked_at_either_check_writes_nothing(number: int) -> None:
    """004-16: refused, and no commit was sent."""
    world = World(refusals={number: PermissionMissingError("AccessPrivateKnowledge")})
    with pytest.raises(PermissionMissingError):
        await world.create()
    assert "commit" not in world.events
    assert ("load" in world.events) is (number == 2)


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
    world.outcomes = [Tombstoned("key")]
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
    """004-63: what was sent runs to its end, and a retry finds it."""
    world = World()
    started, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        await go.wait()

    world.before_commit = wait
    caller = asyncio.create_task(world.create())
    await started.wait()
    caller.cancel()
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
    world.outcomes = [Tombstoned("key")]
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

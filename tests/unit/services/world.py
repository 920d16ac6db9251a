"""A scripted authority and binding around the in-memory model of a store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from broker.domain.authority import (
    Authorized,
    Grant,
    GrantedOn,
    Need,
    Permission,
    RunSelection,
)
from broker.domain.call import Call, Caller, ProjectScope, RunScope
from broker.domain.delivery import DeliveryCode, DeliveryOutcome
from broker.domain.errors import (
    BrokerError,
)
from broker.domain.memories import Gap
from broker.domain.ports import Bound, Pin
from broker.domain.requests import (
    ContentInput,
    CreateRecord,
    ScopeInput,
    UpdateRecord,
    Written,
)
from broker.embeddings.off import NoEmbeddings
from broker.services.access import AccessPath
from broker.services.entries import Entries, Told
from broker.services.head_writer import HeadWriter
from broker.services.proposals import Proposals
from broker.services.record_changes import RecordChanges
from broker.services.record_reads import RecordReads
from broker.services.record_search import RecordSearch
from broker.services.record_writes import RecordWrites
from broker.services.transfers import Transfers
from broker.transfer.bundle import Bundle
from providers.capabilities import Capability
from providers.conformance.reference import ReferenceMemoryProvider, ReferenceStore
from providers.deliveries import EffectRequest
from providers.entries import RecallEntry
from providers.exports import Export, ExportRequest
from providers.interface import IMemoryProvider
from providers.model import Kind, ResourceIdentity, WriteSet
from providers.requests import (
    CommitOutcome,
    Loaded,
    LoadRequest,
    Negotiated,
    RevisionsPage,
    RevisionsRequest,
)
from tests.unit.binding.test_binder import CANDIDATE, SELECTION

SCOPE = ScopeInput("project", "run", "agent")
CONTENT = ContentInput(type="note", title="", content="text", rationale="", importance=0.5, tags=())


PIN = Pin(
    tenant_id="tenant",
    project_id="project",
    run_id="run",
    project_revision=1,
    project_configuration_revision=2,
    context_revision="context-v1",
    provider_id="native",
    adapter_version="1.0.0",
    options_schema_version=1,
    options_revision="options-v1",
    resource=ResourceIdentity("resource", 1),
    capabilities=CANDIDATE.advertised,
)


@dataclass(frozen=True)
class Weighed:
    """A bundle that says how large it is."""

    bundle: Bundle
    size: int


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
    may_write: bool = False
    canonical_bytes: int = 1_000
    export: Export | None = None
    checks: int = 0
    forms: int = 0
    commits: list[WriteSet] = field(default_factory=list)
    indexed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Wire the use cases to this world."""
        resource = ResourceIdentity("resource", 1)
        self.store = ReferenceStore(resource)
        self.model = ReferenceMemoryProvider(self.store, resource)
        self.provider = WatchedProvider(self, self.model)
        path = AccessPath(ScriptedAuthority(self), ScriptedBindings(self), NotedEntries(self))
        self.path = path
        self.reads = RecordReads(path)
        self.searches = RecordSearch(path)
        numbers = count(1)
        writer = HeadWriter(path, self, lambda: f"id-{next(numbers):04}")
        self.writes = RecordWrites(path, writer)
        self.changes = RecordChanges(path, writer)
        self.proposals = Proposals(path, writer, NoRelay())
        self.transfers = Transfers(
            path,
            self,
            lambda: f"id-{next(numbers):04}",
            self._weighed,
        )

    def _weighed(self, bundle: Bundle) -> Weighed:
        self.forms += 1
        return Weighed(bundle, self.canonical_bytes)

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


GRANT = Grant(on=GrantedOn.PROJECT, resource_id="project", role_revision=1)
READS = {Permission.ACCESS_PRIVATE_KNOWLEDGE: GRANT}
WRITES = READS | {Permission.WRITE_PROJECTS: GRANT}


class NoRelay:
    """Delivers nothing."""

    async def deliver(self, call: Call, bound: Bound, named: EffectRequest) -> DeliveryOutcome:
        """Say that the Events service cannot be reached."""
        return DeliveryOutcome(code=DeliveryCode.EVENTS_UNAVAILABLE)


class NotedEntries(Entries):
    """Makes entries without vectors, and notes of what."""

    def __init__(self, world: World) -> None:
        super().__init__(NoEmbeddings())
        self._world = world

    async def of(
        self, told: Sequence[Told], *, tenant_id: str, vectors: bool, timeout: float
    ) -> tuple[tuple[RecallEntry, ...], Gap | None]:
        self._world.indexed += [content.content for content, _ in told]
        return await super().of(told, tenant_id=tenant_id, vectors=vectors, timeout=timeout)


class ScriptedAuthority:
    """Grants, refuses the n-th check, or changes what it grants."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def check(self, call: Call, scope: RunScope | ProjectScope, need: Need) -> Authorized:
        return self._answer(call, scope)

    async def recheck(self, first: Authorized, need: Need) -> Authorized:
        await asyncio.sleep(0)
        return self._answer(first.call, first.scope)

    def _answer(self, call: Call, scope: RunScope | ProjectScope) -> Authorized:
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
            grants=WRITES if world.writes_granted.get(world.checks, world.may_write) else READS,
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
        return Bound(self._world.provider, "native", frozenset(Capability), PIN)


class WatchedProvider(IMemoryProvider):
    """The in-memory model, which notes its calls and ends them as scripted."""

    commits_unseen = True

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
        self._world.commits.append(write_set)
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

    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        self._world.events.append("export")
        if self._world.export is not None:
            return self._world.export
        return await self._model.export(request, timeout=timeout)

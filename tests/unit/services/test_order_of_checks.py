"""No outcome of a provider call leaves before a check that began after it (004-15)."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import count

import pytest

from broker.domain.authority import Authorized, Candidate, Need, RunSelection
from broker.domain.call import Call, RunScope
from broker.domain.errors import PermissionMissingError
from broker.domain.ports import Bound
from broker.domain.requests import (
    ContentInput,
    CreateRecord,
    GetRecord,
    GetRevision,
    ListRevisions,
    ScopeInput,
    UpdateRecord,
    Written,
)
from broker.services.access import AccessPath
from broker.services.record_reads import RecordReads
from broker.services.record_writes import RecordWrites
from providers.capabilities import Capability
from providers.conformance.reference import ReferenceMemoryProvider, ReferenceStore
from providers.model import Kind, ResourceIdentity, WriteSet
from providers.requests import (
    CommitOutcome,
    Loaded,
    LoadRequest,
    RevisionsPage,
    RevisionsRequest,
)
from tests.fixtures.owner_answers import caller

RESOURCE = ResourceIdentity("resource", 1)
SCOPE = ScopeInput("project", "run", "agent")
CONTENT = ContentInput(
    type="note", title="", content="as it was", rationale="", importance=0.5, tags=()
)
CREATE = CreateRecord(
    scope=SCOPE, idempotency_key="create", kind=Kind.MEMORY, content=CONTENT, facet=None
)
SELECTION = RunSelection(
    tenant_id="tenant",
    project_id="project",
    run_id="run",
    project_revision=1,
    project_configuration_revision=1,
    platform_runtime_revision=1,
    context_revision="1",
    memory=Candidate(
        seam="Memory",
        provider_id="provider",
        adapter_version="1.0.0",
        options_schema_version=1,
        options_revision="1",
        hosting="native",
        advertised=frozenset(),
        required=frozenset(),
    ),
    max_prompt_tokens=None,
)


class Desk:
    """The use cases over the reference. ``events`` keeps what was asked, and what ended, when."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.revoked_after: int | None = None
        self.checks = 0
        provider = Provider(self.events)
        self._bound = Bound(provider, "provider", frozenset(Capability))
        path = AccessPath(self, self)
        ids = count(1)
        self.reads = RecordReads(path)
        self.writes = RecordWrites(path, self, lambda: f"id-{next(ids)}")

    @property
    def call(self) -> Call:
        return Call(caller(), "request", asyncio.get_running_loop().time() + 30)

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def bind(self, authorized: Authorized, *, create: bool) -> Bound:
        return self._bound

    async def check(self, call: Call, scope: RunScope, need: Need) -> Authorized:
        await self._ask("check")
        return Authorized(
            call=call,
            scope=scope,
            tenant_id="tenant",
            membership_revision=1,
            grants_write=True,
            selection=SELECTION,
        )

    async def recheck(self, first: Authorized, need: Need) -> Authorized:
        await self._ask("recheck")
        return first

    async def _ask(self, what: str) -> None:
        self.events.append(what)
        self.checks += 1
        await asyncio.sleep(0)
        if self.revoked_after is not None and self.checks > self.revoked_after:
            raise PermissionMissingError("AccessPrivateKnowledge")


class Provider(ReferenceMemoryProvider):
    """The reference; keeps when each call ended."""

    def __init__(self, events: list[str]) -> None:
        super().__init__(ReferenceStore(marker=RESOURCE), RESOURCE)
        self._events = events

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        loaded = await super().load(request, timeout=timeout)
        self._events.append("loaded")
        return loaded

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        page = await super().revisions(request, timeout=timeout)
        self._events.append("loaded")
        return page

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        outcome = await super().commit(write_set, timeout=timeout)
        self._events.append("committed")
        return outcome


def update(record_id: str, text: str, seen: int) -> UpdateRecord:
    return UpdateRecord(
        scope=SCOPE,
        idempotency_key=f"update-{seen}",
        record_id=record_id,
        expected_revision=seen,
        content=ContentInput(
            type="note", title="", content=text, rationale="", importance=0.5, tags=()
        ),
        reason="",
        facet=None,
        facet_mask=None,
    )


async def made(desk: Desk) -> Written:
    """Create the record and forget what led to it."""
    written = await desk.writes.create(desk.call, CREATE)
    desk.events.clear()
    desk.checks = 0
    return written


Read = Callable[[Desk, str], Awaitable[object]]
READS: dict[str, Read] = {
    "get": lambda desk, record: desk.reads.get(desk.call, GetRecord(scope=SCOPE, record_id=record)),
    "get_revision": lambda desk, record: desk.reads.get_revision(
        desk.call, GetRevision(scope=SCOPE, record_id=record, revision=1)
    ),
    "list_revisions": lambda desk, record: desk.reads.list_revisions(
        desk.call, ListRevisions(scope=SCOPE, record_id=record, page_size=0, page_token="")
    ),
}


@pytest.mark.parametrize("absent", [False, True], ids=["there", "absent"])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_a_read_is_told_after_a_check_that_began_after_it(read: Read, absent: bool) -> None:
    desk = Desk()
    record = (await made(desk)).record.current.record_id
    if not absent:
        await read(desk, record)
        assert desk.events == ["check", "loaded", "recheck"]
        desk.checks = 0
    desk.revoked_after = 1
    with pytest.raises(PermissionMissingError):
        await read(desk, "nothing" if absent else record)


async def test_nothing_is_written_when_the_second_check_refuses() -> None:
    desk = Desk()
    record = (await made(desk)).record.current.record_id
    desk.revoked_after = 1
    for seen in (1, 7):  # neither the write nor that it would be stale
        desk.checks = 0
        with pytest.raises(PermissionMissingError):
            await desk.writes.update(desk.call, update(record, "another text", seen))
    assert "committed" not in desk.events


async def test_a_replay_is_told_after_a_check_that_began_after_its_receipt() -> None:
    desk = Desk()
    await made(desk)
    assert (await desk.writes.create(desk.call, CREATE)).replayed
    first = desk.events.index("loaded")
    assert "recheck" in desk.events[first:]
    assert desk.events.count("recheck") == 2
    desk.checks, desk.revoked_after = 0, 2
    with pytest.raises(PermissionMissingError):
        await desk.writes.create(desk.call, CREATE)


async def test_a_replay_gives_the_first_reply_after_the_record_moved_on() -> None:
    """004-63: the reply is rebuilt from the revision it named, not from the head."""
    desk = Desk()
    first = await made(desk)
    record = first.record.current.record_id
    for seen in (1, 2):
        await desk.writes.update(desk.call, update(record, f"text {seen}", seen))
    again = await desk.writes.create(desk.call, CREATE)
    assert again.replayed and again.record == first.record

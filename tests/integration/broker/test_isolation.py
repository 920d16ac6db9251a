"""Tenants, projects and agents never see each other, and cannot tell foreign from absent."""

import secrets
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.fixtures.broker import Stand
from tests.fixtures.bundles import bundle, history
from tests.fixtures.record_calls import (
    CREATE,
    EXPORT,
    GET,
    IMPORT,
    LIST,
    NAMING,
    READS,
    REVISION,
    RPCS,
    SEARCH,
    UPDATE,
    Metadata,
    Refused,
    outcomes,
    refused,
    request,
    send,
)
from tests.fixtures.stand_records import provider_operations, stored

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

ABSENT: Final = "01890000-0000-7000-8000-000000000000"
GONE: Final = ("NOT_FOUND", "RECORD_NOT_FOUND")


@dataclass(frozen=True)
class Place:
    """Where records are kept: whose, in which tenant and project, for which agent."""

    project: str
    tenant: str = "tenant-a"
    actor: str = "actor-a"
    agent: str = "agent-a"
    run: str = "run-a"

    def says(self, stand: Stand, request_id: str = "") -> Metadata:
        """Return the metadata of a caller there."""
        more = {"x_request_id": request_id} if request_id else {}
        return stand.metadata(stand.identity.token(self.actor, tenant=self.tenant), **more)

    def asks(self, rpc: str, **changes: Any) -> Any:
        """Return a request there."""
        return request(rpc, self.project, run=self.run, agent=self.agent, **changes)


async def made(stand: Stand, place: Place, **changes: Any) -> str:
    """Create a record in a place."""
    async with stand.channel() as channel:
        reply = await send(channel, CREATE, place.asks(CREATE, **changes), place.says(stand))
    assert not isinstance(reply, Refused), reply
    assert not reply.replayed
    return str(reply.record.record_id)


def neighbours(project: str) -> dict[str, Place]:
    """Return places beside the first one, each of which differs in one thing."""
    return {
        "another tenant": Place(project, tenant="tenant-b"),
        "a tenant in another case": Place(project, tenant="Tenant-A"),
        "another project": Place(f"{project}-b"),
        "a project in another case": Place(project.upper()),
        "another agent": Place(project, agent="agent-b"),
        "an agent in another case": Place(project, agent="Agent-A"),
    }


NAMES: Final = tuple(neighbours(""))


@pytest.mark.parametrize("name", NAMES)
async def test_foreign_is_absent(stand: Stand, name: str) -> None:
    """004-56, 004-19: foreign and absent records give the same bytes for the same work."""
    home = Place(stand.project())
    there = neighbours(home.project)[name]
    foreign = await made(stand, home)
    await made(stand, there, idempotency_key="key-there")
    kept = await stored(stand, [home.project, there.project])
    says = there.says(stand, f"request-{secrets.token_hex(4)}")
    async with stand.channel() as channel:
        for rpc in NAMING:
            answers = []
            for record in (foreign, ABSENT):
                asked, before = (
                    len(stand.owner.questions[there.project]),
                    provider_operations(stand),
                )
                answers.append(await refused(channel, rpc, there.asks(rpc, record_id=record), says))
                assert len(stand.owner.questions[there.project]) - asked == 2
                assert (provider_operations(stand) - before).total() == 1
            assert answers[0] == answers[1]
            assert (answers[0].code, answers[0].reason) == GONE
    assert await stored(stand, [home.project, there.project]) == kept


@pytest.mark.parametrize("changes", [{"expected_revision": 7}, {"revision": 7}, {"page_size": 1}])
async def test_no_detail_of_a_foreign_record_is_told(stand: Stand, changes: dict[str, int]) -> None:
    """004-56: neither that a revision is stale nor that it is absent."""
    home = Place(stand.project())
    there = Place(home.project, agent="agent-b")
    foreign = await made(stand, home)
    says = there.says(stand, "request-1")
    async with stand.channel() as channel:
        for rpc in NAMING:
            answers = [
                await refused(channel, rpc, there.asks(rpc, record_id=record, **changes), says)
                for record in (foreign, ABSENT)
            ]
            assert answers[0] == answers[1]
            assert answers[0].metadata == {}


@pytest.mark.parametrize("name", NAMES)
async def test_histories_do_not_leave_their_place(stand: Stand, name: str) -> None:
    """004-56, 004-82, 004-87: elsewhere there is nothing to export, and nothing to meet or name."""
    home = Place(stand.project())
    there = neighbours(home.project)[name]
    mine = await made(stand, home)
    says = there.says(stand, "request-1")
    async with stand.channel() as channel:
        moved = (await send(channel, EXPORT, home.asks(EXPORT), home.says(stand))).bundle
        assert [each.record.record_id for each in moved.records] == [mine]
        empty = (await send(channel, EXPORT, there.asks(EXPORT), says)).bundle
        assert (empty.project_id, empty.agent_id, [*empty.records]) == (
            there.project,
            there.agent,
            [],
        )
        told = [
            await refused(channel, EXPORT, there.asks(EXPORT, record_ids=[record]), says)
            for record in (mine, ABSENT)
        ]
        assert told[0] == told[1]
        relabelled = bundle(
            there.project,
            history(there.project, mine, agent_id=there.agent),
            agent=there.agent,
        )
        reply = await send(channel, IMPORT, there.asks(IMPORT, bundle=relabelled), says)
        if (home.project, home.tenant) == (there.project, there.tenant):
            assert reply.reason == "BUNDLE_CONFLICT"
        else:
            assert [each.record_id for each in reply.records] == [mine]
        again = (await send(channel, EXPORT, home.asks(EXPORT), home.says(stand))).bundle
    assert again == moved


@pytest.mark.parametrize("name", NAMES)
async def test_the_same_key_elsewhere_is_independent(stand: Stand, name: str) -> None:
    """004-62: a key belongs to tenant, project and actor; and each sees its own record."""
    home = Place(stand.project())
    there = neighbours(home.project)[name]
    if home.project == there.project and home.tenant == there.tenant:
        there = Place(there.project, agent=there.agent, actor="actor-b")
    mine = await made(stand, home, content="mine")
    theirs = await made(stand, there, content="theirs")
    assert mine != theirs
    async with stand.channel() as channel:
        for place, record, content in ((home, mine, "mine"), (there, theirs, "theirs")):
            says = place.says(stand)
            got = await send(channel, GET, place.asks(GET, record_id=record), says)
            assert (got.record.content, got.record.project_id) == (content, place.project)
            page = await send(channel, LIST, place.asks(LIST, record_id=record), says)
            assert [entry.content for entry in page.revisions] == [content]
            one = await send(channel, REVISION, place.asks(REVISION, record_id=record), says)
            assert one.revision == page.revisions[0]
            found = await send(channel, SEARCH, place.asks(SEARCH), says)
            assert [*found.records] == [got.record]
            edit = place.asks(UPDATE, record_id=record, content=content.upper())
            assert (await send(channel, UPDATE, edit, says)).record.revision == 2
        again = await send(channel, CREATE, home.asks(CREATE, content="mine"), home.says(stand))
        assert (again.replayed, again.record.record_id) == (True, mine)


@pytest.mark.parametrize("actor", ["actor-b", "Actor-A"])
async def test_another_actor_s_key(stand: Stand, actor: str) -> None:
    """004-20, 004-62, B.11.10: actors share records, never keys."""
    home = Place(stand.project())
    other = Place(home.project, actor=actor)
    mine, theirs = await made(stand, home), await made(stand, other)
    assert mine != theirs
    async with stand.channel() as channel:
        for place in (home, other):
            reads = {
                (rpc, record): await send(
                    channel, rpc, place.asks(rpc, record_id=record), place.says(stand)
                )
                for rpc in READS
                for record in (mine, theirs)
            }
            assert set(outcomes({str(key): reply for key, reply in reads.items()}).values()) == {
                ("OK", "")
            }


async def test_one_actor_s_key_in_other_scopes_of_a_project(stand: Stand) -> None:
    """004-62: run and agent are part of the request, so the key counts as used."""
    home = Place(stand.project())
    await made(stand, home)
    async with stand.channel() as channel:
        for there in (Place(home.project, run="run-b"), Place(home.project, agent="agent-b")):
            reply = await refused(channel, CREATE, there.asks(CREATE), there.says(stand))
            assert reply.reason == "IDEMPOTENCY_KEY_REUSED"


async def test_runs_share_the_records_of_an_agent(stand: Stand) -> None:
    """004-19, 004-28: a run gives access and is no part of a record's identity."""
    home = Place(stand.project())
    record = await made(stand, home)
    other = Place(home.project, run="RUN-A")
    async with stand.channel() as channel:
        got = await send(channel, GET, other.asks(GET, record_id=record), other.says(stand))
    assert (got.record.record_id, got.record.source_run_id) == (record, "run-a")
    assert await stand.rows("knowledge.pins", home.project) == 2


async def test_record_ids_are_compared_byte_for_byte(stand: Stand) -> None:
    """004-48, 004-56: an id in another case is another id."""
    home = Place(stand.project())
    record = (await made(stand, home)).upper()
    async with stand.channel() as channel:
        for rpc in NAMING:
            reply = await refused(channel, rpc, home.asks(rpc, record_id=record), home.says(stand))
            assert (reply.code, reply.reason) == GONE


async def test_every_row_is_under_its_own_tenant(stand: Stand) -> None:
    """004-12, 004-28: what one tenant writes carries its tenant in every table."""
    home = Place(stand.project())
    tenants = ("tenant-a", "tenant-b")
    for tenant in tenants:
        await made(stand, Place(home.project, tenant=tenant))
    for table in ("records", "revisions", "receipts"):
        assert await stand.memory.counts(table, home.project) == dict.fromkeys(tenants, 1)
    pins = "SELECT tenant_id FROM knowledge.pins WHERE project_id = $1 ORDER BY 1"
    assert [row[0] for row in await stand.database.fetch(pins, home.project)] == [*tenants]


def test_no_rpc_is_left_out() -> None:
    """004-56: every RPC names a record, makes one, or searches those of one agent."""
    assert {*NAMING, CREATE, SEARCH} == set(RPCS)

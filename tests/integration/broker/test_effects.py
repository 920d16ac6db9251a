"""Accepted effects over the wire: what a receipt says, to whom it is told, and the waiting list."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import grpc
import pytest
from grpc import aio

from broker.api.v1 import effect_pb2
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import bent, granting, projects_grant, said
from tests.fixtures.broker import Stand
from tests.fixtures.desk import Desk, desk
from tests.fixtures.granting_events import refuses
from tests.fixtures.identity import ISSUER
from tests.fixtures.own_broker import own_broker
from tests.fixtures.record_calls import (
    DELIVER,
    EFFECT,
    EFFECT_RPCS,
    PENDING,
    PROMOTE,
    PROPOSE,
    UNSCOPED,
    Refused,
    refused_of,
    request,
    send,
)
from tests.fixtures.stand_records import provider_operations, stored

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

GONE: Final = ("NOT_FOUND", "EFFECT_NOT_FOUND")
KNOWLEDGE: Final = owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE
SELECTION: Final = owners.PERMISSION_READ_RUN_SELECTION
WRITE: Final = owners.PERMISSION_WRITE_PROJECTS
TENANT: Final = owners.RESOURCE_TYPE_TENANT
PROJECT: Final = owners.RESOURCE_TYPE_PROJECT
SECRET: Final = "a secret that nobody but the agent knows"


async def promoted(
    desk: Desk, claims: dict[str, Any] | None = None, key: str = "key", **changes: Any
) -> Any:
    """Make a proposal with a secret in it, and promote it, with such a token."""
    content = {"content": SECRET, "rationale": f"because of {SECRET}"}
    made = await desk.done(PROPOSE, claims, idempotency_key=f"p-{key}", **content, **changes)
    return await desk.done(
        PROMOTE,
        claims,
        proposal_id=made.proposal.record_id,
        idempotency_key=key,
        **changes,
    )


async def test_a_receipt_says_by_what_right(desk: Desk) -> None:
    """004-18, 004-72: twenty-one fields, the grant on the project before that on the tenant."""
    tenant = (TENANT, "tenant-a", (KNOWLEDGE, WRITE))
    desk.stand.owner.scripts[desk.project] = bent(
        granting(projects_grant(KNOWLEDGE, SELECTION, WRITE), tenant)
    )
    reply = await promoted(desk)
    receipt = (await desk.done(EFFECT, receipt_id=reply.receipt_id)).receipt
    assert len(effect_pb2.EffectReceipt.DESCRIPTOR.fields) == 21
    told = {field.name: value for field, value in receipt.ListFields()}
    accept_time = told.pop("accept_time")
    assert accept_time == reply.decision.create_time
    assert told == {
        "receipt_id": reply.receipt_id,
        "schema_version": 1,
        "event_version": 1,
        "project_id": desk.project,
        "run_id": "run-a",
        "effect_id": reply.decision.record_id,
        "record_id": reply.decision.record_id,
        "record_version": 1,
        "issuer": ISSUER,
        "subject": "actor-a",
        "tenant_id": "tenant-a",
        "authorization_resource_type": effect_pb2.AUTHORIZATION_RESOURCE_TYPE_PROJECT,
        "authorization_resource_id": desk.project,
        "authorization_revision": 1,
        "membership_revision": 1,
        "project_revision": 1,
        "project_configuration_revision": 1,
        "context_revision": "context-v1",
    }


async def test_a_receipt_of_a_tenants_grant_and_a_bound_token(desk: Desk) -> None:
    """004-18, 004-72, 004-08: the tenant's grant where it is the only one; the token's bounds."""
    claims = {"project_id": desk.project, "run_id": "run-a"}
    desk.stand.owner.scripts[desk.project] = bent(
        granting(projects_grant(SELECTION), (TENANT, "tenant-a", (KNOWLEDGE, WRITE)))
    )
    reply = await promoted(desk, claims)
    receipt = (await desk.done(EFFECT, claims, receipt_id=reply.receipt_id)).receipt
    assert (receipt.bound_project_id, receipt.bound_run_id) == (desk.project, "run-a")
    assert (receipt.authorization_resource_type, receipt.authorization_resource_id) == (
        effect_pb2.AUTHORIZATION_RESOURCE_TYPE_TENANT,
        "tenant-a",
    )


async def test_a_receipt_holds_no_content(desk: Desk) -> None:
    """004-72, B8, P10: neither the receipt nor what is kept of it says what was decided."""
    reply = await promoted(desk)
    receipt = await desk.done(EFFECT, receipt_id=reply.receipt_id)
    kept = (await stored(desk.stand, [desk.project]))[desk.project]
    (effect,) = (line for line in kept if line.startswith("effects "))
    for text in (str(receipt), effect):
        assert SECRET not in text
        assert "architectural" not in text


async def test_replies_are_private(desk: Desk) -> None:
    """004-81, B8: nobody along the way may store one, a refusal included."""
    reply = await promoted(desk)
    says = desk.stand.metadata()
    for receipt_id, of in ((reply.receipt_id, "initial"), ("absent", "trailing")):
        asked = request(EFFECT, desk.project, receipt_id=receipt_id)
        path = "/broker.api.v1.EffectService/GetAcceptedEffect"
        call: Any = desk.channel.unary_unary(
            path, request_serializer=type(asked).SerializeToString
        )(asked, metadata=says)
        found = await (call.initial_metadata() if of == "initial" else call.trailing_metadata())
        assert ("cache-control", "no-store") in [*(found or ())]
        if of == "trailing":
            with pytest.raises(aio.AioRpcError) as raised:
                await call
            assert refused_of(raised.value).reason == "EFFECT_NOT_FOUND"
            assert reply.receipt_id not in refused_of(raised.value).text()


async def test_a_receipt_is_its_callers_alone(desk: Desk) -> None:
    """004-81, HELD B9: another subject, tenant, project, run, bounds; absent: the same answer."""
    bound = {"project_id": desk.project, "run_id": "run-a"}
    receipts = {
        "unbound": (await promoted(desk)).receipt_id,
        "bound": (await promoted(desk, bound, "key-2")).receipt_id,
    }
    elsewhere = Desk(desk.stand, desk.channel, desk.stand.project())
    await promoted(elsewhere)
    await promoted(desk, key="key-3", run="run-b")
    rows = await stored(desk.stand, [desk.project])
    told: list[Refused] = []
    for rpc in (EFFECT, DELIVER):
        unbound, inside = receipts["unbound"], receipts["bound"]
        told += [
            await desk.told(rpc, receipt_id="absent"),
            await desk.told(rpc, {"sub": "actor-b"}, receipt_id=unbound),
            await desk.told(rpc, {"sub": "Actor-A"}, receipt_id=unbound),
            await desk.told(rpc, bound, receipt_id=unbound),
            await desk.told(rpc, {"project_id": desk.project}, receipt_id=unbound),
            await desk.told(rpc, receipt_id=inside),
            await desk.told(rpc, {"project_id": desk.project}, receipt_id=inside),
            await desk.told(rpc, receipt_id=unbound, run="run-b"),
            await desk.told(rpc, receipt_id=unbound.upper()),
            await elsewhere.told(rpc, receipt_id=unbound),
        ]
    assert {(each.code, each.reason) for each in told} == {GONE}
    assert len({each.message for each in told}) == 1
    other = {"tenant_id": "tenant-b"}
    refused = await desk.told(EFFECT, other, receipt_id=receipts["unbound"])
    assert refused.reason == "BINDING_MISSING", "the run of another tenant has no pin"
    assert await stored(desk.stand, [desk.project]) == rows
    receipt = (await desk.done(EFFECT, bound, receipt_id=receipts["bound"])).receipt
    assert receipt.receipt_id == receipts["bound"]


@pytest.mark.parametrize("rpc", EFFECT_RPCS)
async def test_what_the_effect_methods_need(desk: Desk, rpc: str) -> None:
    """004-81, 004-08, 004-09: WriteProjects and ReadRunSelection, at both checks; no knowledge."""
    reply = await promoted(desk)
    named = {"receipt_id": reply.receipt_id}
    owner = desk.stand.owner

    async def told(*grants: Any, at: int | None = None) -> tuple[str, dict[str, str]]:
        owner.scripts[desk.project] = bent(granting(*grants), at=at)
        owner.questions[desk.project].clear()
        refused = await desk.told(rpc, **named)
        assert refused.code == "PERMISSION_DENIED"
        return refused.reason, refused.metadata

    before = provider_operations(desk.stand)
    for at in (None, 2):
        assert await told(projects_grant(KNOWLEDGE, SELECTION), at=at) == (
            "PERMISSION_MISSING",
            {"permission": "WriteProjects"},
        )
        tenant_only = (TENANT, "tenant-a", (WRITE, SELECTION))
        assert await told(projects_grant(KNOWLEDGE), tenant_only, at=at) == (
            "PERMISSION_MISSING",
            {"permission": "ReadRunSelection"},
        )
    after = provider_operations(desk.stand) - before
    assert after.total() == 2, "one read for each call whose check two refused it"
    assert not after["acquire"]
    owner.scripts[desk.project] = bent(
        granting(projects_grant(SELECTION), (TENANT, "tenant-a", (WRITE,)))
    )
    await desk.done(rpc, **named)
    owner.scripts[desk.project] = bent(said(actor_id="actor-b"), at=2)
    owner.questions[desk.project].clear()
    assert (await desk.told(rpc, **named)).reason == "AUTHORITY_CHANGED"


async def test_the_waiting_list(desk: Desk) -> None:
    """004-73: whoever may deliver sees what waits, in order, and not who accepted it; paged."""
    desk.stand.events.scripts[desk.project] = refuses(grpc.StatusCode.PERMISSION_DENIED)
    made = [await promoted(desk, {"sub": f"actor-{n % 3}"}, f"key-{n}") for n in range(7)]
    listed: list[Any] = []
    token = ""
    while True:
        page = await desk.done(PENDING, page_size=3, page_token=token)
        listed += page.effects
        assert len(page.effects) <= 3
        token = page.next_page_token
        if not token:
            break
    assert [each.receipt_id for each in listed] == [each.receipt_id for each in made]
    assert [each.sequence for each in listed] == [*range(1, 8)]
    codes = ["events_forbidden", *[""] * 6]
    assert [each.last_delivery_code for each in listed] == codes
    assert [each.accept_time for each in listed] == [each.decision.create_time for each in made]
    names = {field.name for field, _ in listed[0].ListFields()}
    assert names == {"receipt_id", "sequence", "accept_time", "last_delivery_code"}
    first = await desk.done(PENDING, page_size=3)
    for changes in ({"run": "run-b"}, {"page_token": first.next_page_token + "x"}):
        given = {"page_token": first.next_page_token} | changes
        await desk.call(PROPOSE, run="run-b", idempotency_key="pins-run-b")
        assert (await desk.told(PENDING, **given)).reason == "PAGE_TOKEN_INVALID"
    assert [*(await desk.told(PENDING, page_size=-1)).violations] == ["page_size"]


@pytest.mark.parametrize("rpc", [EFFECT, DELIVER])
async def test_ids_of_effects(desk: Desk, rpc: str) -> None:
    """004-48: each is judged in its place: scope before the owner is asked, the receipt after."""
    await promoted(desk)
    for receipt_id in ("", "a/b", "r" * 257):
        refused = await desk.told(rpc, receipt_id=receipt_id)
        assert [*refused.violations] == ["receipt_id"]
    desk.stand.owner.questions[desk.project].clear()
    refused = await desk.told(rpc, run="a/b", receipt_id="")
    assert [*refused.violations] == ["run_id"]
    assert not desk.stand.owner.questions[desk.project]


async def test_effect_reads_pass_by_the_line(desk: Desk) -> None:
    """004-80: the Events service can read a receipt back while every place is taken."""
    reply = await promoted(desk)
    held = asyncio.Event()

    async def hold(question: Any, answer: Any, context: Any) -> bytes:
        while not held.is_set():  # noqa: ASYNC110 - set in another thread
            await asyncio.sleep(0.02)
        return bytes(answer.SerializeToString())

    busy = [Desk(desk.stand, desk.channel, desk.stand.project()) for _ in range(40)]
    for each in busy:
        desk.stand.owner.scripts[each.project] = hold
    says = [{"tenant_id": f"tenant-{n % 4}"} for n in range(40)]
    waiting = [
        asyncio.create_task(each.call(PROPOSE, claims))
        for each, claims in zip(busy, says, strict=True)
    ]
    try:
        async with asyncio.timeout(20):
            while desk.stand.metric("broker_admission_queue_length") < 8:  # noqa: ASYNC110 - its own
                await asyncio.sleep(0.05)
        receipt = (await desk.done(EFFECT, receipt_id=reply.receipt_id)).receipt
        assert receipt.receipt_id == reply.receipt_id
        assert not any(task.done() for task in waiting)
    finally:
        held.set()
    replies = await asyncio.gather(*waiting)
    assert not any(isinstance(each, Refused) for each in replies)


# -------------------- without naming the run


async def test_the_unscoped_read_is_off(desk: Desk) -> None:
    """004-81: unless it is configured nothing is found, and nobody is asked."""
    reply = await promoted(desk)
    refused = await desk.told(UNSCOPED, receipt_id=reply.receipt_id)
    assert (refused.code, refused.reason) == GONE


@pytest.fixture(scope="module")
def open_stand(stand: Stand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A broker that serves the unscoped read, on the same database."""

    def change(settings: dict[str, Any]) -> None:
        settings["events"]["unscoped_reads"] = True

    with own_broker(stand, tmp_path_factory.mktemp("unscoped"), stand.database, change) as made:
        yield made


@pytest.mark.memories("postgres")
async def test_the_unscoped_read(desk: Desk, open_stand: Stand) -> None:
    """004-81: found for its own caller; to all others the same not-found."""
    bound = {"project_id": desk.project, "run_id": "run-a"}
    unbound_id = (await promoted(desk)).receipt_id
    bound_id = (await promoted(desk, bound, "key-2")).receipt_id
    scoped = (await desk.done(EFFECT, receipt_id=unbound_id)).receipt
    async with open_stand.channel() as channel:
        there = Desk(open_stand, channel, desk.project)
        assert (await there.done(UNSCOPED, receipt_id=unbound_id)).receipt == scoped
        assert (await there.done(UNSCOPED, bound, receipt_id=bound_id)).receipt
        told = [
            await there.told(UNSCOPED, receipt_id="absent"),
            await there.told(UNSCOPED, receipt_id=bound_id),
            await there.told(UNSCOPED, bound, receipt_id=unbound_id),
            await there.told(UNSCOPED, {"sub": "actor-b"}, receipt_id=unbound_id),
            await there.told(UNSCOPED, {"tenant_id": "tenant-b"}, receipt_id=unbound_id),
            await there.told(UNSCOPED, {"purpose": "export"}, receipt_id=unbound_id),
        ]
        open_stand.owner.scripts[desk.project] = bent(
            granting(projects_grant(KNOWLEDGE, SELECTION))
        )
        told.append(await there.told(UNSCOPED, receipt_id=unbound_id))
        assert {(each.code, each.reason) for each in told} == {GONE}
        assert len({each.message for each in told}) == 1
        refused = await there.told(UNSCOPED, receipt_id="a/b")
        assert [*refused.violations] == ["receipt_id"]
        open_stand.owner.scripts.pop(desk.project)
        nobody = await send(channel, UNSCOPED, request(UNSCOPED, desk.project), [])
        assert isinstance(nobody, Refused)
        assert nobody.code == "UNAUTHENTICATED"

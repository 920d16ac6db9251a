"""Deliveries over the wire: what the Events service is told, and every way one can come out."""

import asyncio
import hashlib
from typing import Any, Final

import grpc
import pytest

from broker.api.v1 import effect_pb2, record_pb2
from tests.fixtures.desk import Desk, desk
from tests.fixtures.granting_events import (
    Script,
    acknowledges,
    admits_and_hangs,
    closes,
    gives,
    hangs,
    in_turn,
    refuses,
)
from tests.fixtures.record_calls import (
    DELIVER,
    PENDING,
    PROMOTE,
    PROPOSE,
    Refused,
    request,
    send,
)
from tests.fixtures.stand_records import every_row, provider_operations

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

DELIVERED: Final = effect_pb2.DELIVERY_STATE_DELIVERED
WAITING: Final = effect_pb2.DELIVERY_STATE_PENDING
EVENTS_TOKEN: Final = "events-token-7f3a9c"


async def proposed(desk: Desk, key: str, **changes: Any) -> str:
    """Make a proposal; return its id."""
    reply = await desk.done(PROPOSE, idempotency_key=f"propose-{key}", **changes)
    proposal: record_pb2.Record = reply.proposal
    return proposal.record_id


async def promoted(desk: Desk, key: str = "key", **changes: Any) -> Any:
    """Make a proposal and promote it."""
    proposal = await proposed(desk, key, **changes)
    return await desk.done(PROMOTE, proposal_id=proposal, idempotency_key=key, **changes)


async def delivered(desk: Desk, receipt_id: str, **changes: Any) -> effect_pb2.Delivery:
    """Have a receipt delivered."""
    reply = await desk.done(DELIVER, receipt_id=receipt_id, **changes)
    delivery: effect_pb2.Delivery = reply.delivery
    return delivery


async def waiting(desk: Desk, **changes: Any) -> list[tuple[str, int, str]]:
    """Return receipt, place and last code of the effects that are undelivered."""
    page = await desk.done(PENDING, **changes)
    return [(each.receipt_id, each.sequence, each.last_delivery_code) for each in page.effects]


async def attempted(desk: Desk, count: int) -> None:
    """Wait until the Events service was called so often."""
    async with asyncio.timeout(30):
        while desk.stand.events.counts[desk.project] < count:  # noqa: ASYNC110 - another thread's
            await asyncio.sleep(0.01)


async def test_what_the_events_service_is_told(desk: Desk) -> None:
    """004-76: five fields, and the caller's own token; the acknowledgement is passed on."""
    reply = await promoted(desk)
    (attempt,) = desk.stand.events.attempts[desk.project]
    asked = attempt.request
    assert (asked.receipt_id, asked.project_id, asked.run_id) == (
        reply.receipt_id,
        desk.project,
        "run-a",
    )
    assert (asked.schema_version, asked.event_version) == (1, 1)
    (authorization,) = attempt.values("authorization")
    assert str(authorization).startswith("Bearer ey")
    assert attempt.values("x-knowledge-authorization") == []
    assert attempt.values("x-tenant") == []
    said = reply.delivery.acknowledgement
    assert reply.delivery.state == DELIVERED
    assert (said.receipt_id, said.schema_version, said.event_version) == (reply.receipt_id, 1, 1)
    assert (said.fact_id, said.project_id, said.sequence) == (
        f"fact-{reply.receipt_id}",
        desk.project,
        1,
    )


async def test_a_separate_token_for_the_events_service(desk: Desk) -> None:
    """004-76: it becomes the authorization, and the one for knowledge has a place of its own."""
    proposal = await proposed(desk, "key")
    token = desk.stand.identity.token()
    says = [
        *desk.stand.metadata(token, x_tenant="tenant-a", x_request_id="request-7"),
        ("x-events-authorization", f"Bearer {EVENTS_TOKEN}"),
    ]
    asked = request(PROMOTE, desk.project, proposal_id=proposal)
    reply = await send(desk.channel, PROMOTE, asked, says)
    assert reply.delivery.state == DELIVERED
    (attempt,) = desk.stand.events.attempts[desk.project]
    assert attempt.values("authorization") == [f"Bearer {EVENTS_TOKEN}"]
    assert attempt.values("x-knowledge-authorization") == [f"Bearer {token}"]
    assert attempt.values("x-tenant") == ["tenant-a"]
    assert attempt.values("x-request-id") == ["request-7"]
    rows = "\n".join(await every_row(desk.stand))
    for secret in (EVENTS_TOKEN, token, hashlib.sha256(token.encode()).hexdigest()):
        assert secret not in rows
        assert secret not in desk.stand.broker.log()


SAID: Final[dict[str, tuple[Script, str]]] = {
    "token_refused": (refuses(grpc.StatusCode.UNAUTHENTICATED), "events_audience_required"),
    "forbidden": (refuses(grpc.StatusCode.PERMISSION_DENIED), "events_forbidden"),
    "conflict": (refuses(grpc.StatusCode.ALREADY_EXISTS), "events_conflict"),
    "contract": (refuses(grpc.StatusCode.INVALID_ARGUMENT), "events_contract_rejected"),
    "not_there": (refuses(grpc.StatusCode.UNIMPLEMENTED), "events_contract_rejected"),
    "rejected": (refuses(grpc.StatusCode.NOT_FOUND), "events_rejected"),
    "precondition": (refuses(grpc.StatusCode.FAILED_PRECONDITION), "events_rejected"),
    "unavailable": (refuses(grpc.StatusCode.UNAVAILABLE), "events_unavailable"),
    "overloaded": (refuses(grpc.StatusCode.RESOURCE_EXHAUSTED), "events_unavailable"),
    "internal": (refuses(grpc.StatusCode.INTERNAL), "events_unavailable"),
    "unknown": (refuses(grpc.StatusCode.UNKNOWN, ()), "events_unavailable"),
    "cancelled": (refuses(grpc.StatusCode.CANCELLED), "events_unavailable"),
    "mute": (refuses(grpc.StatusCode.UNAVAILABLE, ()), "events_transport_unavailable"),
    "closed": (closes, "events_transport_unavailable"),
    "hangs": (hangs, "accepted_effect_delivery_timeout"),
    "empty": (gives(b""), "events_acknowledgment_invalid"),
    "garbage": (gives(b"\xff\xff\xff"), "events_acknowledgment_invalid"),
    "too_large": (gives(b"\x0a\x80\x80\x20" + b"x" * 524_288), "events_acknowledgment_invalid"),
    "other_receipt": (acknowledges(receipt_id="another"), "events_acknowledgment_invalid"),
    "other_project": (acknowledges(project_id="another"), "events_acknowledgment_invalid"),
    "other_schema": (acknowledges(schema_version=2), "events_acknowledgment_invalid"),
    "other_event": (acknowledges(event_version=2), "events_acknowledgment_invalid"),
    "no_fact": (acknowledges(fact_id=""), "events_acknowledgment_invalid"),
    "long_fact": (acknowledges(fact_id="f" * 257), "events_acknowledgment_invalid"),
    "odd_fact": (acknowledges(fact_id="a\nb"), "events_acknowledgment_invalid"),
    "place_0": (acknowledges(sequence=0), "events_acknowledgment_invalid"),
    "place_below_0": (acknowledges(sequence=-1), "events_acknowledgment_invalid"),
}


@pytest.mark.parametrize("name", SAID)
async def test_a_delivery_that_fails(desk: Desk, name: str) -> None:
    """004-77, 004-78, A1, B8: pending with its code; what was promoted stands; then delivered."""
    script, code = SAID[name]
    desk.stand.events.scripts[desk.project] = in_turn(script)
    reply = await promoted(desk)
    assert (reply.delivery.state, reply.delivery.code) == (WAITING, code)
    assert not reply.delivery.HasField("acknowledgement")
    audience = code == "events_audience_required"
    assert reply.delivery.required_audience == ("events-tests" if audience else "")
    assert reply.delivery.required_subject == ("actor-a" if audience else "")
    assert await waiting(desk) == [(reply.receipt_id, 1, code)]
    again = await desk.done(PROMOTE, proposal_id=reply.proposal.record_id, idempotency_key="key")
    assert again.replayed
    assert again.receipt_id == reply.receipt_id
    assert (again.proposal, again.decision) == (reply.proposal, reply.decision)
    assert again.delivery.state == DELIVERED
    assert await waiting(desk) == []
    attempts = desk.stand.events.attempts[desk.project]
    assert [each.request.receipt_id for each in attempts] == [reply.receipt_id] * 2
    third = await delivered(desk, reply.receipt_id)
    assert third.SerializeToString() == again.delivery.SerializeToString()
    assert len(attempts) == 2, "what is delivered is not sent again"


@pytest.mark.parametrize(
    "values",
    [
        ("",),
        ("Bearer",),
        ("Bearer ",),
        ("Basic abc",),
        ("Bearer a b",),
        (f"Bearer {EVENTS_TOKEN}", f"Bearer {EVENTS_TOKEN}"),
    ],
)
async def test_a_malformed_token_for_the_events_service(
    desk: Desk, values: tuple[str, ...]
) -> None:
    """004-78: nothing is sent; what was promoted stays, and can be delivered later."""
    proposal = await proposed(desk, "key")
    says = [*desk.stand.metadata(), *(("x-events-authorization", value) for value in values)]
    asked = request(PROMOTE, desk.project, proposal_id=proposal)
    reply = await send(desk.channel, PROMOTE, asked, says)
    assert not isinstance(reply, Refused), reply
    assert (reply.delivery.state, reply.delivery.code) == (WAITING, "invalid_events_token")
    assert desk.stand.events.counts[desk.project] == 0
    assert (await delivered(desk, reply.receipt_id)).state == DELIVERED


async def test_tokens_of_others_are_refused_elsewhere(desk: Desk) -> None:
    """004-76: the one for the Events service on two methods, the forwarded one on none."""
    proposal = await proposed(desk, "key")
    for rpc, name in (
        (PROPOSE, "x-events-authorization"),
        (PENDING, "x-events-authorization"),
        (PROMOTE, "x-knowledge-authorization"),
        (DELIVER, "x-knowledge-authorization"),
    ):
        says = [*desk.stand.metadata(), (name, f"Bearer {EVENTS_TOKEN}")]
        asked = request(rpc, desk.project, proposal_id=proposal)
        reply = await send(desk.channel, rpc, asked, says)
        assert isinstance(reply, Refused), rpc
        assert [*reply.violations] == [name]
    assert (await desk.head(proposal)).revision == 1


async def test_the_order_of_a_run(desk: Desk) -> None:
    """004-73, C19: nothing overtakes an undelivered effect of its run; other runs go on."""
    forbidden = refuses(grpc.StatusCode.PERMISSION_DENIED)
    desk.stand.events.scripts[desk.project] = in_turn(forbidden)
    first = await promoted(desk, "key-1")
    second = await promoted(desk, "key-2")
    elsewhere = await promoted(desk, "key-3", run="run-b")
    assert first.delivery.code == "events_forbidden"
    assert second.delivery.code == "accepted_effect_delivery_busy"
    assert elsewhere.delivery.state == DELIVERED
    assert (await delivered(desk, second.receipt_id)).code == "accepted_effect_delivery_busy"
    assert await waiting(desk) == [
        (first.receipt_id, 1, "events_forbidden"),
        (second.receipt_id, 2, ""),
    ]
    assert (await delivered(desk, first.receipt_id)).acknowledgement.sequence == 2
    assert (await delivered(desk, second.receipt_id)).acknowledgement.sequence == 3
    assert await waiting(desk) == []


async def test_racing_callers_deliver_in_order(desk: Desk) -> None:
    """004-73, 004-74, C21: whoever delivers, each effect goes once and in its place."""
    desk.stand.events.scripts[desk.project] = refuses(grpc.StatusCode.PERMISSION_DENIED)
    receipts = [(await promoted(desk, f"key-{n}")).receipt_id for n in range(4)]
    del desk.stand.events.scripts[desk.project]
    desk.stand.events.attempts[desk.project].clear()
    for _ in range(8):
        replies = await asyncio.gather(
            *(delivered(desk, receipt) for receipt in receipts for _ in range(4))
        )
        if all(each.state == DELIVERED for each in replies):
            break
    assert await waiting(desk) == []
    came = [each.request.receipt_id for each in desk.stand.events.attempts[desk.project]]
    assert came == receipts


async def test_an_acknowledgement_that_never_comes(desk: Desk) -> None:
    """004-77, 004-80: the fact is there and the broker does not know; the next try is told it."""
    desk.stand.events.scripts[desk.project] = in_turn(admits_and_hangs)
    reply = await promoted(desk)
    assert reply.delivery.code == "accepted_effect_delivery_timeout"
    again = await delivered(desk, reply.receipt_id)
    assert again.acknowledgement.sequence == 1
    assert len(desk.stand.events.facts[desk.project]) == 1


async def test_a_caller_who_goes_away(desk: Desk) -> None:
    """004-78: the promotion stands, the lease is given back at once, and the list says why."""
    desk.stand.events.scripts[desk.project] = in_turn(hangs)
    proposal = await proposed(desk, "key")
    calling = asyncio.create_task(desk.call(PROMOTE, proposal_id=proposal, idempotency_key="key"))
    await attempted(desk, 1)
    calling.cancel()
    await asyncio.wait({calling})
    async with asyncio.timeout(10):
        while (found := await waiting(desk))[0][2] == "":
            continue
    assert found[0][2] == "accepted_effect_delivery_cancelled"
    again = await desk.done(PROMOTE, proposal_id=proposal, idempotency_key="key")
    assert again.replayed
    assert again.delivery.state == DELIVERED


@pytest.mark.memories("postgres", "redis")
async def test_deliveries_hold_no_place(desk: Desk) -> None:
    """004-75: calls that wait for the Events service leave their places to others."""
    proposals = [await proposed(desk, f"key-{n}", run=f"run-{n}") for n in range(40)]
    desk.stand.events.scripts[desk.project] = hangs
    promoting = [
        asyncio.create_task(
            desk.done(PROMOTE, run=f"run-{n}", proposal_id=each, idempotency_key=f"key-{n}")
        )
        for n, each in enumerate(proposals)
    ]
    await attempted(desk, len(proposals))
    assert not any(task.done() for task in promoting)
    assert (await desk.head(proposals[0])).promoted_decision_id
    assert desk.stand.metric("broker_admission_running") == 0
    replies = await asyncio.gather(*promoting)
    assert {each.delivery.code for each in replies} == {"accepted_effect_delivery_timeout"}


async def test_what_a_delivery_costs(desk: Desk) -> None:
    """004-15, 004-75: counted; a replay of what is delivered asks the Events service nothing."""
    proposal = await proposed(desk, "key")

    async def cost(rpc: str, **changes: Any) -> tuple[int, dict[str, int], int]:
        before = provider_operations(desk.stand)
        desk.stand.owner.questions[desk.project].clear()
        desk.stand.events.attempts[desk.project].clear()
        await desk.done(rpc, **changes)
        return (
            len(desk.stand.owner.questions[desk.project]),
            dict(provider_operations(desk.stand) - before),
            desk.stand.events.counts[desk.project],
        )

    told = {"proposal_id": proposal, "idempotency_key": "key"}
    # The text, and with it the key that may forbid it, is known after the first load.
    first = {"load": 2, "commit": 1, "acquire": 1, "acknowledge": 1}
    assert await cost(PROMOTE, **told) == (2, first, 1)
    assert await cost(PROMOTE, **told) == (3, {"load": 2, "acquire": 1}, 0)
    reply = await desk.done(PROMOTE, **told)
    assert await cost(DELIVER, receipt_id=reply.receipt_id) == (2, {"effect": 1, "acquire": 1}, 0)


@pytest.mark.memories("postgres", "redis")
async def test_a_tenant_whose_events_hang_holds_up_no_other(desk: Desk) -> None:
    """004-75, 004-78: half of the places are for others; who waits for one is told in time."""
    events, stand = desk.stand.events, desk.stand
    proposals = [await proposed(desk, f"key-{n}", run=f"run-{n}") for n in range(72)]
    events.scripts[desk.project] = hangs
    promoting = [
        asyncio.create_task(
            desk.done(PROMOTE, run=f"run-{n}", proposal_id=each, idempotency_key=f"key-{n}")
        )
        for n, each in enumerate(proposals)
    ]
    await attempted(desk, 64)
    neighbour = Desk(stand, desk.channel, stand.project())
    other = {"tenant_id": "tenant-b"}
    made = await neighbour.done(PROPOSE, other)
    reply = await neighbour.done(PROMOTE, other, proposal_id=made.proposal.record_id)
    assert reply.delivery.state == DELIVERED
    assert not any(task.done() for task in promoting)
    assert events.counts[desk.project] == 64, "half of the places"
    replies = await asyncio.gather(*promoting)
    assert {each.delivery.code for each in replies} == {"accepted_effect_delivery_timeout"}

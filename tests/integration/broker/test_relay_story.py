"""The whole relay across real processes: the broker, the Events service, and two databases' worth
of schemas. Events forbids, breaks, recovers, is replaced; the fact is made once (A1).
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from grpc import aio

from broker.api.v1 import effect_pb2
from broker.owners.v1 import events_service_pb2, events_service_pb2_grpc
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import bent, granting, projects_grant
from tests.fixtures.broker import Stand
from tests.fixtures.desk import Desk
from tests.fixtures.events_site import EventsSite, site_beside
from tests.fixtures.identity import EVENTS_AUDIENCE
from tests.fixtures.memory import Memory
from tests.fixtures.own_broker import own_broker
from tests.fixtures.postgres import Database
from tests.fixtures.record_calls import (
    DELIVER,
    PENDING,
    PROMOTE,
    PROPOSE,
    Refused,
    request,
    send,
)
from tests.fixtures.stand_records import every_row

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

DELIVERED: Final = effect_pb2.DELIVERY_STATE_DELIVERED
WAITING: Final = effect_pb2.DELIVERY_STATE_PENDING
KNOWLEDGE: Final = owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE
SELECTION: Final = owners.PERMISSION_READ_RUN_SELECTION
WRITE: Final = owners.PERMISSION_WRITE_PROJECTS
APART: Final = ("memory.effects ", "memory.receipts ", "memory.counters ", "events.")
"""Tables that hold no content."""
SECRET: Final = "the-launch-code-is-0000"


@dataclass
class Relay:
    """A broker of its own, the reference Events service behind it, and one project."""

    desk: Desk
    site: EventsSite
    token: str
    events_token: str

    async def call(self, rpc: str, **changes: Any) -> Any:
        """Call with one token for each of the two services; return reply or refusal."""
        stand = self.desk.stand
        says = [
            *stand.metadata(self.token),
            *(
                [("x-events-authorization", f"Bearer {self.events_token}")]
                if rpc in {PROMOTE, DELIVER}
                else []
            ),
        ]
        return await send(self.desk.channel, rpc, request(rpc, self.desk.project, **changes), says)

    async def proposed(self, key: str = "key", **changes: Any) -> str:
        """Make a proposal with a secret in it; return its id."""
        reply = await self.call(
            PROPOSE, idempotency_key=f"p-{key}", content=SECRET, rationale=SECRET, **changes
        )
        assert not isinstance(reply, Refused), reply.info
        record_id: str = reply.proposal.record_id
        return record_id

    def grants(self, *permissions: int) -> None:
        """Let the owner grant only these from now on."""
        self.desk.stand.owner.scripts[self.desk.project] = bent(
            granting(projects_grant(*permissions))
        )


@pytest.fixture
async def relay(
    stand: Stand, postgres_database: Database, own_memory: Memory, tmp_path: Path
) -> AsyncIterator[Relay]:
    """Everything healthy, and nothing accepted yet."""
    with (
        site_beside(stand, tmp_path, postgres_database) as site,
        own_broker(stand, tmp_path, postgres_database, site.into, memory=own_memory) as own,
    ):
        site.start(own.broker.address)
        async with own.channel() as channel:
            yield Relay(
                Desk(own, channel, own.project()),
                site,
                own.identity.token(),
                own.identity.token(aud=EVENTS_AUDIENCE),
            )


async def test_the_long_relay_story(relay: Relay) -> None:
    """004-75..81, A1: forbidden, broken, delivered, replayed, asked directly; one fact for ever."""
    desk, site = relay.desk, relay.site
    proposal = await relay.proposed()
    promotion = {"proposal_id": proposal, "idempotency_key": "key"}

    relay.grants(KNOWLEDGE, SELECTION)  # and not WriteProjects
    first = await relay.call(PROMOTE, **promotion)
    assert (first.delivery.state, first.delivery.code) == (WAITING, "events_forbidden")
    assert await site.counts(desk.project) == {"facts": 0, "inbox": 0, "streams": 0}

    relay.grants(KNOWLEDGE, SELECTION, WRITE)
    await site.break_table("facts", f"broken: {relay.token}")
    second = await relay.call(PROMOTE, **promotion)
    assert second.replayed
    assert (second.delivery.state, second.delivery.code) == (WAITING, "events_unavailable")
    assert await site.counts(desk.project) == {"facts": 0, "inbox": 0, "streams": 0}

    await site.mend()
    site.stop()
    away = await relay.call(PROMOTE, **promotion)
    assert away.delivery.code == "events_transport_unavailable"
    site.start(desk.stand.broker.address)
    third = await until_delivered(relay, promotion)
    assert third.replayed
    assert third.receipt_id == first.receipt_id
    assert third.decision == first.decision
    said = third.delivery.acknowledgement
    assert (said.receipt_id, said.sequence) == (first.receipt_id, 1)
    assert await site.counts(desk.project) == {"facts": 1, "inbox": 1, "streams": 1}

    fourth = await relay.call(PROMOTE, **promotion)
    delivered = await relay.call(DELIVER, receipt_id=first.receipt_id)
    for again in (fourth, delivered):
        assert again.delivery.acknowledgement.SerializeToString() == said.SerializeToString()
    site.stop()
    site.start(desk.stand.broker.address)
    answers = [await admitted(relay, first.receipt_id) for _ in range(2)]
    (fact,) = await site.facts(desk.project)
    assert answers == [fact.acknowledgement] * 2
    direct = events_service_pb2.AdmitAcceptedEffectResponse.FromString(answers[0])
    assert (direct.fact_id, direct.sequence) == (said.fact_id, said.sequence)
    assert await site.counts(desk.project) == {"facts": 1, "inbox": 1, "streams": 1}

    await nothing_told(relay, fact.receipt)


async def nothing_told(relay: Relay, receipt: str) -> None:
    """004-72, 004-76: no token in a row or line, no content in a receipt, effect or line."""
    rows, log = await every_row(relay.desk.stand), relay.desk.stand.broker.log()
    for secret in (relay.token, relay.events_token):
        assert not any(secret in line for line in rows)
        assert secret not in log
    assert any(SECRET in line for line in rows), "the decision itself is kept"
    assert not any(SECRET in line for line in rows if line.startswith(APART))
    assert SECRET not in receipt
    assert SECRET not in log


async def until_delivered(relay: Relay, promotion: dict[str, str]) -> Any:
    """Promote again until the channel to the Events service is there again."""
    async with asyncio.timeout(30):
        while True:
            reply = await relay.call(PROMOTE, **promotion)
            if reply.delivery.state == DELIVERED:
                return reply
            assert reply.delivery.code == "events_transport_unavailable"
            await asyncio.sleep(0.1)


async def admitted(relay: Relay, receipt_id: str) -> bytes:
    """Ask the Events service directly, as the broker does; return its very bytes."""
    credentials = grpc.ssl_channel_credentials(relay.site.ca_file.read_bytes())
    asked = events_service_pb2.AdmitAcceptedEffectRequest(
        receipt_id=receipt_id,
        schema_version=1,
        event_version=1,
        project_id=relay.desk.project,
        run_id="run-a",
    )
    says = [
        ("authorization", f"Bearer {relay.events_token}"),
        ("x-knowledge-authorization", f"Bearer {relay.token}"),
    ]
    async with aio.secure_channel(relay.site.peer.address, credentials) as channel:
        stub = events_service_pb2_grpc.EventsServiceStub(channel)
        answer = await stub.AdmitAcceptedEffect(asked, metadata=says, wait_for_ready=True)
    return answer.SerializeToString()


async def test_what_a_bound_token_promotes_waits(relay: Relay) -> None:
    """004-08, 004-78: it may promote and not write; nothing overtakes; whoever may sees it wait."""
    desk = relay.desk
    bound = {"project_id": desk.project, "run_id": "run-a"}
    first = await relay.proposed("key-1")
    second = await relay.proposed("key-2")
    whole = relay.token, relay.events_token
    relay.token = desk.stand.identity.token(**bound)
    relay.events_token = desk.stand.identity.token(aud=EVENTS_AUDIENCE, **bound)
    relay.grants(KNOWLEDGE, SELECTION)
    one = await relay.call(PROMOTE, proposal_id=first, idempotency_key="key-1")
    assert (one.delivery.state, one.delivery.code) == (WAITING, "events_forbidden")
    relay.token, relay.events_token = whole
    relay.grants(KNOWLEDGE, SELECTION, WRITE)
    two = await relay.call(PROMOTE, proposal_id=second, idempotency_key="key-2")
    assert two.delivery.code == "accepted_effect_delivery_busy"
    waiting = await relay.call(PENDING)
    assert [(each.receipt_id, each.last_delivery_code) for each in waiting.effects] == [
        (one.receipt_id, "events_forbidden"),
        (two.receipt_id, ""),
    ]
    refused = await relay.call(DELIVER, receipt_id=one.receipt_id)
    assert isinstance(refused, Refused), "its bounds are another token's"
    assert refused.reason == "EFFECT_NOT_FOUND"
    assert await relay.site.facts(desk.project) == []


async def test_sixty_four_runs_are_delivered_for_real(relay: Relay) -> None:
    """004-73, 004-80: sixty-four promotions at once, each read back, none waiting for another."""
    desk, runs = relay.desk, [f"run-{n}" for n in range(64)]
    proposals = await asyncio.gather(*(relay.proposed(run, run=run) for run in runs))
    replies = await asyncio.gather(
        *(
            relay.call(PROMOTE, run=run, proposal_id=proposal, idempotency_key=run)
            for run, proposal in zip(runs, proposals, strict=True)
        )
    )
    assert [reply for reply in replies if isinstance(reply, Refused)] == []
    codes = {reply.delivery.code for reply in replies}
    assert codes == {""}, codes
    facts = await relay.site.facts(desk.project)
    assert [fact.sequence for fact in facts] == [*range(1, 65)]
    assert {fact.receipt_id for fact in facts} == {reply.receipt_id for reply in replies}


async def test_a_drain_lets_what_runs_be_read_back(relay: Relay) -> None:
    """004-80, 004-101: what was promoted when the end came is delivered before it."""
    desk, runs = relay.desk, [f"run-{n}" for n in range(24)]
    proposals = await asyncio.gather(*(relay.proposed(run, run=run) for run in runs))
    promoting = [
        asyncio.create_task(relay.call(PROMOTE, run=run, proposal_id=proposal, idempotency_key=run))
        for run, proposal in zip(runs, proposals, strict=True)
    ]
    async with asyncio.timeout(30):
        while not await relay.site.facts(desk.project):
            continue
    stopping = asyncio.create_task(asyncio.to_thread(desk.stand.broker.stop))
    replies = await asyncio.gather(*promoting)
    assert await stopping == 0
    told = [reply for reply in replies if not isinstance(reply, Refused)]
    assert len(told) > 1
    assert {reply.delivery.code for reply in told} == {""}
    assert {reply.code for reply in replies if isinstance(reply, Refused)} <= {"UNAVAILABLE"}

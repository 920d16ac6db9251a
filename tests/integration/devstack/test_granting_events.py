"""The scriptable Events service does what tests of the relay build on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest
import trustme
from grpc import aio

from broker.outbound import PeerSettings, open_channel
from broker.owners.v1 import events_service_pb2 as pb
from broker.owners.v1 import events_service_pb2_grpc as pb_grpc
from tests.fixtures.broker import server_credentials
from tests.fixtures.events_calls import admission
from tests.fixtures.granting_events import (
    EventsThread,
    GrantingEvents,
    Script,
    acknowledges,
    admits_and_hangs,
    closes,
    gives,
    hangs,
    in_turn,
    refuses,
)
from tests.fixtures.receipt_broker import PROJECT

DENIED = grpc.StatusCode.PERMISSION_DENIED
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GrantingEvents, Path]]:
    authority, events = trustme.CA(), GrantingEvents()
    ca_file = tmp_path_factory.mktemp("events") / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    thread = EventsThread(events, server_credentials(authority))
    yield events, ca_file
    thread.stop()


@pytest.fixture
def events(place: tuple[GrantingEvents, Path]) -> GrantingEvents:
    events, _ = place
    for kept in (events.scripts, events.attempts, events.facts):
        kept.clear()
    return events


@pytest.fixture
async def channel(
    events: GrantingEvents, place: tuple[GrantingEvents, Path]
) -> AsyncIterator[aio.Channel]:
    peer = PeerSettings(address=f"localhost:{events.port}", root_ca_file=place[1])
    async with open_channel(peer) as opened:
        yield opened


async def admit(
    channel: aio.Channel, receipt_id: str = "receipt-1", timeout: float = 10
) -> pb.AdmitAcceptedEffectResponse:
    stub = pb_grpc.EventsServiceStub(channel)
    metadata = (("authorization", "Bearer x"), ("x-tenant", "tenant-a"))
    return await stub.AdmitAcceptedEffect(
        admission(receipt_id), metadata=metadata, timeout=timeout, wait_for_ready=True
    )


async def test_by_default_every_effect_becomes_the_next_fact(
    events: GrantingEvents, channel: aio.Channel
) -> None:
    first, second, again = [await admit(channel, each) for each in ("a", "b", "a")]
    assert (first.sequence, second.sequence) == (1, 2)
    assert first == again
    assert events.counts[PROJECT] == 3
    assert [each.number for each in events.attempts[PROJECT]] == [1, 2, 3]
    assert events.attempts[PROJECT][0].values("x-tenant") == ["tenant-a"]


async def test_fields_of_an_acknowledgement_can_be_wrong(
    events: GrantingEvents, channel: aio.Channel
) -> None:
    events.scripts[PROJECT] = in_turn(acknowledges(sequence=0, fact_id=""), gives(b""))
    wrong = await admit(channel)
    assert (wrong.sequence, wrong.fact_id, wrong.receipt_id) == (0, "", "receipt-1")
    assert await admit(channel) == pb.AdmitAcceptedEffectResponse()
    assert (await admit(channel)).sequence == 1


@pytest.mark.parametrize(
    ("script", "code", "speaks"),
    [
        (refuses(DENIED), DENIED, True),
        (refuses(DENIED, ()), DENIED, False),
        (refuses(UNAVAILABLE), UNAVAILABLE, True),
        (closes, UNAVAILABLE, False),
        (hangs, grpc.StatusCode.DEADLINE_EXCEEDED, False),
        (admits_and_hangs, grpc.StatusCode.DEADLINE_EXCEEDED, False),
    ],
    ids=["refusal", "bare refusal", "unavailable", "reset", "silence", "silence after the fact"],
)
async def test_a_failure_is_told_from_a_refusal_by_trailing_metadata(
    events: GrantingEvents, channel: aio.Channel, script: Script, code: object, speaks: bool
) -> None:
    """004-78: an answer of the service itself carries some, a failure of the way carries none."""
    events.scripts[PROJECT] = script
    timeout = 0.3 if code is grpc.StatusCode.DEADLINE_EXCEEDED else 10
    await channel.channel_ready()  # the handshake counts for none of the time
    with pytest.raises(aio.AioRpcError) as failed:
        await admit(channel, timeout=timeout)
    assert failed.value.code() is code
    assert bool(failed.value.trailing_metadata()) is speaks
    assert bool(events.facts[PROJECT]) is (script is admits_and_hangs)

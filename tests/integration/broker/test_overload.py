"""More calls at once than may run and wait: the surplus is told so, the rest is served."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from tests.fixtures.broker import Stand, records
from tests.fixtures.broker_log import quiet
from tests.fixtures.own_broker import SERVING, Gate, gate, health_becomes, own_broker, patient
from tests.fixtures.postgres import Database
from tests.fixtures.record_requests import Refused, create, refused

RUNNING, WAITING = 32, 256
HALF = RUNNING // 2 + WAITING // 2


@pytest.fixture
def own(stand: Stand, postgres_database: Database, tmp_path: Path) -> Iterator[Stand]:
    """A broker whose owner may take as long as a write."""
    with own_broker(stand, tmp_path, postgres_database, patient) as broker, quiet(broker.broker):
        yield broker


class Crowd:
    """Writers of one tenant to a project whose owner is held."""

    def __init__(self, own: Stand, channel: aio.Channel, name: str) -> None:
        self.own, self.channel, self.project = own, channel, own.project()
        self.metadata = own.metadata(own.identity.token(name, tenant=name))
        self.gate: Gate = gate(own, self.project, 1)
        self.sent = 0

    def call(self) -> Any:
        """Send one more write."""
        self.sent += 1
        request = create(self.project, f"key-{self.sent}")
        return records(self.channel).CreateRecord(request, metadata=self.metadata)

    def come(self, count: int) -> list[Any]:
        """Send writes; nothing is waited for."""
        return [asyncio.ensure_future(self.call()) for _ in range(count)]


async def admitted(own: Stand, running: int, waiting: int) -> None:
    """Wait until so many run and wait; the test's own time limit bounds it."""
    while _admitted(own) != (running, waiting):  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.01)


def _admitted(own: Stand) -> tuple[float, float]:
    return (
        own.metric("broker_admission_running"),
        own.metric("broker_admission_queue_length"),
    )


def assert_overloaded(told: Refused) -> None:
    """Require the refusal that clients retry elsewhere or later."""
    assert (told.code, told.reason) == (grpc.StatusCode.UNAVAILABLE, "OVERLOADED")
    assert told.retry
    assert told.pushback is not None and int(told.pushback) > 0


async def test_the_surplus_is_refused_and_the_rest_is_served(own: Stand) -> None:
    """Api 1, admission: 32 run, 256 wait, no tenant has more than half; nothing of it is lost."""
    async with own.channel() as channel:
        first, second, third = (Crowd(own, channel, name) for name in ("one", "two", "three"))
        calls = first.come(HALF)
        await admitted(own, RUNNING // 2, WAITING // 2)
        surplus = [await refused(first.call()) for _ in range(10)]
        assert {told.metadata["limit"] for told in surplus} == {"caller"}
        # Half of the process is left to others.
        calls += second.come(HALF)
        await admitted(own, RUNNING, WAITING)
        surplus += [await refused(crowd.call()) for crowd in (third, second) for _ in range(10)]
        assert {told.metadata["limit"] for told in surplus[10:]} == {"queue"}
        for told in surplus:
            assert_overloaded(told)
        assert own.metric("broker_admission_refusals_total") == len(surplus)
        assert own.owner.counts[third.project] == 0
        await health_becomes(channel, SERVING)  # health waits in no line

        for crowd in (first, second, third):
            crowd.gate.open = True
        replies = await asyncio.gather(*calls)
        assert {reply.replayed for reply in replies} == {False}
        await admitted(own, 0, 0)
        made = await third.call()
        assert not made.replayed
        for crowd in (first, second):
            assert await own.rows("memory.records", crowd.project) == HALF
    await own.memory.check_whole()


async def test_a_tenant_that_waits_does_not_hold_up_others(own: Stand) -> None:
    """Api 1, admission: one tenant's crowd is held for as long as it likes; others are served."""
    async with own.channel() as channel:
        crowd, other = Crowd(own, channel, "one"), Crowd(own, channel, "two")
        calls = crowd.come(HALF)
        await admitted(own, RUNNING // 2, WAITING // 2)
        other.gate.open = True
        for _ in range(20):
            assert not (await other.call()).replayed
        crowd.gate.open = True
        await asyncio.gather(*calls)
        assert other.gate.holding >= 40

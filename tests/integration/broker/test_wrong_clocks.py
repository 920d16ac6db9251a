"""Brokers whose clocks are an hour wrong, on one store: order and leases do not care."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from grpc import StatusCode

from broker.api.v1 import effect_pb2, record_pb2
from tests.fixtures.broker import Stand
from tests.fixtures.desk import Desk
from tests.fixtures.granting_events import hangs, in_turn, refuses
from tests.fixtures.memory import Memory
from tests.fixtures.own_broker import own_broker
from tests.fixtures.postgres import Database
from tests.fixtures.record_calls import (
    DELIVER,
    PENDING,
    PROMOTE,
    PROPOSE,
    UPDATE,
    Metadata,
    Refused,
    request,
    send,
)

HOUR_S: Final = 3_600.0
DELIVERED: Final = effect_pb2.DELIVERY_STATE_DELIVERED
WRONG: Final = """
import broker.cli.operations, broker.wiring
from broker.__main__ import main
from tests.fixtures.process_clock import ProcessClock
ProcessClock("broker", "providers", libraries=False).skew({seconds})
main()
"""


def ahead(seconds: float) -> tuple[str, ...]:
    """Return the command of a broker whose clock is so far ahead."""
    return sys.executable, "-c", WRONG.format(seconds=seconds)


class Pair:
    """Two brokers on one store, an hour ahead and an hour behind, and tokens for both."""

    def __init__(self, early: Desk, late: Desk) -> None:
        self.late, self.early = late, early
        now = int(time.time())
        times: dict[str, Any] = {"iat": now - 2 * HOUR_S, "exp": now + 2 * HOUR_S}
        self._says: Metadata = early.stand.metadata(early.stand.identity.token(**times))

    async def call(self, desk: Desk, rpc: str, **changes: Any) -> Any:
        """Call one of the two; a refusal is a failure."""
        reply = await send(desk.channel, rpc, request(rpc, desk.project, **changes), self._says)
        assert not isinstance(reply, Refused), reply.info
        return reply


@pytest.fixture
async def pair(
    stand: Stand, postgres_database: Database, own_memory: Memory, tmp_path: Path
) -> AsyncIterator[Pair]:
    """Both of them serve one project."""
    project = stand.project()
    serving = partial(own_broker, stand, database=postgres_database, memory=own_memory)
    for name in ("late", "early"):
        (tmp_path / name).mkdir()
    with (
        serving(tmp_path / "late", command=ahead(HOUR_S)) as late,
        serving(tmp_path / "early", command=ahead(-HOUR_S)) as early,
    ):
        async with late.channel() as one, early.channel() as other:
            yield Pair(Desk(early, other, project), Desk(late, one, project))


async def test_revisions_keep_their_order(pair: Pair, own_memory: Memory) -> None:
    """004-52, 004-55: an hour ahead, then an hour behind: later is later, and found first."""
    made = await pair.call(
        pair.late, "CreateRecord", idempotency_key="made", content="written an hour from now"
    )
    record: record_pb2.Record = made.record
    assert record.create_time.seconds > time.time() + HOUR_S / 2, "its clock is wrong"
    for number in range(4):
        desk = (pair.early, pair.late)[number % 2]
        reply = await pair.call(
            desk,
            UPDATE,
            record_id=record.record_id,
            expected_revision=record.revision,
            idempotency_key=f"update-{number}",
            content=f"update {number}",
        )
        before = record.update_time.ToMicroseconds()
        record = reply.record
        assert record.update_time.ToMicroseconds() > before
    await own_memory.check_whole()


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_leases_keep_their_time(pair: Pair, stand: Stand) -> None:
    """004-42, 004-74: a lease that one holds is not over for the other, whatever its clock says."""
    project = pair.late.project
    stand.events.scripts[project] = in_turn(hangs)
    for holder, other, number in ((pair.early, pair.late, 1), (pair.late, pair.early, 2)):
        stand.events.attempts[project].clear()
        made = await pair.call(holder, PROPOSE, idempotency_key=f"propose-{number}")
        promoting = asyncio.create_task(
            pair.call(
                holder,
                PROMOTE,
                proposal_id=made.proposal.record_id,
                idempotency_key=f"promote-{number}",
            )
        )
        async with asyncio.timeout(20):
            while not stand.events.counts[project]:  # noqa: ASYNC110 - another thread's
                await asyncio.sleep(0.01)
        (waiting,) = (await pair.call(other, PENDING)).effects
        busy = await pair.call(other, DELIVER, receipt_id=waiting.receipt_id)
        assert busy.delivery.code == "accepted_effect_delivery_busy"
        assert (await promoting).delivery.code == "accepted_effect_delivery_timeout"
        taken = await pair.call(other, DELIVER, receipt_id=waiting.receipt_id)
        assert taken.delivery.state == DELIVERED
        assert taken.delivery.acknowledgement.sequence == number


async def test_effects_keep_their_order(pair: Pair, stand: Stand) -> None:
    """004-73: the stream counts, not the time of acceptance."""
    project = pair.late.project
    stand.events.scripts[project] = refuses(StatusCode.PERMISSION_DENIED)
    receipts = []
    for number, desk in enumerate((pair.late, pair.early, pair.late)):
        made = await pair.call(desk, PROPOSE, idempotency_key=f"propose-{number}")
        promoted = await pair.call(
            desk,
            PROMOTE,
            proposal_id=made.proposal.record_id,
            idempotency_key=f"promote-{number}",
        )
        receipts.append(promoted.receipt_id)
    del stand.events.scripts[project]
    waiting = await pair.call(pair.early, PENDING)
    assert [each.receipt_id for each in waiting.effects] == receipts
    times = [each.accept_time.ToMicroseconds() for each in waiting.effects]
    assert times != sorted(times)
    for number, receipt_id in enumerate(receipts, start=1):
        reply = await pair.call(pair.early, DELIVER, receipt_id=receipt_id)
        assert reply.delivery.acknowledgement.sequence == number

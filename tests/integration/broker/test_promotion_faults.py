"""Promotions that are interrupted: all of one or nothing, and one receipt whatever is retried."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest
from grpc import aio

from broker.api.v1 import effect_pb2, record_pb2
from tests.fixtures.broker import Stand
from tests.fixtures.granting_events import hangs
from tests.fixtures.lossy import (
    NOTHING_WRITTEN,
    UNKNOWN,
    behind,
    cuts,
    far,
    in_front,
    link,
    through,
)
from tests.fixtures.memory import Memory
from tests.fixtures.own_broker import own_broker
from tests.fixtures.postgres import Database
from tests.fixtures.record_calls import PROMOTE, PROPOSE, Refused, request, send
from tests.fixtures.tcp_proxy import TcpProxy

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["behind", "far", "in_front", "link"]

DELIVERED: Final = effect_pb2.DELIVERY_STATE_DELIVERED


async def proposed(
    stand: Stand, channel: aio.Channel, project: str, key: str = "key", **changes: Any
) -> str:
    """Make a proposal; return its id."""
    asked = request(PROPOSE, project, idempotency_key=f"propose-{key}", **changes)
    reply = await send(channel, PROPOSE, asked, stand.metadata())
    assert not isinstance(reply, Refused), reply.info
    proposal: record_pb2.Record = reply.proposal
    return proposal.record_id


async def promote(
    stand: Stand, channel: aio.Channel, project: str, proposal: str, key: str = "key"
) -> Any:
    """Promote once; return reply or refusal."""
    asked = request(PROMOTE, project, proposal_id=proposal, idempotency_key=key)
    return await send(channel, PROMOTE, asked, stand.metadata())


async def settled(
    stand: Stand, channel: aio.Channel, project: str, proposal: str, key: str = "key"
) -> Any:
    """Promote with one key until it is done and delivered."""
    while True:
        reply = await promote(stand, channel, project, proposal, key)
        if isinstance(reply, Refused):
            assert reply.code == "UNAVAILABLE", reply.info
        elif reply.delivery.state == DELIVERED:
            return reply
        elif reply.delivery.code == "accepted_effect_delivery_busy":
            await stand.memory.end_lease(project)
        await asyncio.sleep(0.02)


async def effects(stand: Stand, project: str) -> list[str]:
    """Return what is kept of each effect; it holds the receipt's id."""
    kept = (await stand.memory.stored([project]))[project]
    return [line for line in kept if line.startswith("effects ")]


BROKEN: Final = """
    CREATE OR REPLACE FUNCTION memory.break_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.project_id = '{project}' THEN
            RAISE EXCEPTION 'broken by a test' USING ERRCODE = 'lock_not_available';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER break_{table} BEFORE INSERT OR UPDATE ON memory.{table}
    FOR EACH ROW EXECUTE FUNCTION memory.break_{table}()
"""


@pytest.mark.memories("postgres")
@pytest.mark.parametrize("table", ["records", "revisions", "counters", "effects", "receipts"])
async def test_a_failure_inside_of_the_commit_leaves_nothing(stand: Stand, table: str) -> None:
    """004-71: whatever part cannot be written, the proposal is pending and nothing is added."""
    project = stand.project()
    connection = await asyncpg.connect(stand.database.admin_dsn)
    async with stand.channel() as channel:
        proposal = await proposed(stand, channel, project)
        await connection.execute(BROKEN.format(table=table, project=project))
        try:
            refused = await promote(stand, channel, project, proposal)
        finally:
            await connection.execute(
                f"DROP TRIGGER break_{table} ON memory.{table}; "
                f"DROP FUNCTION memory.break_{table}()"
            )
            await connection.close()
        assert isinstance(refused, Refused)
        assert await effects(stand, project) == []
        assert await stand.rows("memory.revisions", project) == 1
        assert await stand.rows("memory.receipts", project) == 1
        await stand.memory.check_whole()
        reply = await settled(stand, channel, project, proposal)
    assert not reply.replayed
    (kept,) = await effects(stand, project)
    assert reply.receipt_id in kept
    await stand.memory.check_whole()


@pytest.mark.parametrize(("way", "step"), [("requests", 250), ("replies", 17)])
async def test_a_connection_to_the_store_cut_after_any_byte(
    far: Stand, link: TcpProxy, way: str, step: int
) -> None:
    """004-43, 004-71, C16: before, inside of and after the commit; the retry completes it once."""
    project = far.project()
    reasons: Counter[str] = Counter()
    async with far.channel() as channel:
        for number, count in cuts(reasons, step):
            key = f"key-{number}"
            proposal = await proposed(far, channel, project, key)
            link.cut_after(**{way: count})
            first = await promote(far, channel, project, proposal, key)
            link.cut_after()
            again = await settled(far, channel, project, proposal, key)
            if isinstance(first, Refused):
                reasons[first.reason] += 1
                assert first.reason in {*NOTHING_WRITTEN, UNKNOWN}
                assert first.retry
            else:
                reasons[first.delivery.code or "delivered"] += 1
                assert again.replayed
                assert again.receipt_id == first.receipt_id
                assert again.decision == first.decision
    assert reasons[UNKNOWN] > 0 < reasons["PROVIDER_UNAVAILABLE"], reasons
    assert len(await effects(far, project)) == number + 1
    await far.memory.check_whole()


@pytest.mark.parametrize("way", ["requests", "replies"])
async def test_a_reply_lost_on_the_way_to_the_client(
    stand: Stand, in_front: TcpProxy, way: str
) -> None:
    """004-62, 004-71: wherever the client's connection breaks there is one receipt."""
    project = stand.project()
    async with stand.channel() as channel:
        for number, count in enumerate((0, 24, 200, 450, 700, 820, 1000, 1400, 2000)):
            key = f"key-{number}"
            proposal = await proposed(stand, channel, project, key)
            in_front.cut_after(**{way: count})
            async with through(in_front) as lossy:
                first = await promote(stand, lossy, project, proposal, key)
            in_front.heal()
            again = await settled(stand, channel, project, proposal, key)
            if not isinstance(first, Refused):
                assert (again.replayed, again.receipt_id) == (True, first.receipt_id)
    kept = await effects(stand, project)
    assert len(kept) == number + 1
    assert len(stand.events.facts[project]) == number + 1
    await stand.memory.check_whole()


async def test_a_broker_killed_while_it_promotes(
    stand: Stand, postgres_database: Database, own_memory: Memory, tmp_path: Path
) -> None:
    """004-43, 004-71: killed inside of the commit, and again while it delivers; one receipt."""
    project = stand.project()
    with own_broker(stand, tmp_path, postgres_database, memory=own_memory) as own:
        async with own.channel() as channel:
            proposal = await proposed(own, channel, project)
            async with own_memory.held():
                promoting = asyncio.create_task(promote(own, channel, project, proposal))
                await own_memory.blocked()
                own.broker.kill()
                assert isinstance(await promoting, Refused)
        own.broker.start()
        stand.events.scripts[project] = hangs
        async with own.channel() as channel:
            promoting = asyncio.create_task(promote(own, channel, project, proposal))
            while not stand.events.counts[project]:  # noqa: ASYNC110 - another thread's
                await asyncio.sleep(0.01)
            own.broker.kill()
            assert isinstance(await promoting, Refused)
        (kept,) = await effects(own, project)
        await own_memory.check_whole()
        del stand.events.scripts[project]
        own.broker.start()
        async with own.channel() as channel:
            reply = await settled(own, channel, project, proposal)
    assert reply.replayed
    assert reply.receipt_id in kept
    await own_memory.check_whole()

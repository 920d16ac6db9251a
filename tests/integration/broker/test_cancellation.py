"""Callers who leave in the middle of calls, or whose time runs out: nothing half done stays."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from grpc import aio

from tests.fixtures.broker import Stand, records
from tests.fixtures.broker_log import quiet
from tests.fixtures.record_requests import (
    Refused,
    create,
    get,
    new_record,
    outcome,
    refused,
    update,
)

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

CALLS = 200
TENANTS = 4
SEED = random.SystemRandom().randrange(2**32)


async def at_rest(stand: Stand) -> None:
    """Wait until no call runs or waits; the test's own time limit bounds it."""
    while _admitted(stand):  # noqa: ASYNC110 - another process knows nothing of events
        await asyncio.sleep(0.02)


def _admitted(stand: Stand) -> float:
    return stand.metric("broker_admission_running") + stand.metric("broker_admission_queue_length")


async def assert_nothing_half_done(stand: Stand, channel: aio.Channel) -> None:
    """Require whole histories, free slots, no open transaction, and a pool that still lends."""
    await at_rest(stand)
    await stand.memory.idle()
    await stand.memory.check_whole()
    assert stand.metric("broker_calls_in_flight") == 0
    # More calls at once than either pool holds, half of them by runs that have no pin yet.
    project = stand.project()
    made = await asyncio.gather(
        *(
            records(channel).CreateRecord(
                create(project, f"after-{n}", run=f"run-{n % 16}"), metadata=stand.metadata()
            )
            for n in range(32)
        )
    )
    assert {reply.replayed for reply in made} == {False}
    limit = 16 + 4 + 2  # both pools, a negotiation, and the connection that looks
    assert await stand.memory.connections() <= limit + 16


Work = tuple[Callable[..., Any], Any, list[tuple[str, str]]]


async def work_of(stand: Stand, channel: aio.Channel, dice: random.Random) -> list[Work]:
    """Return calls of every kind, by callers of several tenants, on hot and on new records."""
    stub = records(channel)
    tenants = [stand.metadata(stand.identity.token(tenant=f"t-{n}")) for n in range(TENANTS)]
    project = stand.project()
    hot = [
        (await stub.CreateRecord(create(project), metadata=metadata)).record for metadata in tenants
    ]
    work: list[Work] = []
    for number in range(CALLS):
        tenant = number % TENANTS
        record, metadata = hot[tenant], tenants[tenant]
        key = f"key-{number}"
        choices: list[tuple[Callable[..., Any], Any]] = [
            (stub.CreateRecord, create(project, key)),
            (stub.CreateRecord, create(project, key, run=f"run-{number}")),
            (stub.UpdateRecord, update(record, key, expected=dice.randint(1, 3))),
            (stub.GetRecord, get(record)),
        ]
        work.append((*dice.choice(choices), metadata))
    return work


async def settle(work: list[Work]) -> Counter[str]:
    """Retry every call with its key; count what came: each write has one outcome."""
    came: Counter[str] = Counter()
    for method, request, metadata in work:
        reply = await outcome(method(request, metadata=metadata))
        came[reply.reason if isinstance(reply, Refused) else "OK"] += 1
    return came


async def test_two_hundred_clients_that_leave_at_any_point_leave_nothing_half_done(
    stand: Stand,
) -> None:
    """004-52, 004-63: no half-written chain, no open transaction, no slot or connection lost."""
    dice = random.Random(SEED)
    print(f"seed {SEED}")

    async def leave(method: Callable[..., Any], request: Any, metadata: Any) -> None:
        call = method(request, metadata=metadata)
        await asyncio.sleep(dice.uniform(0, 0.4))
        call.cancel()
        try:
            await call
        except (asyncio.CancelledError, aio.AioRpcError):
            return

    with quiet(stand.broker):
        async with stand.channel() as channel:
            work = await work_of(stand, channel, dice)
            await asyncio.gather(*(leave(*each) for each in work))
            await assert_nothing_half_done(stand, channel)
            assert set(await settle(work)) <= {"OK", "REVISION_STALE"}
            await assert_nothing_half_done(stand, channel)


async def test_two_hundred_calls_out_of_time_leave_nothing_half_done(stand: Stand) -> None:
    """004-52, 004-63: deadlines of 1 to 20 ms, and some that end in the middle of a call."""
    dice = random.Random(SEED)
    print(f"seed {SEED}")
    with quiet(stand.broker):
        async with stand.channel() as channel:
            work = await work_of(stand, channel, dice)
            for longest in (0.02, 0.3):
                came = await asyncio.gather(
                    *(
                        outcome(method(request, metadata=m, timeout=dice.uniform(0.001, longest)))
                        for method, request, m in work
                    )
                )
                codes = {reply.code for reply in came if isinstance(reply, Refused)}
                assert codes <= {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.ABORTED}
                assert grpc.StatusCode.DEADLINE_EXCEEDED in codes
                await assert_nothing_half_done(stand, channel)
            assert set(await settle(work)) <= {"OK", "REVISION_STALE"}
            await assert_nothing_half_done(stand, channel)


@pytest.mark.parametrize("leaving", ["cancel", "deadline"])
async def test_a_commit_that_was_sent_runs_to_its_end_without_its_caller(
    stand: Stand, leaving: str
) -> None:
    """004-63: the caller left while the store held the commit; the write and its receipt stand."""

    async def leave(call: Any) -> None:
        if leaving == "cancel":
            call.cancel()
        with pytest.raises((asyncio.CancelledError, aio.AioRpcError)):
            await call

    with quiet(stand.broker):
        async with stand.channel() as channel:
            record = await new_record(stand, channel)
            request = update(record, "key")
            timeout = 1.0 if leaving == "deadline" else None
            async with stand.memory.held():
                call = records(channel).UpdateRecord(
                    request, metadata=stand.metadata(), timeout=timeout
                )
                await stand.memory.blocked()
                await leave(call)
            await at_rest(stand)
            await stand.memory.idle()  # what was sent has been decided by then
            again = await records(channel).UpdateRecord(request, metadata=stand.metadata())
    assert again.record.revision == 2
    if leaving == "cancel":
        assert again.replayed
    await stand.memory.check_whole()


async def test_callers_who_leave_held_commits_keep_their_slots_until_these_end(
    stand: Stand,
) -> None:
    """004-52: nobody has more commits running than calls, and every slot comes back."""
    with quiet(stand.broker):
        async with stand.channel() as channel:
            record = await new_record(stand, channel)
            async with stand.memory.held():
                calls = [
                    records(channel).UpdateRecord(update(record, f"k-{n}"), metadata=m)
                    for n, m in enumerate([stand.metadata()] * 50)
                ]
                await stand.memory.blocked(10)
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
                assert stand.metric("broker_admission_running") > 0
            await at_rest(stand)
            await assert_nothing_half_done(stand, channel)
            head = (await records(channel).GetRecord(get(record), metadata=stand.metadata())).record
    assert head.revision == 2


async def test_a_caller_who_left_is_not_asked_for_again(stand: Stand) -> None:
    """004-15: a call that ended before check ② asked the provider to commit nothing."""
    project = stand.project()
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hang(question: Any, answer: Any, context: Any) -> bytes:
        if question.number == 2:
            loop.call_soon_threadsafe(asked.set)
            await asyncio.Event().wait()
        encoded: bytes = answer.SerializeToString()
        return encoded

    stand.owner.scripts[project] = hang
    before = stand.provider_calls("commit")
    async with stand.channel() as channel:
        call: Awaitable[Any] = records(channel).CreateRecord(
            create(project), metadata=stand.metadata(), timeout=0.5
        )
        waiting = asyncio.create_task(refused(call))
        await asked.wait()
        assert (await waiting).code is grpc.StatusCode.DEADLINE_EXCEEDED
        await at_rest(stand)
        assert stand.provider_calls("commit") == before
        assert await stand.rows("memory.records", project) == 0
        # The pin stands: it is a fact of the run, not of the call.
        made = await records(channel).CreateRecord(create(project), metadata=stand.metadata())
    assert not made.replayed

"""Heavy work takes turns: one thread at a time, within its call's time (004-13, 004-83)."""

import asyncio
import threading

import pytest

from broker.domain.errors import DeadlineExceededError
from broker.services.turns import LONG, Turns, with_room
from tests.unit.services.world import World

WAIT_S = 10.0


class Gate:
    """Work that goes on until it is let go, and counts who is inside."""

    def __init__(self) -> None:
        """Nobody is inside."""
        self.begun, self.go = threading.Event(), threading.Event()
        self.inside = self.most = self.runs = 0

    async def entered(self) -> None:
        """Wait until somebody is inside."""
        assert await asyncio.to_thread(self.begun.wait, WAIT_S)

    def work(self) -> int:
        """Be inside until let go."""
        self.runs += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.begun.set()
        assert self.go.wait(WAIT_S)
        self.inside -= 1
        return self.runs


async def test_one_at_a_time() -> None:
    """16 at once: one thread, and the loop goes on meanwhile."""
    gate, turns, world = Gate(), Turns(), World()
    calls = [asyncio.create_task(turns.run(world.call(), gate.work)) for _ in range(16)]
    await gate.entered()
    await asyncio.sleep(0.02)
    assert gate.runs == 1
    gate.go.set()
    assert sorted(await asyncio.gather(*calls)) == list(range(1, 17))
    assert gate.most == 1


async def test_waiting_is_within_the_deadline() -> None:
    """Who waits too long is told that nothing was written, and takes no turn."""
    gate, turns, world = Gate(), Turns(), World()
    first = asyncio.create_task(turns.run(world.call(), gate.work))
    await gate.entered()
    with pytest.raises(DeadlineExceededError) as refused:
        await turns.run(world.call(0.02), gate.work)
    assert refused.value.metadata == {"outcome": "not_applied"}
    gate.go.set()
    assert await first == 1
    with pytest.raises(DeadlineExceededError):
        await turns.run(world.call(0.0), gate.work)
    assert await turns.run(world.call(), gate.work) == 2


async def test_work_that_took_too_long() -> None:
    """The deadline passed in the thread: the call goes no further."""
    gate, turns, world = Gate(), Turns(), World()
    call = world.call(1.0)
    running = asyncio.create_task(turns.run(call, gate.work))
    await gate.entered()
    while call.remaining() > 0.0:  # noqa: ASYNC110 - nothing tells when time is over
        await asyncio.sleep(0.01)
    gate.go.set()
    with pytest.raises(DeadlineExceededError):
        await running


async def test_a_waiter_that_is_cancelled_leaves() -> None:
    """Its work never runs, and those behind it do."""
    gate, turns, world = Gate(), Turns(), World()
    first, second, third = (
        asyncio.create_task(turns.run(world.call(), gate.work)) for _ in range(3)
    )
    await gate.entered()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.go.set()
    assert list(await asyncio.gather(first, third)) == [1, 2]


async def test_a_runner_that_is_cancelled_keeps_the_turn_until_its_thread_ends() -> None:
    """A thread cannot be stopped; whoever cancels again and again starts no second one."""
    gate, turns, world = Gate(), Turns(), World()
    first = asyncio.create_task(turns.run(world.call(), gate.work))
    await gate.entered()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(turns.run(world.call(), gate.work))
    await asyncio.sleep(0.02)
    assert (gate.runs, gate.inside) == (1, 1)
    gate.go.set()
    assert await second == 2
    assert gate.most == 1


async def test_a_failure_ends_the_turn() -> None:
    """What the work raises is its caller's."""
    turns, world = Turns(), World()

    def fail() -> None:
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            await turns.run(world.call(), fail)


@pytest.mark.parametrize(("size", "aside"), [(LONG, False), (LONG + 1, True)])
async def test_long_texts_are_worked_on_aside(size: int, *, aside: bool) -> None:
    """004-13: the loop is not kept by them, and short ones do not pay for a thread."""
    thread = await with_room(threading.get_ident, size)
    assert (thread != threading.get_ident()) is aside

"""Slots, lines and halves: who runs, who waits, who is refused, and that no place is lost."""

import asyncio
from collections.abc import Hashable

import pytest

from broker.domain.errors import OverloadedError
from broker.server.admission import Admission, Cost, Slot
from tests.unit.server.calls import settle

LIGHT, HEAVY = Cost.LIGHT, Cost.HEAVY


class Crowd:
    """Calls that entered or wait, by number."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.slots: dict[int, Slot] = {}
        self.order: list[int] = []
        self.waiting: dict[int, asyncio.Task[None]] = {}
        self._number = 0

    async def enter(self, caller: Hashable, cost: Cost = LIGHT) -> int:
        """Let a call come in and stand where it comes to stand."""
        self._number += 1
        self.waiting[self._number] = asyncio.create_task(self._stand(self._number, caller, cost))
        await settle()
        return self._number

    async def _stand(self, number: int, caller: Hashable, cost: Cost) -> None:
        self.slots[number] = await self.admission.enter(caller, cost)
        self.order.append(number)

    async def leave(self, number: int) -> None:
        self.slots.pop(number).release()
        await settle()

    async def give_up(self, number: int) -> None:
        self.waiting[number].cancel()
        await settle()


async def test_calls_run_at_once_up_to_the_limit_and_then_first_in_first_out() -> None:
    crowd = Crowd(Admission(running_max=4, queue_max=8))
    numbers = [await crowd.enter(f"caller-{n}") for n in range(8)]
    assert crowd.order == numbers[:4]
    assert (crowd.admission.running, crowd.admission.queued) == (4, 4)
    await crowd.leave(numbers[2])
    await crowd.leave(numbers[0])
    assert crowd.order == numbers[:6]


async def test_a_call_is_refused_only_when_the_queue_is_full() -> None:
    crowd = Crowd(Admission(running_max=2, queue_max=4))
    numbers = [await crowd.enter(f"caller-{n}") for n in range(6)]
    with pytest.raises(OverloadedError) as refused:
        await crowd.admission.enter("another", LIGHT)
    assert refused.value.metadata == {"limit": "queue"}
    await crowd.leave(numbers[0])
    await crowd.enter("another")
    assert crowd.admission.queued == 4


async def test_one_caller_holds_at_most_half_and_holds_up_nobody() -> None:
    crowd = Crowd(Admission(running_max=4, queue_max=8))
    greedy = [await crowd.enter("greedy") for _ in range(6)]
    assert crowd.order == greedy[:2]
    other = await crowd.enter("other")
    assert crowd.order == [*greedy[:2], other]
    await crowd.leave(greedy[0])
    assert crowd.order == [*greedy[:2], other, greedy[2]]


async def test_one_caller_fills_at_most_half_of_the_queue() -> None:
    crowd = Crowd(Admission(running_max=2, queue_max=4))
    for _ in range(3):
        await crowd.enter("greedy")
    with pytest.raises(OverloadedError) as refused:
        await crowd.admission.enter("greedy", LIGHT)
    assert refused.value.metadata == {"limit": "caller"}
    await crowd.enter("other")
    assert crowd.admission.running == 2


async def test_heavy_calls_together_hold_at_most_half() -> None:
    crowd = Crowd(Admission(running_max=4, queue_max=8))
    heavy = [await crowd.enter(f"caller-{n}", HEAVY) for n in range(4)]
    light = await crowd.enter("caller-9", LIGHT)
    assert crowd.order == [*heavy[:2], light]
    await crowd.leave(light)
    assert crowd.order == [*heavy[:2], light]
    await crowd.leave(heavy[1])
    assert crowd.order[-1] == heavy[2]


async def test_giving_up_frees_the_place_and_the_slot_goes_on() -> None:
    crowd = Crowd(Admission(running_max=1, queue_max=4))
    first, second, third = [await crowd.enter(caller) for caller in "abc"]
    await crowd.give_up(second)
    assert crowd.admission.queued == 1
    await crowd.leave(first)
    assert crowd.order == [first, third]


async def test_a_slot_granted_to_a_call_that_gives_up_in_the_same_moment_is_passed_on() -> None:
    crowd = Crowd(Admission(running_max=1, queue_max=4))
    first, second, third = [await crowd.enter(caller) for caller in "abc"]
    crowd.slots.pop(first).release()  # grants it to the second, which has not run yet
    crowd.waiting[second].cancel()
    await settle()
    assert crowd.order == [first, third]


async def test_a_slot_is_not_granted_to_a_call_that_gave_up_a_moment_ago() -> None:
    crowd = Crowd(Admission(running_max=1, queue_max=4))
    first, second, third = [await crowd.enter(caller) for caller in "abc"]
    crowd.waiting[second].cancel()  # its task has not run yet
    crowd.slots.pop(first).release()
    await settle()
    assert crowd.order == [first, third]


async def test_when_the_first_of_a_caller_gives_up_its_second_keeps_its_own_place() -> None:
    crowd = Crowd(Admission(running_max=1, queue_max=8))
    first = await crowd.enter("a")
    gives_up, between, later = [await crowd.enter(caller) for caller in "bcb"]
    await crowd.give_up(gives_up)
    for number in (first, between):
        await crowd.leave(number)
    assert crowd.order == [first, between, later]


async def test_a_caller_that_gave_up_and_comes_back_is_counted_afresh() -> None:
    crowd = Crowd(Admission(running_max=1, queue_max=4))
    first = await crowd.enter("a")
    await crowd.give_up(await crowd.enter("b"))
    again = await crowd.enter("b")
    await crowd.leave(first)
    await crowd.leave(again)
    assert not crowd.admission._callers


async def test_after_closing_calls_in_line_are_served_and_new_ones_are_held_then_refused() -> None:
    crowd = Crowd(Admission(running_max=1, queue_max=4))
    first, second = [await crowd.enter(caller) for caller in "ab"]
    crowd.admission.close()
    held = asyncio.create_task(crowd.admission.enter("c", LIGHT))
    await settle()
    assert not held.done()
    crowd.admission.turn_away()
    with pytest.raises(OverloadedError) as refused:
        await held
    assert refused.value.metadata == {"limit": "draining"}
    await crowd.leave(first)
    assert crowd.order == [first, second]


async def test_a_slot_is_given_back_once() -> None:
    admission = Admission(running_max=2, queue_max=4)
    slot = await admission.enter("a", LIGHT)
    slot.release()
    slot.release()
    assert admission.running == 0


async def test_a_crowd_is_served_in_order_of_arrival_within_each_caller() -> None:
    crowd = Crowd(Admission(running_max=4, queue_max=200))
    arrivals = {await crowd.enter(n % 3): n % 3 for n in range(90)}
    while crowd.slots:
        await crowd.leave(min(crowd.slots))
    for caller in range(3):
        mine = [number for number in crowd.order if arrivals[number] == caller]
        assert mine == sorted(mine)
    assert len(crowd.order) == 90

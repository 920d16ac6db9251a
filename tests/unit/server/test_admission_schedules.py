"""Random schedules of admission: limits hold at every step and no place is lost."""

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.errors import OverloadedError
from broker.server.admission import Admission, Cost, Slot
from tests.unit.server.calls import settle

HEAVY = Cost.HEAVY


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.integers(0, 4), st.sampled_from(Cost)),
        st.tuples(st.just("leave"), st.integers(0, 99), st.booleans()),
        st.tuples(st.just("give up"), st.integers(0, 99), st.booleans()),
    ),
    min_size=30,
    max_size=120,
)


@settings(max_examples=100, deadline=None)
@given(running_max=st.integers(1, 6), queue_max=st.integers(1, 12), steps=STEPS)
def test_any_schedule_keeps_the_limits_and_loses_no_place(
    running_max: int, queue_max: int, steps: list[tuple[str, int, Cost | bool]]
) -> None:
    asyncio.run(Schedule(running_max, queue_max).play(steps))


class Schedule:
    """Plays a schedule, and after every step compares with what must hold."""

    def __init__(self, running_max: int, queue_max: int) -> None:
        self.admission = Admission(running_max=running_max, queue_max=queue_max)
        self.running_max = running_max
        self.half = (running_max + 1) // 2
        self.waiting: dict[asyncio.Task[None], tuple[int, Cost]] = {}
        self.running: list[tuple[int, Cost, Slot]] = []

    async def play(self, steps: list[tuple[str, int, Cost | bool]]) -> None:
        for verb, number, option in steps:
            if isinstance(option, Cost):
                task = asyncio.create_task(self.call(number, option))
                self.waiting[task] = (number, option)
            elif verb == "leave" and self.running:
                self.running.pop(number % len(self.running))[2].release()
            elif verb == "give up" and self.waiting:
                list(self.waiting)[number % len(self.waiting)].cancel()
            if option is not False:  # else the next step comes in the same moment
                await settle()
                self.check()
        await self.finish()

    async def call(self, caller: int, cost: Cost) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            slot = await self.admission.enter(caller, cost)
            self.running.append((caller, cost, slot))
        except OverloadedError:
            pass
        finally:
            del self.waiting[task]

    def check(self) -> None:
        callers = Counter(caller for caller, _, _ in self.running)
        heavy = sum(cost is HEAVY for _, cost, _ in self.running)
        assert len(self.running) == self.admission.running <= self.running_max
        assert len(self.waiting) == self.admission.queued
        assert heavy <= self.half
        assert all(count <= self.half for count in callers.values())
        if len(self.running) < self.running_max:  # then each that waits is held by its own limit
            for caller, cost in self.waiting.values():
                assert callers[caller] == self.half or (cost is HEAVY and heavy == self.half)

    async def finish(self) -> None:
        await settle()
        while self.running:
            self.running.pop()[2].release()
            await settle()
            self.check()
        assert not self.waiting
        assert (self.admission.running, self.admission.queued) == (0, 0)
        assert not self.admission._callers
        assert not self.admission._lanes
        assert not self.admission._ready
        assert not self.admission._parked_heavy

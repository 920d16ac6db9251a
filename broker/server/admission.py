"""How many calls run, how many wait, and in which order.

A process runs a bounded number of calls at once; the rest wait first-in-first-out inside their
deadlines. No caller holds more than half of the running slots and half of the waiting places, and
heavy calls together hold at most half of the running slots: a caller or a class at its limit waits
without holding up those behind it. A call is refused only when no waiting place is left for it: the
queue is full, or the caller's half of it is.
"""

import asyncio
import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from broker.domain.errors import OverloadedError

RUNNING_MAX: Final = 32
QUEUE_MAX: Final = 256


class Cost(Enum):
    """How much of a process one call takes."""

    LIGHT = "light"
    HEAVY = "heavy"


@dataclass(slots=True, eq=False)
class _Caller:
    """One caller's calls. ``parked`` holds its lanes that wait for a slot of its own."""

    running: int = 0
    waiting: int = 0
    parked: list["_Lane"] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Lane:
    """The waiting calls of one caller and cost, oldest first, by arrival number.

    A lane with waiters is listed in exactly one place: the ready heap, its caller's parked lanes,
    or the parked heavy lanes. An empty lane may stay listed until it is looked at.
    """

    key: Hashable
    caller: _Caller
    cost: Cost
    waiters: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    listed: bool = False


class Slot:
    """A running call's place. Give it back exactly when the work is over; twice does no harm."""

    __slots__ = ("_release",)

    def __init__(self, release: Callable[[], None]) -> None:
        """Keep what gives the place back."""
        self._release: Callable[[], None] | None = release

    def release(self) -> None:
        """Give the place to the next call in line."""
        release, self._release = self._release, None
        if release is not None:
            release()


class Admission:
    """Grants slots. Belongs to one event loop; every step costs O(log n) of the waiting callers."""

    def __init__(self, *, running_max: int = RUNNING_MAX, queue_max: int = QUEUE_MAX) -> None:
        """Set the limits; halves are rounded up so that a limit of 1 admits one call."""
        self._running_max = running_max
        self._queue_max = queue_max
        self._running_half = (running_max + 1) // 2
        self._queue_half = (queue_max + 1) // 2
        self.running = 0
        self.queued = 0
        self._heavy = 0
        self._arrivals = 0
        self._callers: dict[Hashable, _Caller] = {}
        self._lanes: dict[tuple[Hashable, Cost], _Lane] = {}
        self._ready: list[tuple[int, _Lane]] = []
        self._parked_heavy: list[_Lane] = []
        self._closed = False
        self._turning_away = asyncio.Event()

    def close(self) -> None:
        """Take no new calls. They are held until ``turn_away``; calls in line are still served."""
        self._closed = True

    def turn_away(self) -> None:
        """Refuse the calls held since ``close``, and all that still come."""
        self._turning_away.set()

    async def enter(self, key: Hashable, cost: Cost) -> Slot:
        """Return a slot for a call of the caller ``key``, at once or after waiting in line.

        Cancelling the wait frees the place.

        Raises:
            OverloadedError: no waiting place is left, or the process drains; nothing was done.
            Retryable.
        """
        if self._closed:
            await self._turning_away.wait()
            raise OverloadedError(
                "this process is going away; nothing was done", metadata={"limit": "draining"}
            )
        caller = self._callers.get(key)
        if caller is None:
            caller = self._callers[key] = _Caller()
        if self.running < self._running_max and self._may_run(caller, cost):
            self._start(caller, cost)
        else:
            await self._wait(key, caller, cost)
        return Slot(lambda: self._finish(key, caller, cost))

    async def take(self, whose: Hashable) -> Slot:
        """Return a slot for light work of ``whose``; see ``enter``."""
        return await self.enter(whose, Cost.LIGHT)

    def _may_run(self, caller: _Caller, cost: Cost) -> bool:
        light = cost is Cost.LIGHT or self._heavy < self._running_half
        return light and caller.running < self._running_half

    def _start(self, caller: _Caller, cost: Cost) -> None:
        self.running += 1
        caller.running += 1
        self._heavy += cost is Cost.HEAVY

    async def _wait(self, key: Hashable, caller: _Caller, cost: Cost) -> None:
        self._refuse_when_full(key, caller)
        self._arrivals += 1
        arrival = self._arrivals
        lane = self._lanes.get((key, cost))
        if lane is None or lane.caller is not caller:
            lane = self._lanes[(key, cost)] = _Lane(key, caller, cost)
        granted = lane.waiters[arrival] = asyncio.get_running_loop().create_future()
        self.queued += 1
        caller.waiting += 1
        self._list(lane)
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # granted in the same moment: pass it on
                self._finish(key, caller, cost)
            elif arrival in lane.waiters:
                self._leave(lane, arrival)
            self._forget_idle(key, caller)
            raise

    def _refuse_when_full(self, key: Hashable, caller: _Caller) -> None:
        full = self.queued >= self._queue_max
        if full or caller.waiting >= self._queue_half:
            self._forget_idle(key, caller)
            raise OverloadedError(
                "too many calls are waiting; nothing was done",
                metadata={"limit": "queue" if full else "caller"},
            )

    def _finish(self, key: Hashable, caller: _Caller, cost: Cost) -> None:
        self.running -= 1
        caller.running -= 1
        unparked, caller.parked = caller.parked, []
        if cost is Cost.HEAVY:
            self._heavy -= 1
            unparked += self._parked_heavy
            self._parked_heavy = []
        for lane in unparked:
            lane.listed = False
            self._list(lane)
        self._dispatch()
        self._forget_idle(key, caller)

    def _dispatch(self) -> None:
        while self.running < self._running_max and self._ready:
            arrival, lane = heapq.heappop(self._ready)
            lane.listed = False
            head = next(iter(lane.waiters), None)
            if head is None:
                self._drop(lane)
            elif head != arrival:  # the one that was its head left
                self._list(lane)
            elif lane.caller.running >= self._running_half:
                lane.listed = True
                lane.caller.parked.append(lane)
            elif not self._may_run(lane.caller, lane.cost):
                lane.listed = True
                self._parked_heavy.append(lane)
            else:
                self._grant(lane, arrival)

    def _grant(self, lane: _Lane, arrival: int) -> None:
        granted = self._leave(lane, arrival)
        if not granted.cancelled():
            self._start(lane.caller, lane.cost)
            granted.set_result(None)
        self._list(lane)

    def _leave(self, lane: _Lane, arrival: int) -> asyncio.Future[None]:
        self.queued -= 1
        lane.caller.waiting -= 1
        return lane.waiters.pop(arrival)

    def _list(self, lane: _Lane) -> None:
        head = next(iter(lane.waiters), None)
        if head is None:
            if not lane.listed:
                self._drop(lane)
        elif not lane.listed:
            lane.listed = True
            heapq.heappush(self._ready, (head, lane))

    def _drop(self, lane: _Lane) -> None:
        if self._lanes.get((lane.key, lane.cost)) is lane:
            del self._lanes[(lane.key, lane.cost)]

    def _forget_idle(self, key: Hashable, caller: _Caller) -> None:
        if not caller.running and not caller.waiting and self._callers.get(key) is caller:
            del self._callers[key]

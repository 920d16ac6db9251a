"""Lets few calls at a time do work that takes much of a process."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final

from broker.domain.call import Call
from broker.domain.errors import DeadlineExceededError

PLACES: Final = 2
PLACES_EACH: Final = 1


class Gate:
    """Few places for all, fewer for each key; the others wait in line (004-69).

    A free place goes to the key that waits longest and may have one more, and to the oldest call of
    that key. A key that got a place goes to the end of the line. Belongs to one event loop.
    """

    def __init__(self, places: int = PLACES, each: int = PLACES_EACH) -> None:
        """Set how many places there are, and how many of them one key may hold."""
        self._free = places
        self._each = each
        self._held: Counter[Hashable] = Counter()
        self._lines: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, key: Hashable, call: Call) -> AsyncIterator[None]:
        """Hold a place, after waiting for it no longer than the call may take.

        A call that is cancelled leaves the line at once.

        Raises:
            DeadlineExceededError: no place became free in time; nothing was done.
        """
        await self._enter(key, call)
        try:
            yield
        finally:
            self._leave(key)

    async def _enter(self, key: Hashable, call: Call) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._lines.setdefault(key, deque()).append(granted)
        self._grant()
        try:
            async with asyncio.timeout_at(call.deadline):
                await granted
        except (TimeoutError, asyncio.CancelledError) as error:
            self._give_up(key, granted)
            if isinstance(error, TimeoutError):
                raise DeadlineExceededError(outcome_unknown=False) from error
            raise

    def _give_up(self, key: Hashable, granted: "asyncio.Future[None]") -> None:
        if not granted.cancelled():  # granted in the same moment: pass it on
            self._leave(key)
            return
        line = self._lines.get(key)
        if line is not None and granted in line:
            line.remove(granted)
            self._back(key, line)

    def _leave(self, key: Hashable) -> None:
        self._free += 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]
        self._grant()

    def _grant(self) -> None:
        """Give free places away."""
        for key in list(self._lines):
            if self._free and self._held[key] < self._each:
                self._take(key)

    def _take(self, key: Hashable) -> None:
        """Give a place to the oldest of a key's line that is still there."""
        line = self._lines.pop(key)
        while line:
            granted = line.popleft()
            if not granted.done():
                self._free -= 1
                self._held[key] += 1
                granted.set_result(None)
                break
        self._back(key, line)

    def _back(self, key: Hashable, line: deque["asyncio.Future[None]"]) -> None:
        """Keep a line where it is, or put it last; one that is empty is forgotten."""
        if line:
            self._lines[key] = line
        else:
            self._lines.pop(key, None)

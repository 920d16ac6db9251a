"""Long work in short turns of the event loop."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

PIECE: Final = 50
"""So many things are worked on in one turn."""

Given = TypeVar("Given")
Made = TypeVar("Made")


class Pace:
    """Works on many things in pieces, and on one piece in a turn, whoever else waits (004-69).

    Calls that share a pace take turns, first come, first served, so that a short one ends soon
    beside a long one. Belongs to one event loop.
    """

    def __init__(self) -> None:
        """Start with nobody at work."""
        self._turn = asyncio.Lock()

    async def each(self, work: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
        """Return what ``work`` makes of each, in order; what it raises ends the rest."""
        made: list[Made] = []
        for start in range(0, len(given), PIECE):
            async with self._turn:
                made += map(work, given[start : start + PIECE])
                await asyncio.sleep(0)
        return made

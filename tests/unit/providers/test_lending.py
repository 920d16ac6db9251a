"""The pool: bounded, in order, and nothing lost, whoever leaves when."""

import asyncio
from itertools import count

import pytest

from providers.errors import ProviderClosedError
from providers.lending import Lender

WAIT_S = 10.0


class Ends:
    """Opens numbers as connections, and lets go of them when it is told."""

    def __init__(self, *, most: int = 2, ready: int = 1) -> None:
        """Open nothing yet."""
        self.numbers = count(1)
        self.spoilt: set[int] = set()
        self.failing = False
        self.gone = asyncio.Event()
        self.leaving: list[int] = []
        self.lender: Lender[int] = Lender(
            most=most,
            ready=ready,
            connect=self._connect,
            is_sound=self._is_sound,
            leave=self._leave,
        )

    async def _connect(self) -> int:
        await asyncio.sleep(0)
        if self.failing:
            raise OSError("refused")
        return next(self.numbers)

    async def _is_sound(self, link: int) -> bool:
        return link not in self.spoilt

    def _leave(self, link: int) -> "asyncio.Task[None]":
        async def leave() -> None:
            await self.gone.wait()

        self.leaving.append(link)
        return asyncio.get_running_loop().create_task(leave())


async def test_what_is_dropped_keeps_its_place_until_it_is_gone() -> None:
    """G-8: there are never more connections than were asked for, those that end included."""
    ends = Ends(most=1)
    ends.lender.drop(await ends.lender.take())
    waiting = asyncio.ensure_future(ends.lender.take())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    ends.gone.set()
    assert await asyncio.wait_for(waiting, WAIT_S) == 2


async def test_what_is_given_back_is_lent_again() -> None:
    """G-8: the newest first, and none that ended meanwhile."""
    ends = Ends()
    first, second = await ends.lender.take(), await ends.lender.take()
    ends.lender.give(first)
    ends.lender.give(second)
    assert await ends.lender.take() == second
    ends.spoilt.add(first)
    assert await ends.lender.take() == 3
    assert ends.leaving == [first]


async def test_who_leaves_takes_no_place_along() -> None:
    """G-8: cancelled while it waits or connects, or failed: all places are there after."""
    ends = Ends(most=2)
    ends.failing = True
    with pytest.raises(OSError, match="refused"):
        await ends.lender.take()
    ends.failing = False
    for _ in range(5):
        late = asyncio.ensure_future(ends.lender.take())
        await asyncio.sleep(0)
        late.cancel()
        await asyncio.wait({late})
    async with asyncio.timeout(WAIT_S):
        assert len({await ends.lender.take(), await ends.lender.take()}) == 2


async def test_nothing_is_lent_after_the_end() -> None:
    """G-9: who waits is told, what is idle goes, and the end is told when all came back."""
    ends = Ends(most=1)
    link = await ends.lender.take()
    waiting = asyncio.ensure_future(ends.lender.take())
    await asyncio.sleep(0)
    ends.lender.close()
    back = asyncio.ensure_future(ends.lender.returned())
    await asyncio.sleep(0)
    assert not back.done()
    ends.lender.give(link)
    await asyncio.wait_for(back, WAIT_S)
    with pytest.raises(ProviderClosedError):
        await asyncio.wait_for(waiting, WAIT_S)
    assert ends.leaving == [link]


async def test_what_ends_by_itself_keeps_its_connection() -> None:
    """G-8: an answer and a refusal that is known do; whatever else comes costs it."""
    ends = Ends()

    async def raising(error: BaseException | None) -> None:
        async def work(link: int) -> int:
            if error is not None:
                raise error
            return link

        await ends.lender.lend(work, sound_after=(KeyError,))

    await raising(None)
    with pytest.raises(KeyError):
        await raising(KeyError())
    assert (ends.lender.idle, ends.leaving) == ([1], [])
    with pytest.raises(asyncio.CancelledError):
        await raising(asyncio.CancelledError())
    assert (ends.lender.idle, ends.lender.used, ends.leaving) == ([], set(), [1])

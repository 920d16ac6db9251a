"""A pool: opened by the first call, bounded, first come first served, and free of what is in doubt.

It is ours because what drivers bring does more than a call needs: that of redis sends again what
failed, which nothing here may be (C-9), and that of asyncpg costs as much as a statement.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from providers.errors import ProviderClosedError

Link = TypeVar("Link")
Answer = TypeVar("Answer")


class Lender(Generic[Link]):
    """Lends connections to one call each."""

    def __init__(
        self,
        *,
        most: int,
        ready: int,
        connect: Callable[[], Awaitable[Link]],
        is_sound: Callable[[Link], Awaitable[bool]],
        leave: Callable[[Link], "asyncio.Future[None]"],
    ) -> None:
        """Keep what is needed to connect; nothing is opened.

        Args:
            most: How many there are at most.
            ready: How many the first call opens.
            connect: Opens one that is ready for calls.
            is_sound: Tells whether one that was idle is still good.
            leave: Lets go of one, and gives what ends when it is gone. One that was in use keeps
                its place until then, so that there are never more than ``most``.
        """
        self._places = asyncio.Semaphore(most)
        self._ready = ready
        self._connect = connect
        self._is_sound = is_sound
        self._leave = leave
        self._opening = asyncio.Lock()
        self._opened = False
        self._returned = asyncio.Event()
        self.is_closed = False
        self.idle: list[Link] = []
        self.used: set[Link] = set()

    def check_open(self) -> None:
        """Raise ProviderClosedError after ``close`` (G-9)."""
        if self.is_closed:
            raise ProviderClosedError("the provider was closed")

    async def lend(
        self,
        work: Callable[[Link], Awaitable[Answer]],
        *,
        sound_after: tuple[type[Exception], ...],
    ) -> Answer:
        """Run ``work`` on a connection of its own, waiting for one included.

        A call that did not end by itself, by an answer or by one of these errors, costs its
        connection: nothing can be said of its state.

        Raises:
            ProviderClosedError: ``close`` was called. Not retryable.
            Exception: What ``connect`` and ``work`` raise.
        """
        link = await self.take()
        try:
            answer = await work(link)
        except sound_after:
            self.give(link)
            raise
        except BaseException:
            self.drop(link)
            raise
        self.give(link)
        return answer

    async def take(self) -> Link:
        """Return a connection that nobody else uses; ``give`` it back, or ``drop`` it.

        Raises:
            ProviderClosedError: ``close`` was called. Not retryable.
            Exception: What ``connect`` raises.
        """
        await self._places.acquire()
        try:
            self.check_open()
            if not self._opened:
                await self._open_first()
            link = await self._free() or await self._connect()
        except BaseException:
            self._places.release()
            raise
        if self.is_closed:
            self._places.release()
            self._leave(link)
            self.check_open()
        self.used.add(link)
        return link

    def give(self, link: Link) -> None:
        """Take a connection back on which nothing is under way."""
        self._back(link)
        self._places.release()
        self._keep(link)

    def drop(self, link: Link) -> None:
        """Let go of a connection of which nobody knows what is under way."""
        self._back(link)
        self._leave(link).add_done_callback(lambda _: self._places.release())

    def close(self) -> None:
        """Lend no more, and let go of all that nobody uses."""
        self.is_closed = True
        while self.idle:
            self._leave(self.idle.pop())
        if not self.used:
            self._returned.set()

    async def returned(self) -> None:
        """Wait, after ``close``, until all that was lent came back."""
        await self._returned.wait()

    def _back(self, link: Link) -> None:
        self.used.discard(link)
        if self.is_closed and not self.used:
            self._returned.set()

    async def _free(self) -> Link | None:
        """Return an idle connection that is still good."""
        while self.idle:
            link = self.idle.pop()
            if await self._is_sound(link):
                return link
            self._leave(link)
        return None

    async def _open_first(self) -> None:
        """Open as many connections as are to be ready, once; one that opens will do."""
        async with self._opening:
            if self._opened:
                return
            wanted = (self._add() for _ in range(self._ready - len(self.idle)))
            told = await asyncio.gather(*wanted, return_exceptions=True)
            self.check_open()
            if not self.idle:
                raise next(each for each in told if each is not None)
            self._opened = True

    async def _add(self) -> None:
        # At once, so that one that is open is not lost when the caller gives up meanwhile.
        self._keep(await self._connect())

    def _keep(self, link: Link) -> None:
        if self.is_closed:
            self._leave(link)
        else:
            self.idle.append(link)

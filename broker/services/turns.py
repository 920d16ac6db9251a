"""Work that keeps a core busy, in a thread, so that the calls of a process go on meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from broker.domain.call import Call
from broker.domain.errors import DeadlineExceededError

T = TypeVar("T")

LONG: Final = 8_192
"""Code points whose terms take some 10 ms to tell."""


async def with_room(work: Callable[[], T], size: int) -> T:
    """Do work on so many code points: in a thread where other calls would wait for it."""
    return await asyncio.to_thread(work) if size > LONG else work()


class Turns:
    """Lets one piece of work run at a time, in the order they came, within their calls' time.

    Python runs one thread at a time, so each such thread takes its share from all other calls.
    """

    def __init__(self) -> None:
        """Begin with nothing running."""
        self._turn = asyncio.Lock()

    async def run(self, call: Call, work: Callable[[], T]) -> T:
        """Wait for a turn and run the work; who is cancelled while waiting just leaves.

        Who is cancelled while its work runs leaves as well, but the turn ends with the thread.

        Raises:
            DeadlineExceededError: the call's time ran out; nothing was written by this work.
        """
        try:
            async with asyncio.timeout_at(call.deadline):
                await self._turn.acquire()
        except TimeoutError as error:
            raise DeadlineExceededError(outcome_unknown=False) from error
        if call.remaining() <= 0.0:
            self._turn.release()
            raise DeadlineExceededError(outcome_unknown=False)
        running = asyncio.ensure_future(asyncio.to_thread(work))
        running.add_done_callback(self._ended)
        result = await asyncio.shield(running)
        if call.remaining() <= 0.0:
            raise DeadlineExceededError(outcome_unknown=False)
        return result

    def _ended(self, running: "asyncio.Future[T]") -> None:
        self._turn.release()
        if not running.cancelled():
            running.exception()  # marks it as seen: its caller may have gone away

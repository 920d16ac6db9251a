"""Work that keeps a core busy, in a thread, one piece at a time in a process."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from broker.domain.call import Call
from broker.domain.errors import DeadlineExceededError

T = TypeVar("T")


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

"""Sends the SDK's requests, and lets those be answered whose callers have left meanwhile.

A request that is given up takes its connection with it, and the next one has to open another. Where
that is given up too, while TLS is being agreed on, uvloop tells it as an error of the program.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from azure.core.pipeline.transport import AioHttpTransport

T = TypeVar("T")

_LINGER = 1.0
"""Seconds that a request may still take when nobody waits for it any more."""


class LingeringTransport(AioHttpTransport):  # type: ignore[misc] # the SDK hides its type
    """Gives a request up only where its answer takes long."""

    async def send(self, request: Any, **config: Any) -> Any:
        """See ``AioHttpTransport.send``."""
        return await kept(super().send(request, **config))


async def kept(work: Awaitable[T]) -> T:
    """Return what work comes to; it goes on for a while when it is cancelled."""
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        asyncio.get_running_loop().call_later(_LINGER, working.cancel)
        working.add_done_callback(_heard)
        raise


def _heard(working: "asyncio.Future[Any]") -> None:
    """Take note of an error that nobody waits for."""
    if not working.cancelled():
        working.exception()

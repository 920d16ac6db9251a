"""The sockets of a provider's connections, also of those that nobody uses any more.

A TLS connection whose request was given up says goodbye before it ends, and waits for the service
to answer that. aiohttp has forgotten it by then, and closing a session does not end it.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

_PAUSE = 0.005


class Sockets:
    """Makes sockets, and ends them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: tuple[Any, ...]) -> socket.socket:
        """Return a socket for an address as ``getaddrinfo`` tells it; aiohttp connects it."""
        made = socket.socket(*address[:3])
        made.setblocking(False)
        self._made.add(made)
        return made

    async def end(self) -> None:
        """End all that are open, whatever they wait for, and return when they are closed."""
        for each in self._open():
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        while self._open():  # noqa: ASYNC110 - a socket knows nothing of events
            await asyncio.sleep(_PAUSE)

    def _open(self) -> list[socket.socket]:
        return [each for each in self._made if each.fileno() != -1]

"""What is under way: requests that wait at a gate, and the connections that they came on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web


class Traffic:
    """Counts requests that are not answered, and holds those of one kind while a test wants it."""

    def __init__(self) -> None:
        """Begins with an open gate and no connection."""
        self._kind = ""
        self._gate = asyncio.Event()
        self._gate.set()
        self._running = 0
        self._held = 0
        self._server: web.Server | None = None

    def watch(self, server: web.Server | None) -> None:
        """Looks at the connections of a server from now on."""
        self._server = server

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Counts a request as running."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def passed(self, kind: str) -> None:
        """Waits while requests of this kind are held."""
        gate = self._gate
        if kind != self._kind or gate.is_set():
            return
        self._held += 1
        await gate.wait()
        self._held -= 1

    def hold(self, kind: str) -> None:
        """Shuts the gate for a kind of request, and for no other."""
        self.release()
        self._kind, self._gate = kind, asyncio.Event()

    def release(self) -> None:
        """Opens the gate: those that wait go on, also where their client has gone."""
        self._gate.set()

    def counts(self) -> dict[str, int]:
        """Returns the numbers of open connections, of running requests and of held ones."""
        return {
            "connections": len(self._transports()),
            "running": self._running,
            "held": self._held,
        }

    def disconnect(self) -> None:
        """Resets all connections; what runs is carried out all the same."""
        for transport in self._transports():
            transport.abort()

    def _transports(self) -> list[asyncio.Transport]:
        connections = [] if self._server is None else self._server.connections
        return [each.transport for each in connections if each.transport is not None]

"""A child's end of the line to its supervisor."""

import asyncio
import socket
from collections.abc import Mapping
from typing import Any, Final

from broker.supervision.messages import Lines, encode

_CHUNK_BYTES: Final = 64 * 1024


class NoOrderError(Exception):
    """The supervisor was gone before it said what to do."""


class Lifeline:
    """Brings the order, then what the supervisor says, until the supervisor is gone."""

    def __init__(self, descriptor: int) -> None:
        """Take over the socket this process was started with, and wait for the order.

        Raises:
            NoOrderError: there is nobody who gives one.
        """
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._lines = Lines()
        self._waiting: list[dict[str, Any]] = []
        while not self._waiting:
            received = self._socket.recv(_CHUNK_BYTES)
            if not received:
                raise NoOrderError
            self._waiting.extend(self._lines.feed(received))
        self.order = self._waiting.pop(0)
        self._socket.setblocking(False)
        self._unsent = b""

    def say(self, message: Mapping[str, object]) -> None:
        """Say something, unless the last message was not taken yet: then it is left out."""
        data = self._unsent or encode(message)
        try:
            self._unsent = data[self._socket.send(data) :]
        except OSError:  # not taken now, or nobody is there, which ``heard`` tells
            return

    def close(self) -> None:
        """Let go of the line."""
        self._socket.close()

    async def heard(self) -> list[dict[str, Any]]:
        """Wait for messages; none at all: the supervisor is gone."""
        while not self._waiting:
            try:
                received = await asyncio.get_running_loop().sock_recv(self._socket, _CHUNK_BYTES)
            except OSError:
                return []
            if not received:
                return []
            self._waiting.extend(self._lines.feed(received))
        waiting, self._waiting = self._waiting, []
        return waiting

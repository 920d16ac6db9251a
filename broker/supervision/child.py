"""A process of the supervisor's own, and the line to it."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from broker.supervision.messages import Lines, encode

_CHUNK_BYTES: Final = 64 * 1024
_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Launch:
    """A module to run, and the first message to it. The order may hold secrets: it is sent."""

    module: str
    order: Mapping[str, object]


class Child:
    """One process, from its start on. Its line ends when either side closes it or dies."""

    def __init__(self, launch: Launch) -> None:
        """Start it.

        A fresh interpreter runs ``launch.module``, with the number of its end of the line as the
        only argument. It finds the modules that this process finds, also from another directory.
        One that is frozen when the calling thread ends is thawed, so that it finds its line over.

        Raises:
            OSError: no process can be started.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - an interpreter and a module of ours
                [sys.executable, "-P", "-m", launch.module, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                preexec_fn=_thaw_with_parent,  # noqa: PLW1509 - the supervisor has one thread
            )
        self._line = ours
        self._lines = Lines()
        self._unsent = b""
        self.pid = self._process.pid
        with suppress(OSError):  # it died at once; its end tells
            ours.sendall(encode(launch.order))
        ours.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the child says something."""
        return self._line.fileno()

    def heard(self) -> tuple[list[dict[str, Any]], bool]:
        """Return what the child said since the last time, and whether the line is still there."""
        messages: list[dict[str, Any]] = []
        while True:
            try:
                received = self._line.recv(_CHUNK_BYTES)
            except BlockingIOError:
                return messages, True
            except OSError:
                return messages, False
            if not received:
                return messages, False
            messages.extend(self._lines.feed(received))

    def tell(self, message: Mapping[str, object]) -> None:
        """Send a message, unless the child has not taken the last one yet: then it is left out."""
        data = self._unsent or encode(message)
        with suppress(OSError):
            data = data[self._line.send(data) :]
            self._unsent = data

    def ended(self) -> int | None:
        """Return the exit code, negative for a signal, or ``None`` while it runs."""
        return self._process.poll()

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        self._process.send_signal(number)

    def close(self) -> None:
        """Close our end of the line."""
        self._line.close()


def _thaw_with_parent() -> None:
    """Have the kernel send SIGCONT when the parent dies; it means nothing to a child that runs.

    A parent that is dead by now needs no look: the child will find its line over.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)

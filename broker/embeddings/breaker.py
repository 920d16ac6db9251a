"""Leaves an endpoint alone that fails (000-41)."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

FAILURES_MAX: Final = 2
OPEN_S: Final = 300.0


class Ended(Enum):
    """How a request came out, as far as the breaker cares."""

    ANSWERED = auto()
    """Whatever was said: who answers is there. Refusals (4xx) too."""
    FAILED = auto()
    """The transport failed, time ran out, or the endpoint says that it fails (5xx)."""
    ABANDONED = auto()
    """It was given up for a reason that is not the endpoint's."""


class Breaker:
    """Opens after two failures in a row, for 300 seconds; then lets one request through at a time.

    An answer to that one closes it, a failure opens it again. What began before it opened counts
    neither way.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Be closed. ``monotonic`` gives seconds."""
        self._monotonic = monotonic
        self._failures = 0
        self._openings = 0
        self._open_until: float | None = None
        self._is_trying = False

    def admit(self) -> int | None:
        """Return what to conclude a request with, or ``None``: it must not be sent."""
        if self._open_until is not None:
            if self._is_trying or self._monotonic() < self._open_until:
                return None
            self._is_trying = True
        return self._openings

    def conclude(self, admitted: int, ended: Ended) -> None:
        """Take note of how an admitted request came out; once for each."""
        if admitted != self._openings:
            return
        self._is_trying = False
        if ended is Ended.ANSWERED:
            self._failures = 0
            self._open_until = None
        elif ended is Ended.FAILED:
            self._failures += 1
            if self._failures >= FAILURES_MAX:
                self._openings += 1
                self._open_until = self._monotonic() + OPEN_S

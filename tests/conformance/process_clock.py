"""The time that some modules see, as it would be on a machine whose clock is wrong.

Timers, which count and do not look at the clock, go on as they are.
"""

import sys
import time
from datetime import datetime, timedelta, tzinfo
from typing import Any

_TIME, _TIME_NS = time.time, time.time_ns


class ProcessClock:
    """Puts another time in place of the right one in all modules of some packages."""

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        self._undo: list[tuple[Any, str, object]] = []

    def skew(self, seconds: float) -> None:
        """Be so far ahead of the right time; below 0 behind it."""
        self.right()
        wrong: dict[Any, object] = {
            datetime: _skewed_datetime(seconds),
            _TIME: lambda: _TIME() + seconds,
            _TIME_NS: lambda: _TIME_NS() + int(seconds * 1e9),
        }
        for module in self._modules():
            for name, value in list(vars(module).items()):
                if callable(value) and value in wrong:
                    self._put(module, name, wrong[value])

    def right(self) -> None:
        """Be right again."""
        while self._undo:
            module, name, value = self._undo.pop()
            setattr(module, name, value)

    def _modules(self) -> list[Any]:
        named = [
            module
            for name, module in sys.modules.items()
            if any(name == each or name.startswith(f"{each}.") for each in self._packages)
        ]
        return [time, *named]

    def _put(self, module: Any, name: str, value: object) -> None:
        self._undo.append((module, name, getattr(module, name)))
        setattr(module, name, value)


def _skewed_datetime(seconds: float) -> type[datetime]:
    class Skewed(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=seconds)

    return Skewed

"""The server's clock, which a test can put wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass
class Clock:
    """Wall-clock time with an error.

    Attributes:
        skew: Seconds that this clock is ahead.
    """

    skew: float = 0.0

    def milliseconds(self) -> int:
        """Milliseconds since 1970."""
        return int((time.time() + self.skew) * 1000)

    def seconds(self) -> int:
        """Whole seconds since 1970, as in ``_ts``."""
        return self.milliseconds() // 1000

"""The place of one child: started, listened to, started again when it dies."""

import signal
from collections.abc import Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger

from broker.supervision.child import Child, Launch
from broker.supervision.messages import REFUSED, SERVES, STATUSES
from broker.telemetry.logs import describe

DELAY_MIN_S: Final = 0.5
DELAY_MAX_S: Final = 30.0
STEADY_S: Final = 60.0
"""A child that served so long starts again with the shortest delay."""
FAILURES_MAX: Final = 5
"""How often in a row a child may end before it serves."""
STALE_S: Final = 10.0
"""What a child said counts for so long. It speaks about every two seconds."""
HUNG_S: Final = 60.0
"""A child that says nothing for so long is killed."""


def delay_s(failures: int) -> float:
    """Return how long to wait before the next start, after so many ends in a row."""
    return min(DELAY_MAX_S, DELAY_MIN_S * 2.0 ** min(10, max(0, failures - 1)))


class Slot:
    """Knows one child and, after its end, when to start the next. Times are monotonic seconds."""

    def __init__(self, number: int | None, launch: Launch, log: FilteringBoundLogger) -> None:
        """Start nothing yet. ``number`` is a worker's; the health process has none."""
        self.number = number
        self.child: Child | None = None
        self.refusal: str | None = None
        """Why the last child must not serve."""
        self.has_served = False
        """Whether any child of this place ever served."""
        self.fruitless = 0
        """How many children in a row ended before they served."""
        self.code: int | None = None
        """How the last child ended."""
        self._launch = launch
        self._log = log
        self._serves = False
        self._statuses: dict[str, bool] = {}
        self._failures = 0
        self._started = 0.0
        self._heard = 0.0
        self._due = 0.0

    def is_due(self, now: float) -> bool:
        """Tell whether a child is missing and may be started."""
        return self.child is None and now >= self._due

    def start(self, now: float) -> Child | None:
        """Start a child; ``None`` where this machine cannot, for now."""
        self._started = self._heard = now
        self._serves, self._statuses, self.refusal = False, {}, None
        try:
            self.child = Child(self._launch)
        except OSError as error:
            self._failed(now)
            self._log.error("process_not_started", worker=self.number, **describe(error))
            return None
        self._log.info("process_started", worker=self.number, child_pid=self.child.pid)
        return self.child

    def listen(self, now: float) -> bool:
        """Take in what the child said; tell whether its line is still there."""
        if self.child is None:
            return False
        messages, there = self.child.heard()
        for message in messages:
            self._heard = now
            if SERVES in message and not self._serves:
                self._serves = self.has_served = True
                self.fruitless = 0
                self._log.info("process_serves", worker=self.number, child_pid=self.child.pid)
            if STATUSES in message:
                self._statuses = message[STATUSES]
            if REFUSED in message:
                self.refusal = str(message[REFUSED])
        return there

    def bury(self, now: float, code: int) -> None:
        """Note the end of the child, and when the next may start."""
        if self.child is None:
            return
        if self._serves and code == 0:
            self._renewed(now)
        else:
            self._failed(now)
        write = self._log.warning if code else self._log.info
        write(
            "process_ended",
            worker=self.number,
            child_pid=self.child.pid,
            exit_code=code,
            reason=self.refusal,
        )
        self.child.close()
        self.code = code
        self.child, self._serves, self._statuses = None, False, {}

    def serves(self, now: float) -> bool:
        """Tell whether the child serves, as far as it told lately."""
        return self._serves and now - self._heard < STALE_S

    def end_if_hung(self, now: float) -> None:
        """Kill a child that has been silent for too long."""
        if self.child is not None and now - self._heard > HUNG_S:
            self._log.error("process_hangs", worker=self.number, child_pid=self.child.pid)
            self.child.send_signal(signal.SIGKILL)
            self._heard = now

    def send_signal(self, number: int) -> None:
        """Send the child a signal, if there is one."""
        if self.child is not None:
            self.child.send_signal(number)

    def pardon(self, now: float) -> None:
        """Forget the silence: it was the listener who was away."""
        self._heard = now

    def statuses(self, now: float) -> Mapping[str, bool]:
        """Return what the child told lately about its health."""
        return self._statuses if self.serves(now) else {}

    def _renewed(self, now: float) -> None:
        """Let the next one start at once: somebody had this one end after it served."""
        self._failures, self._due = 0, now

    def _failed(self, now: float) -> None:
        steady = self._serves and now - self._started >= STEADY_S
        self._failures = 1 if steady else self._failures + 1
        self.fruitless += not self._serves
        self._due = now + delay_s(self._failures)

"""Keeps the workers of one broker running until it is told to stop."""

import selectors
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from structlog.typing import FilteringBoundLogger

from broker.supervision.child import Launch
from broker.supervision.messages import LIVE, READY, STATUSES
from broker.supervision.slot import FAILURES_MAX, Slot

TICK_S: Final = 0.5
CLOSING_S: Final = 5.0
"""What a worker may take after its drain to close everything; then it is killed."""
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
AWAY_S: Final = 5.0
"""A supervisor that could not look for so long holds no silence against its children."""
TIDY: Final = frozenset({0, -signal.SIGTERM})
"""How a child ends when it is told to: after its drain, or before it could serve."""


class CannotServeError(Exception):
    """The workers cannot serve. Says why; the process ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a supervisor does.

    Attributes:
        port: where the workers serve; for the log.
        workers: how to start each worker.
        health: how to start the process that shows health, if any does.
        names: what the health service is asked for, beside ``live``.
        drain_s: how long running calls may take after a stop was asked for.
    """

    port: int
    workers: Sequence[Launch]
    health: Launch | None
    names: Sequence[str]
    drain_s: float


def joined(names: Iterable[str], told: Iterable[Mapping[str, bool]]) -> dict[str, bool]:
    """Return the health of the whole: what at least one worker says."""
    reports = list(told)
    return {name: any(report.get(name, False) for report in reports) for name in names}


class Supervisor:
    """Runs a plan once. Belongs to the main thread."""

    def __init__(self, plan: Plan, log: FilteringBoundLogger) -> None:
        """Start nothing yet."""
        self._plan = plan
        self._log = log
        self._workers = [Slot(number, launch, log) for number, launch in enumerate(plan.workers)]
        self._health = [Slot(None, plan.health, log)] if plan.health else []
        self._selector = selectors.DefaultSelector()
        self._looked = time.monotonic()
        self._stop_asked = False
        self._served = False

    def run(self) -> bool:
        """Serve until SIGTERM or SIGINT, then drain. Tell whether everybody ended by themselves.

        A worker that dies is started again, later each time. One that hangs is killed first. A
        worker that must not serve ends the whole as long as not every worker has served, and
        afterwards where no other worker serves.

        Raises:
            CannotServeError: a worker must not serve, or the workers die before they serve. All
                are stopped.
        """
        with ExitStack() as stack:
            stack.enter_context(self._selector)
            stack.callback(self._close_lines)
            stack.enter_context(self._wakened())
            try:
                while not self._stop_asked:
                    self._look_after()
                    self._wait()
            finally:
                tidy = self._stop()
            return tidy

    # -------------------- serving

    def _look_after(self) -> None:
        now = time.monotonic()
        away, self._looked = now - self._looked > AWAY_S, now
        for slot in (*self._health, *self._workers):
            if away:
                slot.pardon(now)
            if self._attend(slot, now):
                self._judge(slot, now)
            slot.end_if_hung(now)
            child = slot.start(now) if slot.is_due(now) else None
            if child is not None:
                self._selector.register(child, selectors.EVENT_READ)
        if not self._served and all(slot.has_served for slot in self._workers):
            self._served = True
            self._log.info("serving", port=self._plan.port, workers=len(self._workers))
        self._show(now, stopping=False)

    def _judge(self, slot: Slot, now: float) -> None:
        """Refuse to go on after the end of a child where another start cannot help.

        Raises:
            CannotServeError: see ``run``.
        """
        if self._served and any(other.serves(now) for other in self._workers):
            return
        if slot.refusal is not None:
            raise CannotServeError(slot.refusal)
        if slot.fruitless >= FAILURES_MAX:
            raise CannotServeError("processes end before they serve; their lines tell more")

    def _attend(self, slot: Slot, now: float) -> bool:
        """Take in what a child said, and its end; tell whether it ended."""
        child = slot.child
        if child is None:
            return False
        code = child.ended()  # asked first: what it said before its end is then complete
        if not slot.listen(now):
            with suppress(KeyError):  # its line is over, and would be readable for ever
                self._selector.unregister(child)
        if code is not None:
            with suppress(KeyError):
                self._selector.unregister(child)
            slot.bury(now, code)
        return code is not None

    def _show(self, now: float, *, stopping: bool) -> None:
        """Tell the health process."""
        statuses = joined(self._plan.names, (slot.statuses(now) for slot in self._workers))
        statuses |= {LIVE: True, READY: statuses.get(READY, False) and not stopping}
        for slot in self._health:
            if slot.child is not None:
                slot.child.tell({STATUSES: statuses})

    # -------------------- stopping

    def _stop(self) -> bool:
        """Drain the workers, and kill those that take too long; then end the health process."""
        self._log.info("draining", grace_s=self._plan.drain_s)
        tidy = self._end(self._workers, self._plan.drain_s + CLOSING_S)
        self._end(self._health, CLOSING_S)
        return tidy

    def _end(self, slots: Sequence[Slot], patience_s: float) -> bool:
        """End children, and kill those that take too long. Tell whether all ended tidily."""
        ending = [slot for slot in slots if slot.child is not None]
        for slot in ending:
            slot.send_signal(signal.SIGTERM)
        end = time.monotonic() + patience_s
        while any(slot.child is not None for slot in ending):
            now = time.monotonic()
            for slot in (*self._health, *self._workers):
                self._attend(slot, now)
            if now >= end:
                for slot in ending:
                    slot.send_signal(signal.SIGKILL)
            self._show(now, stopping=True)
            self._wait()
        return all(slot.code in TIDY for slot in ending)

    # -------------------- waiting

    @contextmanager
    def _wakened(self) -> Iterator[None]:
        """Let signals and ends of children wake ``_wait``."""
        wakened, waking = socket.socketpair()
        with wakened, waking:
            wakened.setblocking(False)
            waking.setblocking(False)
            before = {
                number: signal.getsignal(number) for number in (*STOP_SIGNALS, signal.SIGCHLD)
            }
            previous = signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
            for number in STOP_SIGNALS:
                signal.signal(number, self._ask_to_stop)
            signal.signal(signal.SIGCHLD, lambda *_: None)
            self._selector.register(wakened, selectors.EVENT_READ, wakened)
            try:
                yield
            finally:
                signal.set_wakeup_fd(previous)
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _wait(self) -> None:
        """Wait until somebody has something to say, and not longer than a tick."""
        for key, _ in self._selector.select(TICK_S):
            if key.data is not None:
                with suppress(BlockingIOError):
                    key.data.recv(4_096)

    def _ask_to_stop(self, *_: object) -> None:
        self._stop_asked = True

    def _close_lines(self) -> None:
        """Let go of children that are still there; they end by themselves."""
        for slot in (*self._health, *self._workers):
            if slot.child is not None:
                slot.child.close()

"""What a bench measures, and the words for what it finds.

A case is started once, is run in every round with the same number of calls, and is stopped at the
end. Rounds, medians over them and ratios are of ``tests.bench.rounds``.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the peers, which have packages of their own, read this module too
    from broker.devstack.redis import RedisServer
    from tests.fixtures.postgres import PostgresBackend

CONCURRENCY = 16
"""How many calls are under way at once, unless a plan says another number."""

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run of a case took.

    Attributes:
        calls: How many calls were made, all answered as they should be.
        seconds: From before the first was sent until the last was answered.
        latencies: Seconds of each call, sorted. Fewer than calls where a tool tells no more.
        cpu_s: What the measured processes burnt meanwhile; 0.0 where that is not told.
    """

    calls: int
    seconds: float
    latencies: tuple[float, ...] = field(repr=False)
    cpu_s: float = 0.0

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    @property
    def p50_ms(self) -> float:
        """The median latency in milliseconds."""
        return percentile(self.latencies, 50) * 1_000

    @property
    def p99_ms(self) -> float:
        """The latency in milliseconds that one call in a hundred takes longer than."""
        return percentile(self.latencies, 99) * 1_000

    @property
    def slowest_ms(self) -> float:
        """The latency of the slowest call in milliseconds."""
        return percentile(self.latencies, 100) * 1_000

    @property
    def cpu_per_1000(self) -> float:
        """CPU seconds per 1,000 calls, which is milliseconds per call; 0.0 where not told."""
        return self.cpu_s / self.calls * 1_000


class Case(Protocol):
    """Something that is called many times."""

    @property
    def name(self) -> str:
        """What it is called in tables and bars; no other case has it."""
        ...

    async def start(self) -> None:
        """Make ready all that the runs need: servers, connections, data."""
        ...

    async def run(self, concurrency: int, calls: int) -> Sample:
        """Make so many calls, so many at once.

        Raises:
            Exception: A call was not answered as it should be: a bench of failures tells nothing.
        """
        ...

    async def stop(self) -> None:
        """End what was started. Called also where the start failed."""
        ...


@dataclass(frozen=True)
class Plan:
    """One line of the table: a case, and how it is run in each round.

    Attributes:
        case: What is run. Several plans may share one; it is started and stopped once.
        calls: How many calls a round makes of it.
        concurrency: How many at once.
        trips: Round trips to the store for each call, counted elsewhere; None where nobody counts.
    """

    case: Case
    calls: int
    concurrency: int = CONCURRENCY
    trips: float | None = None

    @property
    def label(self) -> str:
        """What the line is called: the case's name, with how many at once unless that is usual."""
        usual = self.concurrency == CONCURRENCY
        return self.case.name if usual else f"{self.case.name}, c={self.concurrency}"


@dataclass(frozen=True)
class Ground:
    """What the cases stand on, one of each for the whole run.

    Attributes:
        postgres: An embedded server of the bench's own on a real disk, with fsync on. Each case
            that wants a database asks it for one of its own.
        redis: A server of the bench's own that speaks TLS and syncs each write.
        directory: Where files may be put; gone at the end.
    """

    postgres: PostgresBackend
    redis: RedisServer
    directory: Path


async def timed(
    calls: int,
    concurrency: int,
    call: Callable[[int], Awaitable[object]],
    pids: Sequence[int] = (),
) -> Sample:
    """Make calls from this process, so many at once, and take the time of each.

    Args:
        calls: How many.
        concurrency: How many workers make them, each one call after the other.
        call: Makes the call of a number, from 0; what it raises ends the run.
        pids: The processes whose CPU time counts.
    """
    latencies: list[float] = []
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            before = time.perf_counter()
            await call(number)
            latencies.append(time.perf_counter() - before)

    gc.collect()
    gc.freeze()  # what was made in advance is not collected again and again meanwhile
    burnt, begin = cpu_seconds(pids), time.perf_counter()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
        seconds = time.perf_counter() - begin
    finally:
        gc.unfreeze()
    return Sample(calls, seconds, tuple(sorted(latencies)), cpu_seconds(pids) - burnt)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return what processes burnt since each began, in user and in system mode."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value that so many percent of sorted ones do not exceed; 0 of none."""
    if not ordered:
        return 0.0
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def median_of(samples: Sequence[Sample], figure: Callable[[Sample], float]) -> float:
    """Return the median over rounds of a figure of each round."""
    return statistics.median(map(figure, samples))


def median_ratio(
    over: Sequence[Sample], under: Sequence[Sample], figure: Callable[[Sample], float]
) -> float:
    """Return the median of the ratios of a figure, each of two samples of the same round."""
    pairs = zip(over, under, strict=True)
    return statistics.median(figure(a) / figure(b) for a, b in pairs)

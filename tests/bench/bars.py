"""What has to hold: figures, each with the least that will do and with what is aimed for.

A figure is made of the samples of cases, by their labels. Where one of them was not run there is
no figure, and nothing to hold.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from tests.bench.cases import Sample, median_of, median_ratio
from tests.bench.rounds import Found
from tests.bench.trips import Trips

Measure = Callable[[Found], float | None]
"""Makes a figure of what was found; None where it lacks something."""
Counts = Mapping[str, Trips]
"""The trips of each call of the broker, by the label of its case."""

RATE: Final[Callable[[Sample], float]] = attrgetter("rate")
P50: Final[Callable[[Sample], float]] = attrgetter("p50_ms")
P99: Final[Callable[[Sample], float]] = attrgetter("p99_ms")
CPU: Final[Callable[[Sample], float]] = attrgetter("cpu_per_1000")


@dataclass(frozen=True)
class Bar:
    """One line of the table of bars.

    Attributes:
        figure: What it is.
        bar: What has to hold.
        goal: What is aimed for; None: nothing beyond the bar.
        measure: Makes the figure.
        at_most: Whether lower is better.
    """

    figure: str
    bar: float
    goal: float | None
    measure: Measure
    at_most: bool = False

    def holds(self, measured: float, limit: float) -> bool:
        """Tell whether a figure is within a limit."""
        return measured <= limit if self.at_most else measured >= limit


def median(label: str, figure: Callable[[Sample], float]) -> Measure:
    """Return what makes a median of one case."""

    def measure(found: Found) -> float | None:
        return median_of(found[label], figure) if label in found else None

    return measure


def ratio(over: str, under: str, figure: Callable[[Sample], float]) -> Measure:
    """Return what makes a median of ratios of two cases, each of the same round."""

    def measure(found: Found) -> float | None:
        if over not in found or under not in found:
            return None
        return median_ratio(found[over], found[under], figure)

    return measure


BARS: Final = (
    Bar("broker CPU ms per write", 2.1, 1.2, median("postgres: create", CPU), at_most=True),
    Bar("broker CPU ms per read", 1.9, 1.0, median("postgres: get", CPU), at_most=True),
    Bar(
        "writes/s ÷ the same commit through asyncpg",
        *(0.11, 0.20),
        ratio("postgres: create", "asyncpg: commit", RATE),
    ),
    Bar(
        "reads/s ÷ the same read through asyncpg",
        *(0.08, 0.15),
        ratio("postgres: get", "asyncpg: read", RATE),
    ),
    Bar(
        "write p99 ÷ raw commit p99",
        *(6.0, 3.0),
        ratio("postgres: create", "asyncpg: commit", P99),
        at_most=True,
    ),
    Bar(
        "creates/s at c=64 ÷ at c=16",
        *(0.9, 1.0),
        ratio("postgres: create, c=64", "postgres: create", RATE),
    ),
    Bar(
        "gets/s at c=64 ÷ at c=16",
        *(0.9, 1.0),
        ratio("postgres: get, c=64", "postgres: get", RATE),
    ),
    Bar(
        "Redis commit at the provider ÷ redis-benchmark EVALSHA",
        *(0.6, 0.8),
        ratio("redis provider: commit", "redis-benchmark: EVALSHA", RATE),
    ),
    Bar(
        "writes/s through gRPC ÷ mem0 in process",
        *(2.0, 5.0),
        ratio("postgres: create", "mem0 in process: add", RATE),
    ),
    Bar(
        "searches/s through gRPC ÷ mem0 in process",
        *(2.0, 5.0),
        ratio("postgres: search", "mem0 in process: search", RATE),
    ),
    Bar(
        "gets/s in process ÷ LangGraph store",
        *(0.5, 1.0),
        ratio("ours in process, owner asked once: get", "LangGraph in process: get", RATE),
    ),
    Bar(
        "searches/s in process ÷ LangGraph store",
        *(1.0, 3.0),
        ratio("ours in process, owner asked once: search", "LangGraph in process: search", RATE),
    ),
    Bar(
        "recall p50 in a scope of 10k ÷ the bare SQL",
        *(1.5, 1.2),
        ratio("postgres: recall", "asyncpg: recall", P50),
        at_most=True,
    ),
)
"""Those that are timed."""


def counted(counts: Counts) -> tuple[Bar, ...]:
    """Return the bars of what is counted: an uncontended write, a read, and the owner."""

    def store(label: str) -> Measure:
        return lambda _: counts[label].store if label in counts else None

    def owner(_: Found) -> float | None:
        return max((each.owner for each in counts.values()), default=None)

    return (
        Bar("store round trips per write", 2, None, store("postgres: update"), at_most=True),
        Bar("store round trips per read", 1, None, store("postgres: get"), at_most=True),
        Bar("store round trips per write, Redis", 2, None, store("redis: update"), at_most=True),
        Bar("store round trips per read, Redis", 1, None, store("redis: get"), at_most=True),
        Bar("owner round trips per call, at most", 2, None, owner, at_most=True),
    )

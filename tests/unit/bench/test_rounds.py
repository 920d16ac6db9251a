"""How samples become figures: medians, ratios of the same round, and bars that hold or not."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.bench.bars import P50, RATE, Bar, counted, median, ratio
from tests.bench.cases import Ground, Plan, Sample, median_ratio, percentile, timed
from tests.bench.plans import plans, sort_of
from tests.bench.report import Report
from tests.bench.rounds import run_rounds
from tests.bench.trips import Trips


def sample(rate: float, latency: float = 0.001) -> Sample:
    """So many calls in one second."""
    return Sample(int(rate), 1.0, (latency,) * int(rate), cpu_s=0.5)


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 50), (99, 99), (100, 100)])
def test_a_percentile_is_a_value_that_was_seen(percent: int, value: int) -> None:
    assert percentile(range(1, 101), percent) == value


@pytest.mark.parametrize(
    ("over", "under"),
    [
        ("postgres: create, c=64", "asyncpg: commit"),
        ("redis provider: commit", "redis-benchmark: EVALSHA"),
        ("postgres: create", "mem0 in process: add"),
        ("ours in process, owner asked once: get", "LangGraph in process: get"),
        ("postgres: get", "asyncpg: read"),
        ("postgres: recall, c=1", "asyncpg: recall"),
    ],
)
def test_what_is_compared_is_run_side_by_side(over: str, under: str) -> None:
    assert sort_of(over) == sort_of(under) != sort_of("postgres: compile 100")


def test_what_is_of_a_sort_follows_each_other() -> None:
    nowhere: Any = None
    listed, _ = plans(Ground(nowhere, nowhere, Path()))
    sorts = [sort_of(plan.label) for plan in listed]
    assert sorts == sorted(sorts)


def test_nothing_has_no_percentile() -> None:
    assert percentile((), 99) == 0.0


def test_a_ratio_takes_both_figures_from_one_round() -> None:
    over, under = [sample(10), sample(40), sample(30)], [sample(100), sample(100), sample(300)]
    # Of the medians, 30 and 100, the ratio would be 0.3.
    assert median_ratio(over, under, RATE) == pytest.approx(0.1)


async def test_a_run_makes_every_call_once() -> None:
    made: list[int] = []

    async def call(number: int) -> None:
        made.append(number)

    found = await timed(10, 3, call)
    assert (sorted(made), found.calls, len(found.latencies)) == (list(range(10)), 10, 10)


async def test_one_call_that_fails_ends_a_run() -> None:
    async def call(number: int) -> None:
        if number == 5:
            raise ValueError

    with pytest.raises(ExceptionGroup):
        await timed(10, 3, call)


@dataclass
class Told:
    """A case that only writes down what is done with it."""

    name: str
    done: list[str] = field(default_factory=list)
    fails: bool = False

    async def start(self) -> None:
        self.done.append(f"start {self.name}")

    async def run(self, concurrency: int, calls: int) -> Sample:
        if self.fails:
            raise RuntimeError
        self.done.append(f"run {self.name} {concurrency} {calls}")
        return sample(calls)

    async def stop(self) -> None:
        self.done.append(f"stop {self.name}")


def silent(_: str) -> None:
    """Tell nobody."""


async def test_rounds_are_interleaved_and_a_shared_case_starts_once() -> None:
    done: list[str] = []
    one, other = Told("one", done), Told("other", done)
    found = await run_rounds([Plan(one, 50), Plan(one, 20, 1), Plan(other, 100)], 2, silent)
    warm = ["run one 16 16", "run one 1 4", "run other 16 20"]
    each = ["run one 16 50", "run one 1 20", "run other 16 100"]
    ends = ["stop other", "stop one"]
    assert done == ["start one", "start other", *warm, *each, *each, *ends]
    assert {label: len(samples) for label, samples in found.items()} == {
        "one": 2,
        "one, c=1": 2,
        "other": 2,
    }


async def test_a_failed_call_stops_what_was_started() -> None:
    done: list[str] = []
    with pytest.raises(RuntimeError):
        await run_rounds([Plan(Told("one", done, fails=True), 50)], 2, silent)
    assert done == ["start one", "stop one"]


async def test_labels_that_meet_are_refused() -> None:
    with pytest.raises(ValueError, match="same label"):
        await run_rounds([Plan(Told("one"), 1), Plan(Told("one"), 2)], 1, silent)


# -------------------- bars

SLOW = Bar("rate", 20, 40, median("case", RATE))
RATIO = Bar("ratio", 2, None, ratio("case", "absent", RATE))
LATENCY = Bar("latency", 5, 2, median("case", P50), at_most=True)


def report(bars: Sequence[Bar]) -> Report:
    """One case of thirty calls a second, of a millisecond each."""
    found = {"case": [sample(30), sample(31), sample(29)]}
    return Report(found, {"case": Trips(2, 2)}, bars, ["a tool is not there"], {"cores": 2})


def test_bars_hold_on_their_side() -> None:
    assert report([SLOW, LATENCY]).holds
    assert not report([Bar("rate", 31, None, median("case", RATE))]).holds
    assert not report([Bar("rate", 29, None, median("case", RATE), at_most=True)]).holds


def test_what_was_not_measured_is_not_missed() -> None:
    assert report([RATIO]).holds


def test_counts_are_bars() -> None:
    bars = counted({"postgres: update": Trips(3, 2), "postgres: get": Trips(1, 2)})
    missed = [each.figure for each in bars if not report([each]).holds]
    assert missed == ["store round trips per write"]


def test_a_report_is_told_and_written(tmp_path: Path) -> None:
    made, console = report([SLOW, RATIO]), Console(width=120, record=True, quiet=False)
    made.tell(console)
    said = console.export_text()
    assert "a tool is not there" in said
    assert "ratio" not in said
    made.write(tmp_path / "bench.json")
    kept = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert kept["cases"]["case"]["calls_per_s"] == 30
    assert [bar["holds"] for bar in kept["bars"]] == [True, None]
    assert (kept["bars"][0]["reaches_goal"], kept["cases"]["case"]["store_trips"]) == (False, 2)

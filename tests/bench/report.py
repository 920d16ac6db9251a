"""Tells what was found: the table of cases, the table of bars, and ``bench.json``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.bars import CPU, P50, P99, RATE, Bar, Counts
from tests.bench.cases import Sample, median_of
from tests.bench.machine import ROOT
from tests.bench.rounds import Found

FILE = ROOT / "bench.json"
WIDTH = 130


@dataclass(frozen=True)
class Report:
    """All that one run found.

    Attributes:
        found: The samples of each case.
        counts: The round trips of the broker's calls.
        bars: What has to hold.
        missing: What could not be measured, and why.
        facts: What it was measured on.
    """

    found: Found
    counts: Counts
    bars: Sequence[Bar]
    missing: Sequence[str]
    facts: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        """Whether no bar was missed, of those that were measured."""
        measured = ((bar, bar.measure(self.found)) for bar in self.bars)
        return all(value is None or bar.holds(value, bar.bar) for bar, value in measured)

    def tell(self, console: Console | None = None) -> None:
        """Print both tables."""
        console = console or Console(width=WIDTH)
        if self.found:
            console.print(self._cases())
        for line in self.missing:
            console.print(f"not measured: {line}")
        console.print(self._bars())

    def write(self, file: Path = FILE) -> None:
        """Write all figures, of each round too."""
        content = {
            "facts": self.facts,
            "bars": [self._bar(bar) for bar in self.bars],
            "cases": {label: self._case(label) for label in self.found},
            "missing": list(self.missing),
        }
        text = json.dumps(content, indent=1, ensure_ascii=False)
        file.write_text(text + "\n", encoding="utf-8")

    def _cases(self) -> Table:
        table = Table(title="Medians over rounds; CPU of the serving processes alone")
        table.add_column("case")
        for name in ("calls/s", "p50 ms", "p99 ms", "slowest", "CPU s / 1,000", "store trips"):
            table.add_column(name, justify="right")
        for label, samples in self.found.items():
            told, trips = self._case(label), self.counts.get(label)
            cpu = f"{told['cpu_s_per_1000']:.2f}" if told["cpu_s_per_1000"] else "-"
            table.add_row(
                label,
                f"{told['calls_per_s']:,.0f}",
                f"{told['p50_ms']:.2f}",
                f"{told['p99_ms']:.2f}",
                f"{max(each.slowest_ms for each in samples):.1f}",
                cpu,
                "-" if trips is None else f"{trips.store:g}",
            )
        return table

    def _bars(self) -> Table:
        table = Table(title="Bars")
        table.add_column("figure")
        for name in ("bar", "goal", "measured", "holds", "reaches the goal"):
            table.add_column(name, justify="right")
        for bar in self.bars:
            told, sign = self._bar(bar), "≤" if bar.at_most else "≥"
            goal = "-" if bar.goal is None else f"{sign} {bar.goal:g}"
            if told["measured"] is not None:
                words = [_word(told["holds"]), _word(told["reaches_goal"])]
                limits = (f"{sign} {bar.bar:g}", goal)
                table.add_row(bar.figure, *limits, f"{told['measured']:.3g}", *words)
        return table

    def _case(self, label: str) -> dict[str, Any]:
        samples = self.found[label]
        trips = self.counts.get(label)
        told = {
            "calls_per_s": round(median_of(samples, RATE), 1),
            "p50_ms": round(median_of(samples, P50), 3),
            "p99_ms": round(median_of(samples, P99), 3),
            "cpu_s_per_1000": round(median_of(samples, CPU), 3),
            "rounds": [_round(each) for each in samples],
        }
        if trips is not None:
            told |= {"store_trips": trips.store, "owner_trips": trips.owner}
        return told

    def _bar(self, bar: Bar) -> dict[str, Any]:
        value = bar.measure(self.found)
        limits = {"holds": bar.bar, "reaches_goal": bar.goal}
        return {
            "figure": bar.figure,
            "at_most" if bar.at_most else "at_least": bar.bar,
            "goal": bar.goal,
            "measured": None if value is None else round(value, 4),
            **{
                name: None if value is None or limit is None else bar.holds(value, limit)
                for name, limit in limits.items()
            },
        }


def _round(sample: Sample) -> dict[str, float]:
    return {
        "calls": sample.calls,
        "seconds": round(sample.seconds, 4),
        "p50_ms": round(sample.p50_ms, 3),
        "p99_ms": round(sample.p99_ms, 3),
        "slowest_ms": round(sample.slowest_ms, 3),
        "cpu_s": round(sample.cpu_s, 3),
    }


def _word(holds: bool | None) -> str:
    return "-" if holds is None else "yes" if holds else "NO"

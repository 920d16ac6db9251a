"""``make mutants``: plants each bug of the table in a copy of the tree and runs its tests.

First all the tests named must pass without a bug. Then each bug must make at least one of its own
fail; an error before or beside a test is no failure. Prints a table, and ends non-zero when a bug
survives or the tests cannot be run. ``ARGS='word word'`` plants only bugs whose names hold a word.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.architecture.sources import ROOT, tracked
from tests.mutants.mutant import Mutant, RottenError
from tests.mutants.table import MUTANTS

TABLE_WIDTH = 130
SECONDS_MAX = 300
# Hypothesis' plugin imports much at the first failure, when what a broken test left behind may be
# collected; CPython 3.11 then cannot go on ("AST constructor recursion depth mismatch").
PYTEST = ("-m", "pytest", "-q", "-o", "junit_family=xunit1", "-p", "no:hypothesispytest")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of tests: how many ran and failed, whether it came to its end, what it printed."""

    tests: int
    failed: int
    sound: bool
    seconds: float
    output: str

    @property
    def passed(self) -> bool:
        """Whether tests ran and none of them failed."""
        return self.sound and self.tests > 0 and self.failed == 0

    @property
    def verdict(self) -> str:
        """What it says about a bug that was planted."""
        if not self.sound:
            return "TESTS BROKEN"
        return f"caught by {self.failed} of {self.tests}" if self.failed else "SURVIVED"


def main(words: Sequence[str]) -> int:
    """Return the exit code: 0 where every bug was caught, 1 where not, 2 where none can be."""
    chosen = [each for each in MUTANTS if not words or any(word in each.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="broker-mutants-") as place:
        tree = Path(place) / "tree"
        # The database server may run under another account, which has to pass through.
        Path(place).chmod(0o711)
        _copy(tree)
        clean = _run(tree, dict.fromkeys(test for each in chosen for test in each.tests))
        if not clean.passed:
            print(clean.output, "the tests do not pass without a bug", sep="\n", file=sys.stderr)
            return 2
        print(f"{clean.tests} tests pass in {clean.seconds:.0f} s without a bug", flush=True)
        try:
            outcomes = [(each, _judge(tree, each)) for each in chosen]
        except RottenError as error:
            print(error, file=sys.stderr)
            return 2
    Console(width=TABLE_WIDTH).print(_table(outcomes))
    escaped = [each for each in outcomes if not (each[1].sound and each[1].failed)]
    for mutant, outcome in escaped:
        print(f"{mutant.name}\n{outcome.output}", file=sys.stderr)
    return 1 if escaped or not outcomes else 0


def _copy(tree: Path) -> None:
    for name in tracked():
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def _judge(tree: Path, mutant: Mutant) -> Outcome:
    """Plant a bug, run its tests, and put the file right again."""
    file = tree / mutant.file
    right = file.read_text(encoding="utf-8")
    try:
        file.write_text(mutant.plant(right), encoding="utf-8")
        return _run(tree, mutant.tests)
    finally:
        file.write_text(right, encoding="utf-8")


def _run(tree: Path, tests: Iterable[str]) -> Outcome:
    """Run tests in a copy of the tree; python looks for modules there first."""
    report = tree / "report.xml"
    report.unlink(missing_ok=True)
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-B", *PYTEST, f"--junit-xml={report}", *tests],
            cwd=tree,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as error:
        return Outcome(0, 0, sound=False, seconds=SECONDS_MAX, output=str(error))
    seconds = time.monotonic() - begun
    if not report.exists():
        return Outcome(0, 0, sound=False, seconds=seconds, output=done.stdout)
    cases = list(ET.parse(report).iter("testcase"))
    failed = sum(case.find("failure") is not None for case in cases)
    sound = not any(case.find("error") is not None for case in cases)
    return Outcome(len(cases), failed, sound=sound, seconds=seconds, output=done.stdout)


def _table(outcomes: list[tuple[Mutant, Outcome]]) -> Table:
    table = Table()
    for name in ("planted bug", "file", "verdict"):
        table.add_column(name)
    table.add_column("seconds", justify="right")
    for mutant, outcome in outcomes:
        table.add_row(mutant.name, mutant.file, outcome.verdict, f"{outcome.seconds:.1f}")
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``make bench``: the broker beside its floors and its peers, in one run.

    python -m tests.bench [--rounds N] [--only WORD...]

Prints what was measured and what has to hold, and writes all of it to ``bench.json``. The exit code
is 1 where a bar is missed. ``--only`` runs the cases whose names hold one of the words, and writes
nothing.
"""

import argparse
import sys
from collections.abc import Sequence

import uvloop

from broker.devstack.provider import Provider
from tests.bench import bars, machine
from tests.bench.cases import Ground
from tests.bench.ground import ground
from tests.bench.plans import plans, wanted
from tests.bench.report import Report
from tests.bench.rounds import ROUNDS, Found, run_rounds, say
from tests.bench.trips import Trips, counted


async def _counts(where: Ground) -> dict[str, Trips]:
    counts = {}
    for provider in (Provider.POSTGRES, Provider.REDIS):
        say(f"counting round trips: {provider}")
        for call, trips in (await counted(where, provider)).items():
            counts[f"{provider}: {call}"] = trips
    return counts


def measured(where: Ground, rounds: int, words: Sequence[str]) -> Report:
    """Measure all, or the cases whose labels hold one of the words."""
    facts, before = machine.facts(where), machine.load()
    listed, missing = plans(where)
    counts = {} if words else uvloop.run(_counts(where))
    found: Found = uvloop.run(run_rounds(wanted(listed, words), rounds))
    return Report(
        found=found,
        counts=counts,
        bars=(*bars.counted(counts), *bars.BARS),
        missing=missing,
        facts={**facts, "rounds": rounds, "load_before": before, "load_after": machine.load()},
    )


def main() -> int:
    """Return the exit code: 0, or 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"by default {ROUNDS}")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds must be 1 or more")
    with ground() as where:
        report = measured(where, given.rounds, given.only)
    report.tell()
    if not given.only:
        report.write()
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())

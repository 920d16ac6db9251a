"""``make bench-long``: what growth costs, how rows are found among many, and whether memory leaks.

    python -m tests.bench.long [--rounds N] [--sizes N...] [--calls N] [--only growth leaks]

Prints what was measured and what has to hold, and writes all of it to ``bench-long.json``. The exit
code is 1 where a bar is missed. ``--only`` leaves the other part out, and writes nothing.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import uvloop

from tests.bench import leaks, machine
from tests.bench.bars import Bar
from tests.bench.cases import Ground
from tests.bench.ground import ground
from tests.bench.growth import MANY, SIZES, growth_bars, growth_plans, growths
from tests.bench.report import Report
from tests.bench.rounds import Found, run_rounds, say
from tests.bench.scans import Scan

FILE = machine.ROOT / "bench-long.json"
PARTS = ("growth", "leaks")
ROUNDS = 5

Scans = Mapping[str, Sequence[Scan]]


async def grown(where: Ground, sizes: Sequence[int], rounds: int) -> tuple[Found, Scans]:
    """Measure all sizes; return the samples, and the scans among the most records, by place."""
    listed, looked_at = growths(where, sizes), dict[str, Sequence[Scan]]()
    async with AsyncExitStack() as stack:
        for each in listed:
            say(f"filling: {each.name}")
            stack.push_async_callback(each.stand.stop)
            await each.start()
        for each in listed:
            if each.records == max(sizes):
                looked_at[each.name] = await each.scans()
        found = await run_rounds(growth_plans(listed), rounds)
    return found, looked_at


def main() -> int:
    """Return the exit code: 0, or 1 where a bar is missed."""
    given = _given()
    facts: dict[str, object] = {"rounds": given.rounds, "load_before": machine.load()}
    found: Found = {}
    bars: list[Bar] = []
    with ground() as where:
        facts |= machine.facts(where)
        if "growth" in given.only:
            found, scans = uvloop.run(grown(where, given.sizes, given.rounds))
            walked = sum(bool(each.walked) for listed in scans.values() for each in listed)
            figure = "hot statements that walk through a table"
            bars += [
                *growth_bars(given.sizes),
                Bar(figure, 0, None, lambda _: walked, at_most=True),
            ]
            facts["scans"] = {name: list(map(str, listed)) for name, listed in scans.items()}
            for name, listed in scans.items():
                print(f"Among {name}:", *listed, sep="\n")
        if "leaks" in given.only:
            resident = uvloop.run(leaks.served(where, given.calls, say))
            name = f"memory held after {given.calls:,} calls ÷ after {leaks.SETTLED:,}"
            bars.append(Bar(name, 1.05, None, lambda _: leaks.growth(resident), at_most=True))
            facts["resident"] = {each.calls: each.size for each in resident[:: leaks.AROUND]}
    facts["load_after"] = machine.load()
    report = Report(found=found, counts={}, bars=bars, missing=(), facts=facts)
    report.tell()
    if set(given.only) == set(PARTS):
        report.write(FILE)
    return 0 if report.holds else 1


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-long", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"by default {ROUNDS}")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="RECORDS")
    parser.add_argument("--calls", type=int, default=leaks.CALLS, help="that look for leaks")
    parser.add_argument("--only", nargs="+", default=PARTS, choices=PARTS)
    given = parser.parse_args()
    if given.rounds < 1 or given.calls < 1:
        parser.error("--rounds and --calls must be 1 or more")
    if len(set(given.sizes)) < 2 or any(size % MANY or size < MANY for size in given.sizes):
        parser.error(f"--sizes must be two or more multiples of {MANY}")
    return given


if __name__ == "__main__":
    sys.exit(main())

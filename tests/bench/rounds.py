"""Runs all plans in turn, round by round, so that what the machine does meanwhile meets them alike.

What is told is the median over rounds. A ratio is the median of the ratios of each round: both of
its figures are of the same round, seconds apart. A machine that others share may be half as fast
from one second to the next, so that many short rounds say more than few long ones.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack

from tests.bench.cases import Case, Plan, Sample

ROUNDS = 10
WARM_SHARE = 5
"""The round that warms up makes one call in so many."""

Found = Mapping[str, Sequence[Sample]]
"""The samples of each line, in the order of their rounds."""
Say = Callable[[str], None]


def say(line: str) -> None:
    """Tell whoever waits how far it is."""
    print(line, file=sys.stderr, flush=True)


async def run_rounds(plans: Sequence[Plan], rounds: int, tell: Say = say) -> Found:
    """Start all cases, run each plan once in every round, and stop the cases.

    A round that is not counted comes first: it fills caches and opens connections.

    Raises:
        Exception: A case did not start, or a call failed; all are stopped.
    """
    found: dict[str, list[Sample]] = {plan.label: [] for plan in plans}
    if len(found) < len(plans):
        raise ValueError("two plans have the same label")
    async with AsyncExitStack() as stack:
        for case in _once(plan.case for plan in plans):
            tell(f"starting: {case.name}")
            stack.push_async_callback(case.stop)
            await case.start()
        for plan in plans:
            tell(f"warming up: {plan.label}")
            calls = max(plan.calls // WARM_SHARE, plan.concurrency)
            await plan.case.run(plan.concurrency, calls)
        for number in range(1, rounds + 1):
            begin = time.perf_counter()
            for plan in plans:
                sample = await plan.case.run(plan.concurrency, plan.calls)
                found[plan.label].append(sample)
            tell(f"round {number} of {rounds}: {time.perf_counter() - begin:.0f} s")
    return found


def _once(cases: Iterable[Case]) -> list[Case]:
    """Return each case once, in the order of the plans."""
    return list({id(case): case for case in cases}.values())

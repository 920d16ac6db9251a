"""``make bench``: the broker beside its floors, in one run.

    python -m tests.bench [--rounds N] [--only WORD...]

Prints the table of all cases.
"""

import argparse
import sys
from collections.abc import Sequence

import uvloop

from broker.devstack.provider import Provider
from tests.bench import calls, floors
from tests.bench.calls import BrokerCase
from tests.bench.cases import Ground, Plan
from tests.bench.ground import ground
from tests.bench.rounds import ROUNDS, Found, run_rounds
from tests.bench.stand import BrokerStand


def plans(where: Ground) -> list[Plan]:
    """Return all that is measured."""
    native = BrokerStand(where, Provider.POSTGRES)
    create = BrokerCase("postgres: create", native, calls.CREATE, calls.creates)
    get = BrokerCase("postgres: get", native, calls.GET, calls.gets)
    return [
        Plan(floors.SqlCase("asyncpg: commit", where, floors.commits), 3_000),
        Plan(floors.SqlCase("asyncpg: read", where, floors.loads, filled="read"), 3_000),
        Plan(create, 1_000),
        Plan(get, 1_500),
    ]


def wanted(all_plans: Sequence[Plan], words: Sequence[str]) -> list[Plan]:
    """Return the plans whose labels hold one of the words; all of them where there is none."""
    return [each for each in all_plans if not words or any(word in each.label for word in words)]


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    given = parser.parse_args()
    with ground() as where:
        found: Found = uvloop.run(run_rounds(wanted(plans(where), given.only), given.rounds))
    for label, samples in found.items():
        print(label, *samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())

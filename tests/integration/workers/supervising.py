"""Supervises workers that misbehave: ``python -m tests.integration.workers.supervising MODULE``."""

import sys

from broker.supervision.child import Launch
from broker.supervision.supervisor import CannotServeError, Plan, Supervisor
from broker.telemetry.logs import configure_logging, logger


def main(module: str) -> int:
    """Run two workers; 0 where everybody ended in time."""
    configure_logging(sys.stdout.buffer)
    plan = Plan(port=1, workers=[Launch(module, {})] * 2, health=None, names=[""], drain_s=0.1)
    try:
        return int(not Supervisor(plan, logger("supervisor")).run())
    except CannotServeError as error:
        sys.stderr.write(f"{error}\n")
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

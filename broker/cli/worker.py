"""A worker process: ``python -m broker.cli.worker DESCRIPTOR``, started by a supervisor."""

import asyncio
import math
import signal
import sys
from contextlib import closing, suppress
from typing import Final

import uvloop

from broker.cli.garbage import settle
from broker.cli.lifeline import Lifeline, NoOrderError
from broker.cli.operations import REFUSALS
from broker.cli.refusals import readable
from broker.config import parse_settings
from broker.readiness import Look
from broker.safety import verify
from broker.server.app import stop_requested
from broker.supervision.messages import READY, REFUSED, SERVES, STATUSES, provider_name
from broker.telemetry.logs import configure_logging, logger
from broker.wiring import Part, serving

ORPHAN_S: Final = 10.0
"""What a worker without a supervisor may take beyond its drain; nobody else would end it."""
CONFIGURATION_CODE: Final = 78


async def work(line: Lifeline) -> None:
    """Serve until a signal comes or the supervisor is gone, then drain."""
    configure_logging()
    settings = parse_settings(line.order["settings"], named="the settings")
    verify(settings, development=False)
    stop = stop_requested()
    following = asyncio.create_task(_follow(line, stop, settings.server.drain_seconds))

    def tell(look: Look) -> None:
        providers = {provider_name(name): there for name, there in look.providers.items()}
        line.say({STATUSES: {READY: look.ready, **providers}})

    part = Part(listen=line.order["listen"], metrics_listen=line.order["metrics_listen"], tell=tell)
    async with serving(settings, part):
        settle()
        line.say({SERVES: True})
        await stop.wait()
    following.cancel()


async def _follow(line: Lifeline, stop: asyncio.Event, drain_s: float) -> None:
    """Stop when the supervisor is gone."""
    while await line.heard():
        continue
    if not stop.is_set():
        logger("worker").error("supervisor_gone")
    signal.alarm(math.ceil(drain_s + ORPHAN_S))
    stop.set()


def main() -> None:
    """Serve, or tell the supervisor why not."""
    with suppress(NoOrderError), closing(Lifeline(int(sys.argv[1]))) as line:
        try:
            uvloop.run(work(line))
        except REFUSALS as error:
            line.say({REFUSED: readable(error)})
            sys.exit(CONFIGURATION_CODE)


if __name__ == "__main__":
    main()

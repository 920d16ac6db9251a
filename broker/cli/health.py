"""The health process: ``python -m broker.cli.health DESCRIPTOR``, started by a supervisor."""

import asyncio
import sys
from contextlib import closing, suppress
from typing import Final

from broker.cli.lifeline import Lifeline, NoOrderError
from broker.server.app import stop_requested
from broker.server.health_port import HealthPort
from broker.supervision.messages import LIVE, REFUSED, SERVES, STATUSES
from broker.telemetry.logs import configure_logging

BEAT_S: Final = 2.0
CONFIGURATION_CODE: Final = 78


async def show(line: Lifeline) -> None:
    """Show what the supervisor says until it is gone or a signal comes."""
    configure_logging()
    stop = stop_requested()
    port = HealthPort(line.order["listen"], [LIVE, *line.order["names"]])
    await port.start()
    tasks = [asyncio.create_task(_follow(line, port, stop)), asyncio.create_task(_beat(line))]
    await stop.wait()
    for task in tasks:
        task.cancel()
    await port.stop()


async def _follow(line: Lifeline, port: HealthPort, stop: asyncio.Event) -> None:
    while messages := await line.heard():
        port.tell(messages[-1][STATUSES])
    stop.set()


async def _beat(line: Lifeline) -> None:
    while True:
        line.say({SERVES: True})
        await asyncio.sleep(BEAT_S)


def main() -> None:
    """Show health, or tell the supervisor why not."""
    with suppress(NoOrderError), closing(Lifeline(int(sys.argv[1]))) as line:
        try:
            asyncio.run(show(line))
        except RuntimeError:
            address = line.order["listen"]
            line.say({REFUSED: f"server.health_listen: {address} cannot be listened on"})
            sys.exit(CONFIGURATION_CODE)


if __name__ == "__main__":
    main()

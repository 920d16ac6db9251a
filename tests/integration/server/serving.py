"""Runs a broker's edge as a process of its own: prints its port, serves until SIGTERM, drains.

``python -m tests.integration.server.serving [--reflect] [--slow]``
"""

import asyncio
import sys
from typing import Any

from broker.domain.call import Call
from broker.domain.errors import StaleRevisionError
from broker.server.admission import Admission
from broker.server.app import EdgeServer, Listener, stop_requested
from broker.server.interceptors import EdgeInterceptor
from broker.server.record_servicer import record_service
from broker.telemetry.logs import configure_logging, logger
from broker.telemetry.metrics import Metrics
from tests.integration.server.edge import StubRecords, StubVerifier

GRACE_S = 20.0


async def main(*options: str) -> None:
    """Serve until asked to stop."""
    configure_logging()
    stop = stop_requested()

    async def work(_call: Call, request: Any) -> None:
        if "--slow" in options:
            print("running", flush=True)
            await stop.wait()  # every call is in flight when the drain begins
            await asyncio.sleep(0.05)
        if getattr(request, "record_id", "") == "stale":
            raise StaleRevisionError(3)

    records = StubRecords(work)
    server = EdgeServer(
        services=[record_service(records.ports())],
        interceptor=EdgeInterceptor(
            verifier=StubVerifier(), admission=Admission(), metrics=Metrics(), log=logger("edge")
        ),
        listener=Listener(address="127.0.0.1:0"),
        reflect="--reflect" in options,
    )
    print(await server.start(), flush=True)
    server.ready()
    await stop.wait()
    await server.drain(GRACE_S)
    print("drained", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

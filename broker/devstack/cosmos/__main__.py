"""``python -m broker.devstack.cosmos --data DIR --port N``: serves the stand-in until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from broker.devstack.cosmos.server import CosmosServer
from broker.devstack.processes.errors import ServerError

_STOP_SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
_LOOK_FOR_SERVER_S = 1.0


def main() -> int:
    """Serves; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m broker.devstack.cosmos", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="directory for key and data")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    given = parser.parse_args()
    # Blocked, a signal waits until it is looked for.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        with CosmosServer(given.data, given.port) as server:
            print(_for_people(server), flush=True)
            while not signal.sigtimedwait(_STOP_SIGNALS, _LOOK_FOR_SERVER_S):
                server.start()  # it may have died
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _for_people(server: CosmosServer) -> str:
    return (
        "STAND-IN for Azure Cosmos DB, for tests and trials; not the service.\n"
        f"endpoint {server.endpoint}\n"
        f"key      {server.key_file}\n"
        f"CA       {server.ca_file}"
    )


if __name__ == "__main__":
    sys.exit(main())

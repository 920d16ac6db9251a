"""``python -m broker.devstack.cosmos --data DIR --port N``: serves the stand-in until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from broker.devstack.cosmos.standin import process
from broker.devstack.processes.errors import ServerError


def main() -> int:
    """Serves; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m broker.devstack.cosmos", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="directory for key and data")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--owner", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    data = given.data.resolve()

    def announce(line: str) -> None:
        print(line if given.owner else _for_people(data, json.loads(line)["port"]), flush=True)

    try:
        code = process.run(process.Order(data, given.port, given.owner, announce))
    except ServerError as error:
        print(error, file=sys.stderr)
        return process.FAILED
    if code == process.IN_USE:
        print(f"another process serves {data}", file=sys.stderr)
    if code == process.PORT_TAKEN:
        print(f"port {given.port} is taken", file=sys.stderr)
    return code


def _for_people(data: Path, port: int) -> str:
    return (
        "STAND-IN for Azure Cosmos DB, for tests and trials; not the service.\n"
        f"endpoint https://{process.HOST}:{port}/\n"
        f"key      {data}/key\n"
        f"CA       {data}/tls/ca.crt"
    )


if __name__ == "__main__":
    sys.exit(main())

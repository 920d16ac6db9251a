"""``python -m broker.devstack.cosmos.standin DATA PORT SOCKET``: what the launcher runs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from broker.devstack.cosmos.standin.process import serve
from broker.devstack.processes.errors import ServerError


def main() -> None:
    """Serves until it is told to stop; says on standard error why it cannot."""
    data, port, control = sys.argv[1:]
    try:
        asyncio.run(serve(Path(data), int(port), Path(control)))
    except ServerError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

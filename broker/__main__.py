"""Parse, run."""

import os
from typing import Final

from broker.cli.app import app

ONE_POLLER: Final = "-event_engine_client,-event_engine_listener"
"""Has gRPC read its sockets in the one thread that tells the event loop.

Otherwise a pool of threads does, which are woken nine times for a GetRecord: a sixth of its CPU
time. A version of gRPC that has no such choice says so in a line on standard error.
"""


def main() -> None:
    """Run the command line.

    gRPC's core writes lines of its own to standard error, such as one for each failed handshake,
    which are no JSON; it stays silent unless the operator set ``GRPC_VERBOSITY``. How it polls is
    the operator's to choose as well, by ``GRPC_EXPERIMENTS``. It reads both when it is imported,
    which a command does later, and child processes inherit them.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault("GRPC_EXPERIMENTS", ONE_POLLER)
    app()


if __name__ == "__main__":
    main()

"""Parse, run."""

import os

from broker.cli.app import app


def main() -> None:
    """Run the command line.

    gRPC's core writes lines of its own to standard error, such as one for each failed handshake,
    which are no JSON; it stays silent unless the operator set ``GRPC_VERBOSITY``. It reads that
    when it is imported, which a command does later, and child processes inherit it.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    app()


if __name__ == "__main__":
    main()

"""What can go wrong with a private PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

LOG_LINES = 15


class PostgresError(Exception):
    """The server, or a command sent to it, failed."""


class PostgresStartError(PostgresError):
    """The server could not be started."""


class PostgresInUseError(PostgresStartError):
    """Another launcher, or a server nobody here started, holds the data directory.

    Attributes:
        pid: The process that stands in the way, where it is known.
    """

    def __init__(self, message: str, pid: int | None = None) -> None:
        """Keeps the process id beside the message."""
        super().__init__(message)
        self.pid = pid


def with_log(message: str, log: Path) -> str:
    """Adds the last lines of a server log to a message."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    except OSError as error:
        lines = [f"(unreadable: {error})"]
    return "\n  ".join([f"{message}; last lines of {log}:", *(lines or ["(empty)"])])

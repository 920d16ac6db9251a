"""What can go wrong with a private server."""

from __future__ import annotations


class ServerError(Exception):
    """The server, or a command sent to it, failed."""


class ServerStartError(ServerError):
    """The server could not be started."""


class ServerInUseError(ServerStartError):
    """Another launcher, or a server nobody here started, holds the data directory.

    Attributes:
        pid: The process that stands in the way, where it is known.
    """

    def __init__(self, message: str, pid: int | None = None) -> None:
        """Keeps the process id beside the message."""
        super().__init__(message)
        self.pid = pid

"""What can go wrong with the stand-in for Cosmos DB, seen from outside."""

from __future__ import annotations

from pathlib import Path

LOG_LINES = 15


class CosmosError(Exception):
    """The stand-in, or an order given to it, failed."""


class CosmosStartError(CosmosError):
    """The stand-in could not be started."""


class CosmosInUseError(CosmosStartError):
    """Another process serves the data directory."""


def with_log(message: str, log: Path) -> str:
    """Adds the last lines of the stand-in's log to a message."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    except OSError as error:
        lines = [f"(unreadable: {error})"]
    return "\n  ".join([f"{message}; last lines of {log}:", *(lines or ["(empty)"])])

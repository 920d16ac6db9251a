"""The log of a private server."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LINES = 15


def open_log(log: Path) -> int:
    """Starts a new log and returns its file descriptor; the one before has ``.old`` added."""
    with suppress(FileNotFoundError):
        log.rename(log.with_suffix(".log.old"))
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)


def with_log(message: str, log: Path) -> str:
    """Adds the last lines of a server log to a message."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]
    except OSError as error:
        lines = [f"(unreadable: {error})"]
    return "\n  ".join([f"{message}; last lines of {log}:", *(lines or ["(empty)"])])

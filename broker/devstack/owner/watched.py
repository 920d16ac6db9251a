"""Files that are read again when they change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

_SETTLES_NS = 1_000_000_000
"""How old a change has to be before the file's status stands for its content."""


class FileUnusableError(Exception):
    """The file cannot be read now, or does not hold what it should."""


class WatchedFile(Generic[T]):
    """What a file says at this moment.

    It is read on every look unless its status is as it was, and was so for a while when it was read
    last: no change can hide behind an equal time or size. A file that is missing or invalid gives
    an error until it is valid again: what it said before never counts any more.
    """

    def __init__(self, path: Path, parse: Callable[[bytes], T]) -> None:
        """Describes a file; nothing is read yet.

        Args:
            path: The file.
            parse: Turns its content into a value, or raises an error that says what is wrong.
        """
        self._path = path
        self._parse = parse
        self._settled: tuple[int, ...] | None = None
        self._content: bytes | None = None
        self._outcome: T | FileUnusableError | None = None

    def current(self) -> T:
        """Returns the value of the file as it is now.

        Raises:
            FileUnusableError: It is missing or invalid. A line on standard error says how.
        """
        content = self._read()
        if self._outcome is None or content != self._content:
            self._content, self._outcome = content, self._evaluate(content)
        if isinstance(self._outcome, FileUnusableError):
            raise self._outcome.with_traceback(None)
        return self._outcome

    def _read(self) -> bytes | None:
        """Return the content, read again unless nothing can have changed since."""
        try:
            status = self._path.stat()
            seen = (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
            if seen == self._settled:
                return self._content
            content = self._path.read_bytes()
        except OSError:
            self._settled = None
            return None
        # The clock of files stands still for some milliseconds: who wrote twice in one would not be
        # told by it.
        self._settled = seen if time.time_ns() - status.st_ctime_ns > _SETTLES_NS else None
        return content

    def _evaluate(self, content: bytes | None) -> T | FileUnusableError:
        if content is None:
            return self._refused("it cannot be read")
        try:
            value = self._parse(content)
        except Exception as error:  # noqa: BLE001 (whatever is wrong with it, it does not count)
            return self._refused(str(error))
        return value

    def _refused(self, why: str) -> FileUnusableError:
        # For the person at the keyboard, who edits the file: not one of the broker's log lines.
        print(
            f"{self._path}: every call is refused until this is put right: {why}",
            file=sys.stderr,
            flush=True,
        )
        return FileUnusableError(f"{self._path.name} is not usable")

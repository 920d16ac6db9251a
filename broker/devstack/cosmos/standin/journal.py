"""A file that only grows: each line is one change of a container, and counts whole or not at all.

A line begins with the checksum of the rest. What a kill has cut off is the end of the file, and was
never acknowledged: it is removed at the next opening. Damage anywhere else is refused.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broker.devstack.cosmos.standin import documents
from broker.devstack.processes.errors import ServerError


class Journal:
    """The changes of one container, oldest first."""

    def __init__(self, path: Path) -> None:
        """Opens the file, made when it is missing, and removes what a kill has cut off."""
        self._path = path
        self._end = 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def entries(self) -> Iterator[dict[str, Any]]:
        """Returns what was written.

        Raises:
            ServerError: The file is damaged before its end.
        """
        content = self._path.read_bytes()
        good = 0
        while good < len(content):
            end = content.find(b"\n", good)
            entry = _read(content[good:end]) if end >= 0 else None
            if entry is None:
                if end >= 0 and end + 1 < len(content):
                    raise ServerError(f"{self._path} is damaged at byte {good}")
                os.ftruncate(self._file, good)
                return
            yield entry
            good = self._end = end + 1

    def append(self, entry: dict[str, Any]) -> None:
        """Writes an entry, and returns when it is on the disk.

        Raises:
            OSError: It is not: the disk is full, say. What is there of it counts for nothing.
        """
        content = documents.written(entry)
        line = b"%08x %s\n" % (zlib.crc32(content), content)
        left = line
        # Away with what is there of an entry that failed: nothing can follow it.
        os.ftruncate(self._file, self._end)
        while left:
            left = left[os.write(self._file, left) :]
        os.fsync(self._file)
        self._end += len(line)

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._file)


def _read(line: bytes) -> dict[str, Any] | None:
    checksum, _, content = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(content):
        return None
    entry: dict[str, Any] = json.loads(content)
    return entry

"""Files that other processes read while they are written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PRIVATE = 0o600
PUBLIC = 0o644


def replace(path: Path, content: str | bytes, mode: int = PUBLIC) -> None:
    """Writes a file in one step: a reader sees the old content or the new, never a part.

    Args:
        path: The file; its directory must exist.
        content: What it holds afterwards. Text is written as UTF-8.
        mode: Its permissions, set before the content is written.
    """
    data = content.encode() if isinstance(content, str) else content
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise

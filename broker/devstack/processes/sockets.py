"""The directory of a private server's Unix socket."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SocketDirectory:
    """A private directory with a path short enough for a socket's address.

    Attributes:
        link: Where the latest one is found: a symbolic link in the launcher's directory.
        prefix: What its name begins with.
        uid: Whose it is.
        gid: The group it belongs to.
    """

    link: Path
    prefix: str
    uid: int
    gid: int

    def make(self) -> Path:
        """Makes one in place of the latest."""
        self.drop()
        path = Path(tempfile.mkdtemp(prefix=self.prefix, dir="/tmp"))
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        self.link.symlink_to(path)
        return path

    def drop(self) -> None:
        """Removes the latest one, which a launcher that was killed has left behind."""
        with suppress(FileNotFoundError):
            path = self.link.readlink()
            self.link.unlink()
            if path.lstat().st_uid == self.uid:
                shutil.rmtree(path, ignore_errors=True)

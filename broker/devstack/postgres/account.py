"""The operating system account a server runs under.

PostgreSQL refuses to run as root, so root starts it as ``nobody``; everybody else runs it as
themselves.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from broker.devstack.processes.errors import ServerStartError
from broker.devstack.processes.process import ENVIRONMENT, Identity

UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Account:
    """An account, and whether processes have to be moved to it.

    Attributes:
        uid: User id of the server.
        gid: Group id of the server.
        is_other: True when the launcher is root and the server is somebody else.
    """

    uid: int
    gid: int
    is_other: bool

    @classmethod
    def for_this_process(cls) -> Account:
        """Returns the account that a server started from here has to run under."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid(), is_other=False)
        try:
            entry = pwd.getpwnam(UNPRIVILEGED)
        except KeyError:
            raise ServerStartError(
                f"root cannot run PostgreSQL, and there is no account {UNPRIVILEGED!r}"
            ) from None
        return cls(entry.pw_uid, entry.pw_gid, is_other=True)

    @property
    def identity(self) -> Identity:
        """Arguments that start a subprocess under this account."""
        if not self.is_other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end under this account and returns its output."""
        return subprocess.run(
            command,
            cwd="/",
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            **self.identity,
        )

    def can_enter(self, directory: Path) -> bool:
        """Tells, by trying it, whether this account can reach into a directory."""
        return self.run("/bin/sh", "-c", 'cd "$1"', "sh", str(directory)).returncode == 0

    def own(self, path: Path) -> None:
        """Hands a path that the launcher has just made to this account."""
        if self.is_other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

"""The lock on a data directory.

The launcher takes it and passes the open file on to the watchdog and to every process of the
server. So the lock is free exactly when the last of them is gone, however they ended.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from broker.devstack.processes.errors import ServerInUseError

# A server whose owner has died is shutting down: wait for that a little longer than it may take.
PATIENCE = 40.0


class DirectoryLock:
    """An exclusive lock on a directory, with a note of who holds it."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        """Takes the lock.

        Args:
            path: The lock file; it is never removed.
            patience: Seconds to wait for the remains of a server that is going away.

        Raises:
            ServerInUseError: A live launcher holds the lock, or the remains did not go away.
        """
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self.descriptor = os.open(path, flags, 0o600)
        try:
            self._wait(time.monotonic() + patience)
            self.record()
        except BaseException:
            self.release()
            raise

    def record(self, server: int = 0) -> None:
        """Notes this process, and the server it has started, as holders."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, f"{os.getpid()} {server}\n".encode(), 0)

    def release(self) -> None:
        """Lets go of this process's share; processes that inherited the lock keep theirs."""
        os.close(self.descriptor)

    def _wait(self, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._refuse_if_held_by_the_living(deadline)
                time.sleep(0.02)
            else:
                return

    def _refuse_if_held_by_the_living(self, deadline: float) -> None:
        owner, server = self._holders()
        directory = self._path.parent
        if is_alive(owner) and (not server or is_alive(server)):
            what = f"by a server with pid {server}" if server else "by a server about to start"
            raise ServerInUseError(
                f"{directory} is in use {what}, started by process {owner}", server or owner
            )
        if time.monotonic() > deadline:
            raise ServerInUseError(
                f"{directory} is still held by what is left of the server with pid {server}"
                f" that process {owner} started",
                server or None,
            )

    def _holders(self) -> tuple[int, int]:
        try:
            owner, server = os.pread(self.descriptor, 64, 0).split()
            return int(owner), int(server)
        except ValueError:  # the note is being written
            return 0, 0


def is_alive(pid: int) -> bool:
    """Tells whether a process exists; 0 stands for no process."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

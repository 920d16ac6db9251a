"""A running server, as its owner sees it: a watchdog process with the server below it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from broker.devstack.postgres import watchdog
from broker.devstack.postgres.account import ENVIRONMENT
from broker.devstack.postgres.cluster import Cluster
from broker.devstack.postgres.errors import PostgresError, PostgresStartError, with_log
from broker.devstack.postgres.lock import DirectoryLock, is_alive

_STOP_LIMIT = sum(patience for _, patience in watchdog.ESCALATION) + 5


class Postmaster:
    """One server process, from its start to its end.

    Attributes:
        pid: The process id of PostgreSQL's main process.
    """

    def __init__(
        self, cluster: Cluster, lock: DirectoryLock, sockets: Path, arguments: list[str]
    ) -> None:
        """Starts the server; it is not ready for connections yet.

        Args:
            cluster: The prepared cluster to serve.
            lock: The lock on it, which the server's processes inherit.
            sockets: The directory for the socket, removed when the server is gone.
            arguments: Command line arguments for ``postgres``.
        """
        order = {
            "command": [str(cluster.bin / "postgres"), "-D", str(cluster.path), *arguments],
            "environment": ENVIRONMENT,
            "identity": cluster.account.identity,
            "lock": lock.descriptor,
            "owner": os.getpid(),
            "socket_directory": str(sockets),
        }
        log = cluster.open_log()
        try:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", watchdog.__file__, json.dumps(order)],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                pass_fds=(lock.descriptor,),
                start_new_session=True,
            )
        finally:
            os.close(log)
        self.pid = self._read_pid(cluster.log)
        lock.record(self.pid)

    @property
    def is_running(self) -> bool:
        """Whether the server and its watchdog are there."""
        return self._watchdog.poll() is None

    def stop(self) -> None:
        """Ends the server and waits for it; does nothing when it is gone already.

        Raises:
            PostgresError: The watchdog did not end in time.
        """
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        with suppress(BrokenPipeError, ValueError):
            self._watchdog.stdin.write(b"q")
        self._watchdog.stdin.close()
        self._watchdog.stdout.close()
        try:
            self._watchdog.wait(_STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self._watchdog.kill()
            self._watchdog.wait()
            raise PostgresError(f"the server with pid {self.pid} did not stop") from None
        if self._watchdog.returncode < 0:
            self._wait_for_the_abandoned()

    def _wait_for_the_abandoned(self) -> None:
        """Waits for a server whose watchdog was killed, and which is shutting down for that."""
        deadline = time.monotonic() + _STOP_LIMIT
        while is_alive(self.pid):
            if time.monotonic() > deadline:
                raise PostgresError(f"the server with pid {self.pid} goes on without a watchdog")
            time.sleep(0.02)

    def _read_pid(self, log: Path) -> int:
        assert self._watchdog.stdout is not None
        try:
            return int(self._watchdog.stdout.readline())
        except ValueError:
            self.pid = 0
            self.stop()
            raise PostgresStartError(with_log("cannot launch PostgreSQL", log)) from None

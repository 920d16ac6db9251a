"""The files of one PostgreSQL cluster: made once, cleared of remains before each start.

The directory belongs to the launcher and holds the superuser's password, the lock and the
log; only ``cluster`` below it belongs to the server's account.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from broker.devstack.postgres.account import Account
from broker.devstack.postgres.placement import CLUSTER
from broker.devstack.processes.errors import ServerInUseError, ServerStartError
from broker.devstack.processes.sockets import SocketDirectory

SUPERUSER = "postgres"
_INITDB = (
    "--username=" + SUPERUSER,
    "--auth-host=scram-sha-256",
    "--auth-local=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--data-checksums",
)


@dataclass(frozen=True)
class Cluster:
    """One cluster on disk.

    Attributes:
        home: The launcher's directory.
        account: The account the server runs under.
        bin: The directory of the PostgreSQL programs.
    """

    home: Path
    account: Account
    bin: Path

    @property
    def path(self) -> Path:
        """PostgreSQL's own data directory."""
        return self.home / CLUSTER

    @property
    def log(self) -> Path:
        """The server log of the latest start; the one before it has ``.old`` added."""
        return self.home / "server.log"

    @property
    def _password_file(self) -> Path:
        return self.home / "superuser-password"

    def password(self) -> str:
        """Returns the superuser's password."""
        try:
            return self._password_file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise ServerStartError(f"{self._password_file} is gone") from None

    def prepare(self) -> None:
        """Makes the cluster when there is none, and clears the way for a start.

        The caller holds the directory's lock, so whatever a launcher left here is stale.
        """
        for unfinished in self.home.glob("making-*"):
            shutil.rmtree(unfinished)
        if self.path.exists():
            self._drop_stale_pid_file()
        else:
            self._make()

    @property
    def sockets(self) -> SocketDirectory:
        """The directory of the server's socket, which belongs to this account."""
        return SocketDirectory(
            self.home / "sockets", "broker-pg-", self.account.uid, self.account.gid
        )

    def _make(self) -> None:
        """Runs initdb beside the final place, so that a crash leaves no half a cluster."""
        staging = Path(tempfile.mkdtemp(prefix="making-", dir=self.home))
        password = secrets.token_urlsafe(24)
        _write_private(self._password_file, password)
        server_copy = self.home / "initdb-password"
        _write_private(server_copy, password)
        try:
            self.account.own(staging)
            self.account.own(server_copy)
            done = self.account.run(
                str(self.bin / "initdb"), f"--pgdata={staging}", f"--pwfile={server_copy}", *_INITDB
            )
        finally:
            server_copy.unlink()
        if done.returncode != 0:
            shutil.rmtree(staging)
            raise ServerStartError(f"initdb failed in {self.home}:\n{done.stderr.strip()}")
        staging.rename(self.path)

    def _drop_stale_pid_file(self) -> None:
        """Removes a ``postmaster.pid`` whose process is not a server of this cluster.

        PostgreSQL sees to a dead process itself, but not to a process id used again.
        """
        pid_file = self.path / "postmaster.pid"
        pid = 0
        try:
            pid = int(pid_file.read_text(encoding="utf-8").split("\n", 1)[0])
            serves_here = Path(f"/proc/{pid}/cwd").samefile(self.path)
        except FileNotFoundError:  # no pid file, or no such process
            return
        except (ValueError, PermissionError):  # an empty file, or somebody else's process
            serves_here = False
        if serves_here:
            raise ServerInUseError(
                f"{self.path} is in use by a server with pid {pid} that this launcher"
                " did not start",
                pid,
            )
        pid_file.unlink()


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="ascii")

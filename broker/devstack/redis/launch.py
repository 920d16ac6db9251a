"""One start of a server, from the data directory to the first login."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals

from broker.devstack.processes.lock import DirectoryLock
from broker.devstack.processes.process import Program, ServerProcess
from broker.devstack.redis.binaries import Binary
from broker.devstack.redis.client import Client
from broker.devstack.redis.home import SOCKET, Home, User

# A shutdown that writes the end of the log, then the end; each with the seconds it may take.
_ESCALATION = ((Signals.SIGTERM, 15.0), (Signals.SIGKILL, 5.0))


@dataclass(frozen=True)
class Running:
    """A server that answers, and the superuser's way to it."""

    process: ServerProcess
    client: Client


@dataclass(frozen=True)
class Launch:
    """How to start a server.

    Attributes:
        home: The prepared directory.
        binary: The program.
        users: Who may log in; the first is the superuser.
        settings: The caller's server settings.
        tls_port: The port to listen on, or None when somebody else speaks TLS for it.
        timeout: Seconds the server may take to load its data and to answer.
    """

    home: Home
    binary: Binary
    users: Sequence[User]
    settings: Mapping[str, str | int]
    tls_port: int | None
    timeout: float

    def run(self, lock: DirectoryLock) -> Running:
        """Starts the server and waits until it answers on its socket.

        Raises:
            ServerStartError: The server did not start.
        """
        sockets = self.home.sockets.make()
        try:
            process = ServerProcess(self._program(sockets), lock)
        except BaseException:
            self.home.sockets.drop()
            raise
        client = Client(sockets / SOCKET, self.users[0].password)
        try:
            process.wait_until(client.is_served, self.timeout)
        except BaseException:
            process.stop()
            raise
        return Running(process, client)

    def _program(self, sockets: Path) -> Program:
        config = self.home.configure(sockets, list(self.users), self.settings, self.tls_port)
        return Program(
            name=self.binary.name,
            command=[self.binary.name, str(config)],
            executable=str(self.binary.path),
            escalation=_ESCALATION,
            sockets=sockets,
            log=self.home.log,
            # Python ignores SIGXFSZ, and so shall the server: beyond a limit on the size of files,
            # by which tests make the disk full, a write must fail instead of killing it.
            restore_signals=False,
        )

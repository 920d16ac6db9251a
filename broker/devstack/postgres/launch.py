"""One start of a server, from the data directory to the first login."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import Signals

from broker.devstack.postgres.client import Client
from broker.devstack.postgres.cluster import Cluster
from broker.devstack.postgres.placement import LOCK
from broker.devstack.processes.errors import ServerError, ServerStartError
from broker.devstack.processes.lock import DirectoryLock
from broker.devstack.processes.log import with_log
from broker.devstack.processes.ports import ATTEMPTS, HOST, free_port
from broker.devstack.processes.process import Program, ServerProcess

# Fast shutdown, then immediate shutdown, then the end; each with the seconds it may take.
_ESCALATION = ((Signals.SIGINT, 20.0), (Signals.SIGQUIT, 5.0), (Signals.SIGKILL, 5.0))


@dataclass(frozen=True)
class Running:
    """A server that accepts connections, and the superuser's way to it."""

    process: ServerProcess
    client: Client


@dataclass(frozen=True)
class Launch:
    """How to start a server.

    Attributes:
        cluster: The cluster to serve.
        settings: The caller's server settings.
        port: The only port to listen on, or 0 for any free one.
        wished_port: The port to try first when any will do; 0 for no wish.
        timeout: Seconds the server may take to accept connections.
    """

    cluster: Cluster
    settings: Mapping[str, str | int]
    port: int
    wished_port: int
    timeout: float

    def run(self) -> Running:
        """Starts the server and waits until a login succeeds.

        Raises:
            ServerInUseError: Another server uses the cluster.
            ServerStartError: The server did not start.
        """
        lock = DirectoryLock(self.cluster.home / LOCK)
        try:
            self.cluster.prepare()
            wished = self.port or self.wished_port
            for _ in range(ATTEMPTS):
                running = self._attempt(lock, wished or free_port())
                if running is not None:
                    return running
                wished = 0
        finally:
            lock.release()
        raise ServerStartError(with_log("found no free port", self.cluster.log))

    def _attempt(self, lock: DirectoryLock, port: int) -> Running | None:
        """Starts the server; returns nothing when the port is taken and another may do."""
        sockets = self.cluster.sockets.make()
        client = Client(self.cluster.bin, sockets, port, self.cluster.password())
        try:
            process = ServerProcess(self._program(port, sockets), lock)
        except BaseException:
            self.cluster.sockets.drop()
            raise
        try:
            self._wait_until_ready(client, process)
        except BaseException as error:
            process.stop()
            if isinstance(error, ServerStartError) and not self.port and self._lost_the_port():
                return None
            raise
        return Running(process, client)

    def _lost_the_port(self) -> bool:
        log = self.cluster.log.read_text(encoding="utf-8", errors="replace")
        return "could not bind" in log

    def _program(self, port: int, sockets: Path) -> Program:
        settings = {
            **self.settings,
            "listen_addresses": HOST,
            "port": port,
            "unix_socket_directories": sockets,
            "unix_socket_permissions": "0700",
        }
        command = [str(self.cluster.bin / "postgres"), "-D", str(self.cluster.path)]
        for name, value in settings.items():
            command += ("-c", f"{name}={value}")
        return Program(
            name="PostgreSQL",
            command=command,
            escalation=_ESCALATION,
            sockets=sockets,
            log=self.cluster.log,
            identity=self.cluster.account.identity,
        )

    def _wait_until_ready(self, client: Client, process: ServerProcess) -> None:
        process.wait_until(client.is_served, self.timeout)
        try:
            client.execute("SELECT 1 \\g /dev/null")
        except ServerError as error:
            message = with_log(f"cannot log in: {error}", self.cluster.log)
            raise ServerStartError(message) from error

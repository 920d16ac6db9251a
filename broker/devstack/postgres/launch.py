"""One start of a server, from the data directory to the first login."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broker.devstack.postgres.client import Client
from broker.devstack.postgres.cluster import Cluster
from broker.devstack.postgres.errors import PostgresError, PostgresStartError, with_log
from broker.devstack.postgres.lock import DirectoryLock
from broker.devstack.postgres.placement import LOCK
from broker.devstack.postgres.process import Postmaster

HOST = "127.0.0.1"
_PORT_ATTEMPTS = 5


@dataclass(frozen=True)
class Running:
    """A server that accepts connections, and the superuser's way to it."""

    postmaster: Postmaster
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
            PostgresInUseError: Another server uses the cluster.
            PostgresStartError: The server did not start.
        """
        lock = DirectoryLock(self.cluster.home / LOCK)
        try:
            self.cluster.prepare()
            wished = self.port or self.wished_port
            for _ in range(_PORT_ATTEMPTS):
                running = self._attempt(lock, wished or _free_port())
                if running is not None:
                    return running
                wished = 0
        finally:
            lock.release()
        raise PostgresStartError(with_log("found no free port", self.cluster.log))

    def _attempt(self, lock: DirectoryLock, port: int) -> Running | None:
        """Starts the server; returns nothing when the port is taken and another may do."""
        sockets = self.cluster.make_socket_directory()
        client = Client(self.cluster.bin, sockets, port, self.cluster.password())
        try:
            postmaster = Postmaster(self.cluster, lock, sockets, self._arguments(port, sockets))
        except BaseException:
            self.cluster.drop_socket_directory()
            raise
        try:
            self._wait_until_ready(client, postmaster)
        except BaseException as error:
            postmaster.stop()
            if isinstance(error, PostgresStartError) and not self.port and self._lost_the_port():
                return None
            raise
        return Running(postmaster, client)

    def _lost_the_port(self) -> bool:
        log = self.cluster.log.read_text(encoding="utf-8", errors="replace")
        return "could not bind" in log

    def _arguments(self, port: int, sockets: Path) -> list[str]:
        settings = {
            **self.settings,
            "listen_addresses": HOST,
            "port": port,
            "unix_socket_directories": sockets,
            "unix_socket_permissions": "0700",
        }
        return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]

    def _wait_until_ready(self, client: Client, postmaster: Postmaster) -> None:
        log = self.cluster.log
        deadline = time.monotonic() + self.timeout
        while not client.is_served():
            if not postmaster.is_running:
                raise PostgresStartError(with_log("PostgreSQL ended while starting", log))
            if time.monotonic() > deadline:
                message = f"PostgreSQL was not ready within {self.timeout} seconds"
                raise PostgresStartError(with_log(message, log))
            time.sleep(0.01)
        try:
            client.execute("SELECT 1 \\g /dev/null")
        except PostgresError as error:
            raise PostgresStartError(with_log(f"cannot log in: {error}", log)) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port

"""The launcher's public face."""

from __future__ import annotations

import secrets
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from broker.devstack.processes.errors import ServerError, ServerStartError
from broker.devstack.processes.lifecycle import Restartable
from broker.devstack.processes.lock import DirectoryLock
from broker.devstack.processes.ports import HOST, reserve_wished
from broker.devstack.redis.binaries import Flavour, find
from broker.devstack.redis.client import SUPERUSER
from broker.devstack.redis.home import Home, User
from broker.devstack.redis.launch import Launch, Running
from broker.devstack.redis.proxy import TlsProxy

RUNTIME = "broker"
EVERYTHING_PLAIN = "~* +@all -@admin -@dangerous +config|get +info"
"""What the runtime user may do where nobody says otherwise."""


class RedisServer(Restartable):
    """A private Redis-compatible server that lives as long as the process that started it.

    It speaks TLS alone, by itself or behind a proxy of ours; the data stay when it stops. It shuts
    down by itself when the process ends, in whatever way. The default user is off; passwords are
    drawn anew for each object and stay the same for it, as the certificates do.

    Attributes:
        data_dir: The directory that holds everything.
        runtime_user: The name of the user that a broker logs in as.
        runtime_password: That user's password.
        superuser: The name of the user who may do everything.
        superuser_password: That user's password.
    """

    def __init__(
        self,
        data_dir: Path | str,
        *,
        flavour: Flavour | None = None,
        port: int = 0,
        settings: Mapping[str, str | int] | None = None,
        acl: str = EVERYTHING_PLAIN,
        start_timeout: float = 60.0,
    ) -> None:
        """Describes a server; nothing happens before ``start()``.

        Args:
            data_dir: Directory for the data, made when it is missing.
            flavour: Which server; None takes the one whose data are there, else Redis where one
                is installed, else Valkey.
            port: TCP port on the loopback interface; 0 takes a free one, and the same one again
                when this object is started again: for sure after ``kill()``, and after ``stop()``
                when it is still free.
            settings: Server settings, names and values as in ``redis.conf``; they win over ours.
            acl: What the runtime user may do, as in ``ACL SETUSER``.
            start_timeout: Seconds the server may take to load its data and to answer.
        """
        self.data_dir = Path(data_dir).resolve()
        self.superuser, self.superuser_password = SUPERUSER, secrets.token_urlsafe(24)
        self.runtime_user, self.runtime_password = RUNTIME, secrets.token_urlsafe(24)
        self._wanted = self._flavour = flavour
        self._fixed_port = port
        self._last_port = 0
        self._settings = dict(settings or {})
        self._acl = acl
        self._start_timeout = start_timeout
        self._home = Home(self.data_dir)
        self._reservation: socket.socket | None = None
        self._proxy: TlsProxy | None = None
        self._running: Running | None = None

    # --- life -----------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts the server and waits until it answers, with all its data loaded.

        Does nothing when it runs already; starts it again when it has died.

        Raises:
            ServerInUseError: Another server uses the data directory.
            ServerStartError: It did not start; the message ends with its log.
        """
        if not self.is_running:
            self._end_server()
            try:
                self._launch()
            except (OSError, subprocess.SubprocessError) as error:
                self.stop()
                raise ServerStartError(f"cannot start the server: {error}") from error
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self) -> None:
        """Shuts the server down and waits for it; does nothing when it is not running."""
        try:
            self._end_server()
        finally:
            if self._proxy is not None:
                self._proxy.stop()
            if self._reservation is not None:
                self._reservation.close()
            self._proxy = self._reservation = None

    def kill(self) -> None:
        """Ends the server as a crash would. The port is kept; what connects is refused or reset."""
        running, self._running = self._now(), None
        running.process.kill()

    def freeze(self) -> None:
        """Makes the server stand still, until ``thaw()``; connections stay open."""
        self._now().process.freeze()

    def thaw(self) -> None:
        """Lets the server go on."""
        self._now().process.thaw()

    @property
    def is_running(self) -> bool:
        """Whether the server process, and its proxy where it needs one, are there."""
        if self._running is None or not self._running.process.is_running:
            return False
        return self._proxy is None or self._proxy.is_running

    # --- addresses ------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The address the server listens on."""
        return HOST

    @property
    def port(self) -> int:
        """The TCP port where clients find TLS, known since the first start."""
        if not self._last_port:
            raise ServerError("the server was never started")
        return self._last_port

    @property
    def endpoint(self) -> str:
        """The address for clients, without a user, known since the first start."""
        return f"rediss://localhost:{self.port}"

    @property
    def ca_file(self) -> Path:
        """The authority that clients have to trust; there since the first start."""
        return self._home.ca_file

    @property
    def socket_path(self) -> Path:
        """The Unix socket of the running server, in the clear."""
        return self._now().client.socket

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._now().process.pid

    @property
    def flavour(self) -> Flavour:
        """Which server it is, known since the first start."""
        if self._flavour is None:
            raise ServerError("the server was never started")
        return self._flavour

    @property
    def log_file(self) -> Path:
        """The server's log of the latest start."""
        return self._home.log

    # --- what a superuser does ------------------------------------------------------------

    def execute(self, *command: str | bytes | float) -> Any:
        """Runs a command as the superuser, over the socket; strings in the reply are bytes.

        Raises:
            ServerError: The server refused, or does not answer.
        """
        return self._now().client.execute(*command)

    def set_acl(self, rules: str) -> None:
        """Says what the runtime user may do, now and after each start.

        Args:
            rules: As in ``ACL SETUSER``; they begin from nothing.

        Raises:
            ServerError: The server refused the rules; the ones before hold.
        """
        if self._running is not None:
            user = User(self.runtime_user, self.runtime_password, rules)
            self.execute("ACL", "SETUSER", *user.definition())
        self._acl = rules

    # --- inside ---------------------------------------------------------------------------

    def _now(self) -> Running:
        if self._running is None:
            raise ServerError("the server is not started")
        return self._running

    def _launch(self) -> None:
        self._home.make()
        lock = DirectoryLock(self._home.lock)
        try:
            flavour = self._home.settle(self._wanted)
            binary = find(flavour)
            self._home.prepare(flavour)
            self._flavour = flavour
            self._last_port = self._reserve()
            users = (
                User(self.superuser, self.superuser_password, "~* &* +@all"),
                User(self.runtime_user, self.runtime_password, self._acl),
            )
            tls_port = self._last_port if flavour.speaks_tls else None
            self._running = Launch(
                self._home, binary, users, self._settings, tls_port, self._start_timeout
            ).run(lock)
        finally:
            lock.release()
        if not flavour.speaks_tls:
            self._keep_proxy()
        self._running.client.check_tls(self._last_port, self.ca_file)

    def _reserve(self) -> int:
        """Sees to it that nobody else is given the port while the server is away."""
        if self._reservation is None:
            self._reservation = reserve_wished(self._fixed_port, self._last_port)
        port: int = self._reservation.getsockname()[1]
        return port

    def _keep_proxy(self) -> None:
        """Starts the proxy unless it runs: it outlives servers that are killed."""
        if self._proxy is not None and not self._proxy.is_running:
            self._proxy.stop()
            self._proxy = None
        if self._proxy is None:
            self._proxy = TlsProxy(self._home, self._last_port)

    def _end_server(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.process.stop()

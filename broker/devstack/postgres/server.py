"""The launcher's public face."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

from broker.devstack.postgres.account import Account
from broker.devstack.postgres.binaries import installation
from broker.devstack.postgres.cluster import SUPERUSER, Cluster
from broker.devstack.postgres.launch import Launch, Running
from broker.devstack.postgres.orphans import remove_orphans
from broker.devstack.postgres.placement import FALLBACK_DIRECTORY, settle
from broker.devstack.processes.errors import ServerError, ServerStartError
from broker.devstack.processes.lifecycle import Restartable
from broker.devstack.processes.ports import HOST

_DEFAULTS = {"max_connections": "100"}


class PostgresServer(Restartable):
    """A private PostgreSQL server that lives as long as the process that started it.

    Usable as a context manager, plain or asynchronous, or by ``start()`` and ``stop()``. The
    data stays when the server stops. The server shuts down by itself when the process ends,
    in whatever way.
    """

    def __init__(
        self,
        data_dir: Path | str,
        port: int = 0,
        settings: Mapping[str, str | int] | None = None,
        *,
        start_timeout: float = 60.0,
        fallback_directory: Path = FALLBACK_DIRECTORY,
    ) -> None:
        """Describes a server; nothing happens before ``start()``.

        Args:
            data_dir: Directory for the data, made when it is missing.
            port: TCP port on the loopback interface; 0 takes a free one, and the same one
                again when this object is started again and it is still free.
            settings: Server settings, as in ``postgresql.conf``.
            start_timeout: Seconds the server may take to accept connections.
            fallback_directory: Where root keeps data (see ``placement``) and programs that
                the server's account cannot reach otherwise.
        """
        self.data_dir = Path(data_dir).resolve()
        self._fixed_port = port
        self._last_port = 0
        self._settings = {**_DEFAULTS, **(settings or {})}
        self._start_timeout = start_timeout
        self._fallback = fallback_directory
        self._cluster: Cluster | None = None
        self._running: Running | None = None

    # --- life -----------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts the server and waits until it accepts connections.

        Does nothing when it runs already; starts it again when it has died.

        Raises:
            ServerInUseError: Another server uses the data directory.
            ServerStartError: It did not start; the message ends with its log.
        """
        if not self.is_running:
            self.stop()
            try:
                self._running = self._launch()
            except (OSError, subprocess.SubprocessError) as error:
                raise ServerStartError(f"cannot start PostgreSQL: {error}") from error
            self._last_port = self.port
        return self

    def stop(self) -> None:
        """Shuts the server down and waits for it; does nothing when it is not running."""
        running, self._running = self._running, None
        if running is not None:
            running.process.stop()

    @property
    def is_running(self) -> bool:
        """Whether the server process is there."""
        return self._running is not None and self._running.process.is_running

    # --- addresses ------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The address the server listens on."""
        return HOST

    @property
    def port(self) -> int:
        """The TCP port of the running server."""
        return self._now().client.port

    @property
    def socket_dir(self) -> Path:
        """The directory of the Unix socket of the running server."""
        return self._now().client.sockets

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._now().process.pid

    @property
    def cluster_dir(self) -> Path:
        """PostgreSQL's own directory, known since the first start."""
        if self._cluster is None:
            raise ServerError("the server was never started")
        return self._cluster.path

    @property
    def log_file(self) -> Path:
        """The server's log, known since the first start."""
        if self._cluster is None:
            raise ServerError("the server was never started")
        return self._cluster.log

    def dsn(self, user: str, database: str, password: str | None = None) -> str:
        """Returns a connection URL; the superuser's password is filled in.

        Args:
            user: The role to connect as.
            database: The database to connect to.
            password: The role's password.
        """
        if password is None and user == SUPERUSER:
            password = self._now().client.password
        secret = "" if password is None else f":{quote(password, safe='')}"
        who, what = quote(user, safe=""), quote(database, safe="")
        return f"postgresql://{who}{secret}@{HOST}:{self.port}/{what}"

    @property
    def superuser_dsn(self) -> str:
        """The superuser's connection URL for the database ``postgres``."""
        return self.dsn(SUPERUSER, "postgres")

    # --- databases ------------------------------------------------------------------------

    def create_database(self, name: str, template: str | None = None) -> None:
        """Creates a database, as a copy of another one when a template is named.

        Nobody may be connected to the template meanwhile.

        Raises:
            ServerError: The server refused.
        """
        self._now().client.execute(
            'CREATE DATABASE :"name" TEMPLATE :"template";',
            name=name,
            template=template or "template1",
        )

    def drop_database(self, name: str) -> None:
        """Drops a database, when it exists, and ends the connections to it.

        Raises:
            ServerError: The server refused.
        """
        self._now().client.execute('DROP DATABASE IF EXISTS :"name" WITH (FORCE);', name=name)

    # --- inside ---------------------------------------------------------------------------

    def _now(self) -> Running:
        if self._running is None:
            raise ServerError("the server is not started")
        return self._running

    def _launch(self) -> Running:
        account = Account.for_this_process()
        home = settle(self.data_dir, account, self._fallback)
        remove_orphans(account, self._fallback)
        programs = installation(account, self._fallback) / "bin"
        self._cluster = Cluster(home, account, programs)
        return Launch(
            self._cluster, self._settings, self._fixed_port, self._last_port, self._start_timeout
        ).run()

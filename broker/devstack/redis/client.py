"""The superuser's way to a server, over its private socket."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from broker.devstack.processes.errors import ServerError, ServerStartError

SUPERUSER = "admin"
_ANSWER_S = 30.0


@dataclass(frozen=True)
class Client:
    """Connects anew for each command, and sends none twice.

    Attributes:
        socket: The server's Unix socket.
        password: The superuser's password.
    """

    socket: Path
    password: str = field(repr=False)

    def is_served(self) -> bool:
        """Tells whether the server has loaded its data and answers now."""
        try:
            self._run(redis.Redis(unix_socket_path=str(self.socket), **self._options()), "PING")
        except redis.RedisError:
            return False
        return True

    def execute(self, *command: str | bytes | float) -> Any:
        """Runs a command and returns the reply; strings in it are bytes.

        Raises:
            ServerError: The server refused, or cannot be reached.
        """
        connection = redis.Redis(unix_socket_path=str(self.socket), **self._options())
        try:
            return self._run(connection, *command)
        except redis.RedisError as error:
            raise ServerError(f"{command[0]!s}: {error}") from error

    def check_tls(self, port: int, ca_file: Path) -> None:
        """Logs in as clients do, over TLS.

        Raises:
            ServerStartError: It does not work.
        """
        connection = redis.Redis(
            "localhost", port, ssl=True, ssl_ca_certs=str(ca_file), **self._options()
        )
        try:
            self._run(connection, "PING")
        except redis.RedisError as error:
            raise ServerStartError(f"cannot log in over TLS: {error}") from error

    def _options(self) -> dict[str, Any]:
        return {
            "username": SUPERUSER,
            "password": self.password,
            "socket_timeout": _ANSWER_S,
            "retry": Retry(NoBackoff(), 0),
        }

    def _run(self, connection: Any, *command: str | bytes | float) -> Any:
        with connection:
            return connection.execute_command(*command)

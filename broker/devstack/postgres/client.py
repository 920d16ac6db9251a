"""Talks to a server through the wheel's own client programs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from broker.devstack.postgres.cluster import SUPERUSER
from broker.devstack.processes.errors import ServerError
from broker.devstack.processes.process import ENVIRONMENT

_LONGEST_NAME = 63  # bytes; PostgreSQL cuts longer names off without an error


@dataclass(frozen=True)
class Client:
    """The superuser's way to a server, over its private socket.

    Attributes:
        bin: The directory of the PostgreSQL programs.
        sockets: The directory of the server's socket.
        port: The port that is part of the socket's name.
        password: The superuser's password.
    """

    bin: Path
    sockets: Path
    port: int
    password: str = field(repr=False)

    def is_served(self) -> bool:
        """Tells whether the server accepts connections now."""
        return self._run("pg_isready", "--quiet", "--timeout=3").returncode == 0

    def execute(self, sql: str, **names: str) -> None:
        """Runs SQL in which ``:"key"`` stands for an identifier, quoted by psql.

        Raises:
            ServerError: A name is too long, or the server refused.
        """
        for name in names.values():
            if len(name.encode()) > _LONGEST_NAME:
                raise ServerError(f"{name!r} is longer than {_LONGEST_NAME} bytes")
        variables = [f"--variable={key}={name}" for key, name in names.items()]
        options = ("--no-psqlrc", "--quiet", "--variable=ON_ERROR_STOP=1", "--file=-")
        done = self._run("psql", *options, *variables, "--dbname=postgres", sql=sql)
        if done.returncode != 0:
            raise ServerError(done.stderr.strip() or f"psql failed: {done.returncode}")

    def _run(self, program: str, *options: str, sql: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                str(self.bin / program),
                f"--host={self.sockets}",
                f"--port={self.port}",
                f"--username={SUPERUSER}",
                *options,
            ],
            cwd="/",
            env={**ENVIRONMENT, "PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "10"},
            input=sql,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )

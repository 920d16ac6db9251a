"""The files of one server: made once, written anew before each start.

The directory holds the lock, the log, what the server is configured with and the certificates;
the server's own files are in ``data`` below it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from broker.devstack import files
from broker.devstack.authority import LocalAuthority
from broker.devstack.processes.errors import ServerStartError
from broker.devstack.processes.ports import HOST
from broker.devstack.processes.sockets import SocketDirectory
from broker.devstack.redis.binaries import Flavour, available

SOCKET = "redis.sock"
BACKLOG = 511

# No acknowledged write may be lost, and none may be evicted.
_SAFE = {
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "maxmemory-policy": "noeviction",
    "save": '""',
}


@dataclass(frozen=True)
class User:
    """Who may log in.

    Attributes:
        name: Without spaces.
        password: The password; only its hash is written.
        rules: What the user may do, as in ``ACL SETUSER``.
    """

    name: str
    password: str
    rules: str

    def definition(self) -> list[str]:
        """Returns the words that follow ``ACL SETUSER``, to begin from nothing."""
        digest = sha256(self.password.encode()).hexdigest()
        return [self.name, "reset", "on", f"#{digest}", *self.rules.split()]


class Home:
    """The directory of one server.

    Attributes:
        path: The directory.
        lock: Held by whoever has a server here.
        log: The server's log of the latest start; the one before it has ``.old`` added.
        proxy_log: The same of the proxy, where there is one.
        sockets: Where the server's Unix socket is.
        ca_file: The certificate of the authority that clients have to trust.
        certificate: The server's certificate and its key.
    """

    def __init__(self, path: Path) -> None:
        """Names the places; nothing is made."""
        self.path = path
        self.lock = path / "lock"
        self.log = path / "server.log"
        self.proxy_log = path / "proxy.log"
        self.sockets = SocketDirectory(
            path / "sockets", "broker-redis-", os.geteuid(), os.getegid()
        )
        self._tls = path / "tls"
        self.ca_file = self._tls / "ca.crt"
        self.certificate = (self._tls / "server.crt", self._tls / "server.key")
        self._data = path / "data"
        self._flavour = path / "flavour"
        self._config = path / "redis.conf"
        self._has_authority = False

    def make(self) -> None:
        """Makes the directory, open to this account only, unless it is there."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def settle(self, wanted: Flavour | None) -> Flavour:
        """Returns the flavour to start: the one that is wanted, that was here, or that is there.

        Raises:
            ServerStartError: The data are of another flavour than is wanted, which could not
                read them or would change them for good.
        """
        kept = Flavour(self._flavour.read_text("ascii")) if self._flavour.exists() else None
        flavour = wanted or kept or available()
        if kept not in {None, flavour}:
            raise ServerStartError(
                f"{self.path} holds the data of {kept}; name another directory for {flavour}"
            )
        return flavour

    def prepare(self, flavour: Flavour) -> None:
        """Makes what is missing; certificates stay the same from the first call on.

        The caller holds the lock.
        """
        self._data.mkdir(mode=0o700, exist_ok=True)
        files.replace(self._flavour, flavour)
        if not self._has_authority or not self.ca_file.exists():
            LocalAuthority(self._tls)
            self._has_authority = True

    def configure(
        self,
        sockets: Path,
        users: list[User],
        settings: Mapping[str, str | int],
        tls_port: int | None,
    ) -> Path:
        """Writes the configuration, which nobody else can read, and returns its path.

        Args:
            sockets: The directory of the server's socket.
            users: Who may log in; nobody else may.
            settings: The caller's, which win.
            tls_port: Where the server listens; None for the socket alone.
        """
        mine: dict[str, str | int] = {
            "bind": HOST,
            "port": 0,
            "protected-mode": "yes",
            "tcp-backlog": BACKLOG,
            "unixsocket": _quoted(sockets / SOCKET),
            "unixsocketperm": 700,
            "dir": _quoted(self._data),
            **_SAFE,
        }
        if tls_port is not None:
            chain, key = self.certificate
            mine |= {
                "tls-port": tls_port,
                "tls-auth-clients": "no",
                "tls-cert-file": _quoted(chain),
                "tls-key-file": _quoted(key),
                "tls-ca-cert-file": _quoted(self.ca_file),
            }
        lines = [f"{name} {value}" for name, value in {**mine, **settings}.items()]
        # Nobody can be the default user; but the append-only file is read back with its rights, and
        # Redis 7 leaves out of it, without an error, what that user might not have written.
        lines.append("user default reset off ~* &* +@all")
        lines.extend(" ".join(["user", *user.definition()]) for user in users)
        files.replace(self._config, "\n".join([*lines, ""]), files.PRIVATE)
        return self._config


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

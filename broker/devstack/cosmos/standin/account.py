"""The account: its key, its identity, and what a test can change of it."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from broker.devstack import files
from broker.devstack.cosmos.standin.protocol import LEVELS
from broker.devstack.processes.errors import ServerError


@dataclass(frozen=True)
class Settings:
    """What the account document tells; kept over a restart.

    Attributes:
        id: The account's name, drawn by lot once.
        consistency: The default level.
        readable: Names of the regions that can be read from.
        writable: Names of the regions that can be written to.
        multiple_writes: Whether several regions take writes.
        bearer: A token that is accepted as that of a known identity; empty for none.
    """

    id: str
    consistency: str = "Strong"
    readable: list[str] = field(default_factory=lambda: ["North"])
    writable: list[str] = field(default_factory=lambda: ["North"])
    multiple_writes: bool = False
    bearer: str = ""


class Account:
    """An account of a data directory.

    Attributes:
        key_file: Holds the key, in base64.
        key: The key.
        settings: What it tells now.
    """

    def __init__(self, directory: Path) -> None:
        """Reads the account, or draws a new one."""
        self.key_file = directory / "key"
        self._file = directory / "account.json"
        if not self.key_file.exists():
            fresh = base64.b64encode(secrets.token_bytes(64)).decode()
            files.replace(self.key_file, fresh, files.PRIVATE)
        self.key = self.key_file.read_text(encoding="ascii")
        if self._file.exists():
            self.settings = Settings(**json.loads(self._file.read_bytes()))
        else:
            self._keep(Settings(f"stand-in-{secrets.token_hex(6)}"))

    def change(self, changes: dict[str, Any]) -> None:
        """Makes the account tell something else.

        Raises:
            ServerError: There is no such setting, or no such level.
        """
        try:
            changed = replace(self.settings, **changes)
        except TypeError:
            raise ServerError(f"an account has no such settings: {sorted(changes)}") from None
        if changed.consistency not in LEVELS:
            raise ServerError(f"a consistency level is one of {LEVELS}")
        self._keep(changed)

    def document(self, host: str) -> dict[str, Any]:
        """Returns what the account tells a client that came by this host and port."""
        told = self.settings
        return {
            "_self": "",
            "id": told.id,
            "_rid": f"{told.id}.stand-in.invalid",
            "media": "//media/",
            "addresses": "//addresses/",
            "_dbs": "//dbs/",
            "writableLocations": _locations(told.writable, host),
            "readableLocations": _locations(told.readable, host),
            "enableMultipleWriteLocations": told.multiple_writes,
            "userReplicationPolicy": {
                "asyncReplication": False,
                "minReplicaSetSize": 3,
                "maxReplicasetSize": 4,
            },
            "userConsistencyPolicy": {"defaultConsistencyLevel": told.consistency},
            "systemReplicationPolicy": {"minReplicaSetSize": 3, "maxReplicasetSize": 4},
            "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
            "queryEngineConfiguration": "{}",
        }

    def _keep(self, settings: Settings) -> None:
        self.settings = settings
        files.replace(self._file, json.dumps(asdict(settings), indent=2) + "\n", files.PRIVATE)


def _locations(names: list[str], host: str) -> list[dict[str, str]]:
    return [{"name": name, "databaseAccountEndpoint": f"https://{host}/"} for name in names]

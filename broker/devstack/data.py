"""The directory that a development stack keeps everything in."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from broker.devstack import files
from broker.devstack.errors import DevStackError, DevStackInUseError
from broker.devstack.provider import Provider


@dataclass(frozen=True)
class Secrets:
    """What is drawn by lot once for a directory.

    Attributes:
        migrator_password: Of the database role that owns the schema.
        runtime_password: Of the database role that the broker runs with.
        resource_id: The identity of the memory store.
        events_password: Of the database role that the Events service runs with.
    """

    migrator_password: str
    runtime_password: str
    resource_id: str
    events_password: str


class DataDirectory:
    """The places below a data directory.

    Attributes:
        path: The directory.
        playground: Tenants, projects, members and runs; for people to edit.
        keys: The keys of the token issuer.
        postgres: The database server's files.
        redis: The files of the server that keeps memory, where that is Redis.
        cosmos: The same of the stand-in for Cosmos DB.
        settings: What the broker is started with; written anew at every start.
        records: Replies that the commands of the banner keep for each other.
        memory: The one of them that holds a memory; made beforehand, for its mode to be private.
    """

    def __init__(self, path: Path) -> None:
        """Makes the directory when it is missing; what is secret in it is readable by nobody else.

        Raises:
            DevStackError: It cannot be made.
        """
        self.path = path.resolve()
        self.playground = self.path / "playground.yaml"
        self.keys = self.path / "keys"
        self.postgres = self.path / "postgres"
        self.redis = self.path / "redis"
        self.cosmos = self.path / "cosmos"
        self.settings = self.path / "broker.toml"
        self.records = self.path / "records"
        self.memory = self.records / "memory.json"
        self._secrets = self.path / "secrets.json"
        self._provider = self.path / "provider"
        # A database server that root starts runs as somebody else, who has to pass through.
        mode = 0o711 if os.geteuid() == 0 else 0o700
        try:
            if not self.path.exists():
                self.path.mkdir(parents=True)
                self.path.chmod(mode)
            self.records.mkdir(exist_ok=True)
            self.records.chmod(0o700)
            self.memory.touch(files.PRIVATE)
            self.memory.chmod(files.PRIVATE)
        except OSError as error:
            raise DevStackError(f"cannot use {self.path}: {error.strerror}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other stacks out of the directory, until the process ends at the latest.

        Raises:
            DevStackInUseError: One is there already.
        """
        with (self.path / "lock").open("a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                holder = lock.read().strip() or "another process"
                raise DevStackInUseError(
                    f"{self.path} is in use by a `broker dev` that runs already (process {holder});"
                    " stop it, or name another directory with --data"
                ) from None
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield

    def keep_to(self, provider: Provider) -> None:
        """Notes where memory is kept; a directory stays with it, as runs are pinned to it.

        Raises:
            DevStackError: It is kept elsewhere.
        """
        if self._provider.exists():
            kept = self._provider.read_text(encoding="utf-8").strip()
        else:  # new, or of a release before Redis
            kept = Provider.POSTGRES if self._secrets.exists() else provider
        if kept != provider:
            raise DevStackError(
                f"{self.path} was begun with --provider {kept}; name another directory with --data"
            )
        files.replace(self._provider, f"{provider}\n")

    def secrets(self) -> Secrets:
        """Returns the secrets, drawn when there are none.

        Raises:
            DevStackError: Their file is damaged.
        """
        try:
            kept = json.loads(self._secrets.read_text(encoding="utf-8"))
            # A directory of a release before the Events service has no password for it.
            drawn = Secrets(**({"events_password": secrets.token_urlsafe(24)} | kept))
        except FileNotFoundError:
            kept, drawn = {}, Secrets(**_drawn())
        except (ValueError, TypeError) as error:
            raise DevStackError(f"{self._secrets} is damaged; delete it to draw anew") from error
        if asdict(drawn) != kept:
            files.replace(self._secrets, json.dumps(asdict(drawn), indent=2) + "\n", files.PRIVATE)
        return drawn


def _drawn() -> dict[str, str]:
    return {
        "migrator_password": secrets.token_urlsafe(24),
        "runtime_password": secrets.token_urlsafe(24),
        "resource_id": f"dev-{uuid4()}",
        "events_password": secrets.token_urlsafe(24),
    }

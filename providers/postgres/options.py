"""What the adapter has to be told. Options schema version 1."""

import re
from dataclasses import dataclass, field

from providers.address import is_guarded, is_postgres

ADAPTER_ID = "postgres.native-memory"
ADAPTER_VERSION = "1.0.0"
OPTIONS_SCHEMA_VERSION = 1

_IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]{1,256}")
_DATABASE_NAME_BYTES_MAX = 63
_POOL_SIZE_MAX = 200
_LIMIT_MS_MAX = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions:
    """Where the resource is and what it must be. ``repr`` shows no address and no credential.

    Attributes:
        dsn: ``postgresql://`` address of the runtime role; beyond loopback and sockets with
            ``sslmode=verify-full``.
        resource_id: The marker's name, 1-256 identifier characters.
        generation: The marker's generation, from 1.
        database_name: The name the database must have.
        options_revision: The operator's name for this set of options.
        pool_size: Connections at most, 1-200.
        pool_ready: Connections opened with the first, 1 to ``pool_size``.
        connect_ms: Time for one connection attempt.
        statement_ms: Time the server gives one statement; it ends one that nobody waits for.
        lock_ms: Time the server lets a statement wait for one lock.

    Raises:
        ValueError: A value is outside its range. The message does not repeat it. Not retryable.
    """

    dsn: str = field(repr=False)
    resource_id: str
    generation: int
    database_name: str
    options_revision: str
    pool_size: int = 16
    pool_ready: int = 2
    connect_ms: int = 5_000
    statement_ms: int = 30_000
    lock_ms: int = 10_000

    def __post_init__(self) -> None:
        _require("dsn", is_postgres(self.dsn))
        if not is_guarded(self.dsn):
            raise ValueError("the option dsn beyond loopback needs sslmode=verify-full")
        _require("resource_id", bool(_IDENTIFIER.fullmatch(self.resource_id)))
        _require("generation", self.generation >= 1)
        size = len(self.database_name.encode())
        _require("database_name", 1 <= size <= _DATABASE_NAME_BYTES_MAX)
        _require("options_revision", bool(_IDENTIFIER.fullmatch(self.options_revision)))
        _require("pool_size", 1 <= self.pool_size <= _POOL_SIZE_MAX)
        _require("pool_ready", 1 <= self.pool_ready <= self.pool_size)
        for name in ("connect_ms", "statement_ms", "lock_ms"):
            _require(name, 1 <= getattr(self, name) <= _LIMIT_MS_MAX)


def _require(name: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"the option {name} is not valid")

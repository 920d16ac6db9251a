"""What the adapter has to be told. Options schema version 1 (004-37)."""

import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

ADAPTER_ID = "redis.memory"
ADAPTER_VERSION = "1.0.0"
OPTIONS_SCHEMA_VERSION = 1
KEY_PREFIX = "agentweaver:knowledge"

_IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]{1,256}")
_PREFIX = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_PASSWORD = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,4096}")
_USERNAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,256}")
_DATABASE_MAX = 15
_POOL_SIZE_MAX = 200
_LIMIT_MS_MAX = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions:
    """Where the resource is and what it must be. ``repr`` shows no credential.

    Attributes:
        endpoint: ``rediss://host:port``: TLS, the port spelt out, and nothing else.
        resource_id: The marker's name, 1-256 identifier characters.
        generation: The marker's generation, from 1.
        options_revision: The operator's name for this set of options.
        username: The ACL user, 1-256 characters without space; with ``password`` or not at all.
        password: Its password, 1-4,096 characters without control characters.
        database: Its number, 0-15. Nothing in it may expire, whosever it is.
        key_prefix: Begins every key, 1-128 identifier characters.
        ca_file: PEM of the authorities that the server's certificate is checked with; by default
            those of the system.
        pool_size: Connections at most, 1-200.
        pool_ready: Connections opened with the first, 1 to ``pool_size``.
        connect_ms: Time for one connection attempt.

    Raises:
        ValueError: A value is outside its range, or ``ca_file`` cannot be used. The message names
            the option and does not repeat the value of a secret. Not retryable.
    """

    endpoint: str
    resource_id: str
    generation: int
    options_revision: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    database: int = 0
    key_prefix: str = KEY_PREFIX
    ca_file: str | None = None
    pool_size: int = 16
    pool_ready: int = 2
    connect_ms: int = 5_000

    def __post_init__(self) -> None:
        _require("endpoint", _is_endpoint(self.endpoint), "is not rediss://host:port")
        _require("resource_id", bool(_IDENTIFIER.fullmatch(self.resource_id)))
        _require("generation", self.generation >= 1)
        _require("options_revision", bool(_IDENTIFIER.fullmatch(self.options_revision)))
        together = (self.username is None) == (self.password is None)
        _require("username", together, "and the option password go together")
        _require("username", self.username is None or bool(_USERNAME.fullmatch(self.username)))
        _require("password", self.password is None or bool(_PASSWORD.fullmatch(self.password)))
        _require("database", 0 <= self.database <= _DATABASE_MAX)
        _require("key_prefix", bool(_PREFIX.fullmatch(self.key_prefix)))
        _require("pool_size", 1 <= self.pool_size <= _POOL_SIZE_MAX)
        _require("pool_ready", 1 <= self.pool_ready <= self.pool_size)
        _require("connect_ms", 1 <= self.connect_ms <= _LIMIT_MS_MAX)
        self.tls()

    @property
    def host(self) -> str:
        """The host of the endpoint; the server's certificate must name it."""
        return urlsplit(self.endpoint).hostname or ""

    @property
    def port(self) -> int:
        """The port of the endpoint."""
        return urlsplit(self.endpoint).port or 0

    def tls(self) -> ssl.SSLContext:
        """Return what a connection is secured with: name and authority are always checked.

        Raises:
            ValueError: ``ca_file`` cannot be used. Not retryable.
        """
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except ssl.SSLError as error:
            raise ValueError(f"the option ca_file: {self.ca_file} is not PEM of any") from error
        except OSError as error:
            raise ValueError(
                f"the option ca_file: {self.ca_file} cannot be read: {error.strerror}"
            ) from error


def options_of(address: str, resource_id: str, generation: int) -> RedisOptions:
    """Return the options that an operator's address stands for.

    It is ``rediss://user:password@host:port/database?ca_file=…&key_prefix=…``; only host and port
    must be there.

    Raises:
        ValueError: It is none. The message does not repeat it. Not retryable.
    """
    try:
        parts = urlsplit(address)
        given = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        database = int(parts.path.removeprefix("/") or 0)
    except ValueError as error:
        raise ValueError("the address is not rediss://user:password@host:port/database") from error
    if unknown := sorted(given.keys() - {"ca_file", "key_prefix"}):
        raise ValueError(f"the address has an unknown parameter: {unknown[0]}")
    return RedisOptions(
        endpoint=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        resource_id=resource_id,
        generation=generation,
        options_revision="init",
        username=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        database=database,
        key_prefix=given.get("key_prefix", KEY_PREFIX),
        ca_file=given.get("ca_file"),
        pool_size=1,
        pool_ready=1,
    )


def _is_endpoint(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        bare = parts._replace(scheme="", netloc="").geturl()
        return (
            parts.scheme == "rediss"
            and bool(parts.hostname)
            and bool(parts.port)
            and "@" not in parts.netloc
            and not bare
            and endpoint.isprintable()
            and not endpoint.endswith(("?", "#"))
        )
    except ValueError:
        return False


def _require(name: str, holds: bool, otherwise: str = "is not valid") -> None:
    if not holds:
        raise ValueError(f"the option {name} {otherwise}")

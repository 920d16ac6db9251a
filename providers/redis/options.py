"""What the adapter has to be told. Options schema version 1 (004-37)."""

import ipaddress
import re
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

ADAPTER_ID = "redis.memory"
ADAPTER_VERSION = "1.0.0"
OPTIONS_SCHEMA_VERSION = 1
KEY_PREFIX = "agentweaver:knowledge"

_ENDPOINT = re.compile(
    r"rediss://(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9][A-Za-z0-9._-]{0,252})"
    r":(?P<port>[1-9][0-9]{0,4})"
)
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z]+://)((?P<username>[^:@/?#]*):(?P<password>[^/?#]*)@)?(?P<place>[^@/?#]*)"
    r"(/(?P<database>[0-9]{0,2}))?([?](?P<query>[^#]*))?"
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]{1,256}")
_PREFIX = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_PASSWORD = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,4096}")
_USERNAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,256}")
_PATH = re.compile(r"[^\x00]{1,4096}", re.DOTALL)
_PORT_MAX = 65_535
_GENERATION_MAX = 2**63 - 1
_DATABASE_MAX = 15
_POOL_SIZE_MAX = 200
_LIMIT_MS_MAX = 600_000
_IDENTIFIER_RULE = "must be 1-256 letters, digits or . _ : -"


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
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    database: int = 0
    key_prefix: str = KEY_PREFIX
    ca_file: str | None = None
    pool_size: int = 16
    pool_ready: int = 2
    connect_ms: int = 5_000

    def __post_init__(self) -> None:
        _require("endpoint", _is_endpoint(self.endpoint), "must be rediss://host:port and no more")
        _text("resource_id", self.resource_id, _IDENTIFIER, _IDENTIFIER_RULE)
        _number("generation", self.generation, 1, _GENERATION_MAX)
        _text("options_revision", self.options_revision, _IDENTIFIER, _IDENTIFIER_RULE)
        together = (self.username is None) == (self.password is None)
        _require("username", together, "and the option password go together")
        if self.username is not None:
            rule = "must be 1-256 characters without space and control characters"
            _text("username", self.username, _USERNAME, rule)
            rule = "must be 1-4096 characters without control characters"
            _text("password", self.password, _PASSWORD, rule)
        _number("database", self.database, 0, _DATABASE_MAX)
        rule = "must be 1-128 letters, digits or . _ : -"
        _text("key_prefix", self.key_prefix, _PREFIX, rule)
        if self.ca_file is not None:
            _text("ca_file", self.ca_file, _PATH, "must be the path of a file")
        _number("pool_size", self.pool_size, 1, _POOL_SIZE_MAX)
        _number("pool_ready", self.pool_ready, 1, self.pool_size)
        _number("connect_ms", self.connect_ms, 1, _LIMIT_MS_MAX)
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
            raise ValueError(
                f"the option ca_file: {self.ca_file} holds no certificate in PEM"
            ) from error
        except OSError as error:
            raise ValueError(
                f"the option ca_file: {self.ca_file} cannot be read: {error.strerror}"
            ) from error


def options_of(address: str, resource_id: str, generation: int) -> RedisOptions:
    """Return the options that an operator's address stands for.

    It is ``rediss://user:password@host:port/database?ca_file=…&key_prefix=…``; only host and port
    must be there. In user, password and parameters ``%`` and two digits stand for a byte.

    Raises:
        ValueError: It is none. The message does not repeat it. Not retryable.
    """
    given = _taken_apart(address)
    if given is None:
        raise ValueError(
            "the address is not rediss://user:password@host:port/database with ca_file and"
            " key_prefix as parameters at most"
        )
    return RedisOptions(
        resource_id=resource_id,
        generation=generation,
        options_revision="init",
        pool_size=1,
        pool_ready=1,
        **given,
    )


def _taken_apart(address: str) -> dict[str, Any] | None:
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return None
    query = found["query"] or ""
    try:
        given = parse_qsl(
            query, keep_blank_values=True, strict_parsing=bool(query), errors="strict"
        )
        parameters = dict(given)
        names = ("username", "password")
        told = {name: found[name] for name in names if found[name] is not None}
        known = {name: unquote(each, errors="strict") for name, each in told.items()}
    except ValueError:
        return None
    if len(parameters) < len(given) or not parameters.keys() <= {"ca_file", "key_prefix"}:
        return None
    endpoint, database = found["scheme"] + found["place"], int(found["database"] or 0)
    return {"endpoint": endpoint, "database": database, **known, **parameters}


def _is_endpoint(endpoint: object) -> bool:
    found = _ENDPOINT.fullmatch(endpoint) if isinstance(endpoint, str) else None
    if found is None or int(found["port"]) > _PORT_MAX:
        return False
    return not found["host"].startswith("[") or _is_ipv6(found["host"].strip("[]"))


def _is_ipv6(host: str) -> bool:
    try:
        return bool(ipaddress.IPv6Address(host))
    except ValueError:
        return False


def _text(name: str, value: object, pattern: re.Pattern[str], rule: str) -> None:
    _require(name, isinstance(value, str) and bool(pattern.fullmatch(value)), rule)


def _number(name: str, value: object, least: int, most: int) -> None:
    holds = type(value) is int and least <= value <= most
    _require(name, holds, f"must be a whole number from {least} to {most}")


def _require(name: str, holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"the option {name} {rule}")

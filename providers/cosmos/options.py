"""What the adapter has to be told. Options schema version 1 (004-36)."""

import base64
import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

ADAPTER_ID = "cosmos.memory"
ADAPTER_VERSION = "1.0.0"
OPTIONS_SCHEMA_VERSION = 1
SCHEME = "cosmos+https"

_FORM = (
    f"the address is not {SCHEME}://[:key@]host[:port]/database/container, the key percent-encoded"
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]{1,256}")
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff/\\?#]{1,255}")
_POOL_SIZE_MAX = 200
_LIMIT_MS_MAX = 600_000
_MARKER_MS_MAX = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CosmosOptions:
    """Where the resource is and what it must be. ``repr`` shows no key.

    Attributes:
        endpoint: ``https://host`` or ``https://host:port``, and nothing else.
        database: Name of the database, 1-255 characters without slashes, ``?`` and ``#``.
        container: Name of the container, likewise.
        resource_id: The marker's name, 1-256 identifier characters.
        generation: The marker's generation, from 1.
        options_revision: The operator's name for this set of options.
        key: The account's key, in base64; without it the identity of the process is used, as
            ``DefaultAzureCredential`` finds it.
        ca_file: PEM of the authorities that the server's certificate is checked with; by default
            those of the system.
        pool_size: Connections at most, 1-200.
        connect_ms: Time for one connection attempt.
        marker_ms: How old what is known of the marker may be, 0-30,000; 0: it is read in each
            call.

    Raises:
        ValueError: A value is outside its range, or ``ca_file`` cannot be used. The message names
            the option and does not repeat the value of a secret. Not retryable.
    """

    endpoint: str
    database: str
    container: str
    resource_id: str
    generation: int
    options_revision: str
    key: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    pool_size: int = 16
    connect_ms: int = 5_000
    marker_ms: int = _MARKER_MS_MAX

    def __post_init__(self) -> None:
        _require("endpoint", _is_endpoint(self.endpoint), "is not https://host:port")
        _require("database", _is_name(self.database))
        _require("container", _is_name(self.container))
        _require("resource_id", bool(_IDENTIFIER.fullmatch(self.resource_id)))
        _require("generation", self.generation >= 1)
        _require("options_revision", bool(_IDENTIFIER.fullmatch(self.options_revision)))
        _require("key", self.key is None or _is_key(self.key), "is not the key of an account")
        _require("pool_size", 1 <= self.pool_size <= _POOL_SIZE_MAX)
        _require("connect_ms", 1 <= self.connect_ms <= _LIMIT_MS_MAX)
        _require("marker_ms", 0 <= self.marker_ms <= _MARKER_MS_MAX)
        self.tls()

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


def options_of(address: str, resource_id: str, generation: int) -> CosmosOptions:
    """Return the options that an operator's address stands for.

    It is ``cosmos+https://:key@host:port/database/container?ca_file=…``, the key percent-encoded;
    key, port and file may be left out.

    Raises:
        ValueError: It is none. The message does not repeat it. Not retryable.
    """
    try:
        parts = urlsplit(address)
        given = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        _, database, container = parts.path.split("/")
    except ValueError as error:
        raise ValueError(_FORM) from error
    if parts.scheme != SCHEME or parts.username or parts.fragment:
        raise ValueError(_FORM)
    if unknown := sorted(given.keys() - {"ca_file"}):
        raise ValueError(f"the address has an unknown parameter: {unknown[0]}")
    return CosmosOptions(
        endpoint=f"https://{parts.netloc.rpartition('@')[2]}",
        database=unquote(database),
        container=unquote(container),
        resource_id=resource_id,
        generation=generation,
        options_revision="init",
        key=None if parts.password is None else unquote(parts.password),
        ca_file=given.get("ca_file"),
        pool_size=1,
        marker_ms=0,
    )


def _is_endpoint(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        bare = parts._replace(scheme="", netloc="").geturl()
        return (
            parts.scheme == "https"
            and bool(parts.hostname)
            and parts.port != 0
            and "@" not in parts.netloc
            and bare in {"", "/"}
            and endpoint.isprintable()
            and not endpoint.endswith(("?", "#"))
        )
    except ValueError:
        return False


def _is_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and not name.endswith(" ")


def _is_key(key: str) -> bool:
    try:
        return bool(base64.b64decode(key, validate=True))
    except ValueError:
        return False


def _require(name: str, holds: bool, otherwise: str = "is not valid") -> None:
    if not holds:
        raise ValueError(f"the option {name} {otherwise}")

"""Settings of the broker: a TOML file, overridden by the environment (``BROKER_SERVER__LISTEN``).

Settings are frozen. ``broker.safety`` refuses what would be unsafe to serve with.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from providers.entries import DIMENSION_MAX, MODEL_LENGTH_MAX

SECRET_BYTES_MAX: Final = 8 * 1024
WORKERS_MAX: Final = 64

_SECRETS: Final = (("store", "dsn"), ("embeddings", "key"))
"""Settings that may stand in a file of their own: the section and the name of each."""

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,256}$")]
Algorithm = Literal["RS256", "PS256", "ES256", "EdDSA"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServerSettings(_Frozen):
    """The listening side."""

    listen: str = "127.0.0.1:7400"
    """``host:port``. Anything but loopback needs a certificate."""
    tls_certificate_file: Path | None = None
    """PEM chain of the server. Together with ``tls_key_file``."""
    tls_key_file: Path | None = None
    client_ca_file: Path | None = None
    """PEM of authorities. With it, only clients with a certificate of theirs are served."""
    workers: Annotated[int, Field(ge=1, le=WORKERS_MAX)] = 1
    """How many processes serve. Each has pools of its own."""
    max_connection_age_seconds: Annotated[float, Field(ge=1, le=86_400)] = 1_800.0
    """After it a client is told to connect anew, so that connections spread over the workers."""
    health_listen: str | None = None
    """``host:port`` of the health service alone, in plaintext; absent: none."""
    reflection: bool = False
    """Whether server reflection is served."""
    metrics_listen: str | None = None
    """``host:port`` of the Prometheus endpoint; absent: none. Worker 0 takes this port, worker 1
    the next one, and so on."""
    drain_seconds: Annotated[float, Field(gt=0, le=300)] = 30.0
    """How long running calls may take after SIGTERM."""


class ClaimNames(_Frozen):
    """The names of the claims that bind a token; it may hold one of tenant and one of purpose."""

    project: str = "project_id"
    run: str = "run_id"
    tenant: tuple[str, ...] = (
        "tenant_id",
        "tid",
        "http://schemas.microsoft.com/identity/claims/tenantid",
    )
    purpose: tuple[str, ...] = ("purpose", "token_purpose")


class IssuerSettings(_Frozen):
    """One issuer of tokens."""

    issuer: str
    """Compared byte for byte with ``iss``."""
    audience: str
    """Must be among ``aud``."""
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)]
    jwks_file: Path | None = None
    """The key set as a file. Exactly one of file and URL."""
    jwks_url: str | None = None
    """The key set over https."""
    jwks_ca_file: Path | None = None
    """PEM of the authorities to trust for the URL; absent: those of the system."""
    claims: ClaimNames = ClaimNames()
    leeway_seconds: Annotated[float, Field(ge=0, le=30)] = 10.0


class PeerSettings(_Frozen):
    """A service that the broker calls."""

    address: str
    """``host:port``."""
    root_certificates_file: Path | None = None
    """PEM of the authorities to trust; absent: those that gRPC brings."""
    client_certificate_file: Path | None = None
    """PEM chain the broker shows. Together with ``client_key_file``."""
    client_key_file: Path | None = None
    plaintext_loopback: bool = False
    """Whether to call without TLS: loopback only, development only."""
    timeout_seconds: Annotated[float, Field(gt=0, le=10)] = 2.0
    """The most one call may take."""


class OwnerSettings(PeerSettings):
    """The Projects & Config owner."""

    streams: bool = False
    """Whether it answers StreamRunAuthority, which is then asked in place of GetRunAuthority."""


class EventsSettings(PeerSettings):
    """The Events service, which accepted effects are delivered to."""

    audience: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    """The audience of its tokens, told to callers whose token it refuses."""
    unscoped_reads: bool = False
    """Whether it may read receipts back without naming their run, as its release before did."""


class StoreSettings(_Frozen):
    """The broker's own PostgreSQL schema."""

    dsn: SecretStr
    """``postgresql://…`` of the runtime role. Given here or by ``dsn_file``."""
    dsn_file: Path | None = None
    """The file that holds ``dsn``, such as a mounted secret. Read once, at start."""
    pool_size: Annotated[int, Field(ge=1, le=100)] = 4

    @model_validator(mode="before")
    @classmethod
    def _read_dsn(cls, given: Any) -> Any:
        file = given.get("dsn_file")
        return given if file is None else _with_secrets(given, {"dsn": file})


class ProviderSettings(_Frozen):
    """One entry of the provider catalog."""

    provider_id: Identifier
    adapter: Identifier
    """The adapter's name; several entries may name one."""
    adapter_version: str
    """Must equal the version the adapter reports."""
    options_schema_version: Annotated[int, Field(ge=1)]
    options_revision: Identifier
    hosting: Identifier
    advertised_capabilities: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    enabled: bool = True
    options: Mapping[str, object] = Field(default_factory=dict, repr=False)
    """The adapter's own options; it checks them when it is opened."""
    option_files: Mapping[str, Path] = Field(default_factory=dict)
    """Options that are secrets: the name of each, and the file that holds it. Read at start."""

    @model_validator(mode="before")
    @classmethod
    def _read_options(cls, given: Any) -> Any:
        files = given.get("option_files") or {}
        return {**given, "options": _with_secrets(given.get("options") or {}, files)}


class ContextSettings(_Frozen):
    """The most that one context may be made of; a request can only ask for less (004-90)."""

    candidates: Annotated[int, Field(ge=1, le=10_000)] = 1_000
    """Records that a context is chosen from; with more it is refused."""
    items: Annotated[int, Field(ge=1, le=100)] = 20
    """Memories that may enter."""
    tokens: Annotated[int, Field(ge=1, le=16_000)] = 4_000
    """Tokens of 4 characters that the whole text may have."""


class RecallSettings(_Frozen):
    """What counts beside the query, as shares of a score: see ``retrieval.fitness``."""

    importance: Annotated[float, Field(ge=0, le=1)] = 0.05
    """By how much the most important memory fits better than the least."""
    recency: Annotated[float, Field(ge=0, le=1)] = 0.05
    """By how much a memory that was just written fits better than an old one."""
    recency_half_life_days: Annotated[float, Field(ge=1, le=3_650)] = 30.0
    """After how many days that is half as much."""


class NoEmbeddingsSettings(_Frozen):
    """No vectors: recall is by words alone."""

    provider: Literal["none"] = "none"


class LocalEmbeddingsSettings(_Frozen):
    """The model in the broker's own process. Needs the extra ``embeddings``."""

    provider: Literal["local"]


class HttpEmbeddingsSettings(_Frozen):
    """An endpoint that speaks as OpenAI's does."""

    provider: Literal["http"]
    endpoint: str
    """``https://…``, without the ``/embeddings`` that is put after it."""
    model: Annotated[str, StringConstraints(min_length=1, max_length=MODEL_LENGTH_MAX)]
    """Asked for, and kept with every vector: another model needs another name."""
    dimension: Annotated[int, Field(ge=1, le=DIMENSION_MAX)]
    """How many numbers its vectors have. Others are refused."""
    tenants: tuple[Identifier, ...] = ()
    """The tenants whose texts may be sent there; restricted ones never are."""
    key: SecretStr | None = None
    """Sent as a bearer token. Given here or by ``key_file``, or not at all."""
    key_file: Path | None = None
    """The file that holds ``key``. Read once, at start."""
    ca_file: Path | None = None
    """PEM of the authorities to trust; absent: those of the system."""
    allow_loopback: bool = False
    """Whether the endpoint may be on this machine."""
    timeout_seconds: Annotated[float, Field(gt=0, le=10)] = 2.0
    """The most one request may take."""
    code_points_max: Annotated[int, Field(ge=1, le=40_000)] = 8_000
    """How much of a text is sent; the rest counts for nothing. Models refuse what is too long."""

    @model_validator(mode="before")
    @classmethod
    def _read_key(cls, given: Any) -> Any:
        file = given.get("key_file")
        return given if file is None else _with_secrets(given, {"key": file})


EmbeddingsSettings = NoEmbeddingsSettings | LocalEmbeddingsSettings | HttpEmbeddingsSettings


class Settings(BaseSettings):
    """Everything the broker is configured with."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="BROKER_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
    )

    server: ServerSettings = ServerSettings()
    issuers: Annotated[tuple[IssuerSettings, ...], Field(min_length=1)]
    owner: OwnerSettings
    events: EventsSettings
    context: ContextSettings = ContextSettings()
    recall: RecallSettings = RecallSettings()
    embeddings: Annotated[EmbeddingsSettings, Field(discriminator="provider")] = (
        NoEmbeddingsSettings()
    )
    store: StoreSettings
    providers: Annotated[tuple[ProviderSettings, ...], Field(min_length=1)]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file."""
        return env_settings, init_settings


def read_secret(file: Path) -> str:
    """Return the one secret that a file holds, without the space around it.

    Raises:
        ValueError: empty, more than 8 KiB, or not UTF-8. The message does not repeat it.
        OSError: the file cannot be read.
    """
    with file.open("rb") as opened:
        content = opened.read(SECRET_BYTES_MAX + 1)
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError:
        secret = ""
    if not secret or len(content) > SECRET_BYTES_MAX:
        raise ValueError(f"{file} must hold one secret of at most {SECRET_BYTES_MAX} bytes")
    return secret


def _with_secrets(given: Mapping[str, Any], files: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return settings with those that stand in files of their own; each may be given only once."""
    twice = sorted(given.keys() & files.keys())
    if twice:
        raise ValueError(f"{twice[0]} is given twice: as it is, and as a file")
    return {**given, **{name: _secret(name, Path(file)) for name, file in files.items()}}


def _secret(name: str, file: Path) -> str:
    try:
        return read_secret(file)
    except OSError as error:
        raise ValueError(f"{name}: {file} cannot be read: {error.strerror}") from error


def load_settings(file: Path) -> Settings:
    """Read settings from a TOML file and the environment.

    Raises:
        pydantic.ValidationError: names each setting that is missing or wrong.
        OSError, ValueError: the file cannot be read, or is no TOML; names it.
    """
    return parse_settings(read_settings(file), named=str(file))


def read_settings(file: Path) -> str:
    """Read the text of a settings file.

    Raises:
        OSError, ValueError: it cannot be read, or is no text; names it.
    """
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not TOML: it is not UTF-8") from error


def parse_settings(text: str, *, named: str) -> Settings:
    """Read settings from TOML and the environment. ``named`` says where the text came from.

    Raises:
        pydantic.ValidationError: names each setting that is missing or wrong.
        ValueError: not TOML; names where it came from.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{named} is not TOML: {error}") from error
    _give_way(found)
    return Settings(**found)


def _give_way(found: Mapping[str, Any]) -> None:
    """Let a secret of the environment win over its other form in the file."""
    for section, name in _SECRETS:
        table = found.get(section)
        for given, other in ((name, f"{name}_file"), (f"{name}_file", name)):
            if isinstance(table, dict) and os.environ.get(f"BROKER_{section}__{given}".upper()):
                table.pop(other, None)

"""Opens channels to the services the broker calls, and refuses unsafe addresses."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from grpc import aio

METADATA_BYTES = 64 * 1024
ANSWER_BYTES_MAX = 256 * 1024
RECEIVE_BYTES_MAX = 16 * 1024 * 1024
TIMEOUT_S_MAX = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSettings:
    """Where a service that the broker calls is, and how it is reached.

    ``address`` is ``host:port``. TLS always, with the given root certificates or those gRPC brings,
    and with a client certificate where both of its files are given. ``plaintext_loopback`` is for
    development: it needs a loopback address. ``timeout_s`` bounds one call, at most 30 seconds.

    Raises:
        ValueError: an unsafe or incomplete combination.
    """

    address: str
    timeout_s: float = 2.0
    root_ca_file: Path | None = None
    client_certificate_file: Path | None = None
    client_key_file: Path | None = None
    plaintext_loopback: bool = False

    def __post_init__(self) -> None:
        """Refuse what is unsafe."""
        host = _host(self.address)
        if not 0.0 < self.timeout_s <= TIMEOUT_S_MAX:
            raise ValueError("timeout_s must be above 0 and at most 30")
        if (self.client_certificate_file is None) != (self.client_key_file is None):
            raise ValueError("a client certificate needs its key, and a key its certificate")
        if self.plaintext_loopback and not _is_loopback(host):
            raise ValueError("plaintext is for loopback addresses only")
        if self.plaintext_loopback and (self.root_ca_file or self.client_certificate_file):
            raise ValueError("plaintext and certificates exclude each other")


def open_channel(settings: PeerSettings, *, service_config: str | None = None) -> aio.Channel:
    """Open the channel: one connection that all calls share, no proxy, no retries.

    ``service_config`` is what retries and bounds calls where that is wanted.

    An answer may be 256 KiB, or more where much was asked for. The channel itself takes 16 MiB:
    beyond its own limit gRPC answers with the status of an overloaded server, and the two could not
    be told apart.

    Raises:
        OSError: a certificate file cannot be read.
    """
    options: list[tuple[str, int | str]] = [
        ("grpc.max_metadata_size", METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", METADATA_BYTES),
        ("grpc.max_receive_message_length", RECEIVE_BYTES_MAX),
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.keepalive_permit_without_calls", 0),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1_000),
        ("grpc.max_reconnect_backoff_ms", 5_000),
    ]
    if service_config is not None:
        options.append(("grpc.service_config", service_config))
    if settings.plaintext_loopback:
        return aio.insecure_channel(settings.address, options=options)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_content(settings.root_ca_file),
        private_key=_content(settings.client_key_file),
        certificate_chain=_content(settings.client_certificate_file),
    )
    return aio.secure_channel(settings.address, credentials, options=options)


def _host(address: str) -> str:
    parts = urlsplit(f"//{address}")
    if parts.hostname is None or parts.port is None:
        raise ValueError("the address must be host:port")
    if parts.netloc != address or "@" in address:
        raise ValueError("the address must be host:port and nothing else")
    return parts.hostname


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _content(file: Path | None) -> bytes | None:
    return None if file is None else file.read_bytes()

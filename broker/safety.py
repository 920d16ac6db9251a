"""Refuses settings that are unsafe to serve with, before anything is opened."""

import ipaddress
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from broker import certificates as pem
from broker.certificates import CertificateError
from broker.config import (
    EmbeddingsSettings,
    HttpEmbeddingsSettings,
    IssuerSettings,
    PeerSettings,
    ServerSettings,
    Settings,
)
from broker.embeddings.addresses import refusal
from providers.address import fault

DEV_ISSUER: Final = "https://dev.invalid"
PORT_MAX: Final = 65_535

_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_KEY: Final = re.compile(r"[\x21-\x7e]{1,4096}")


class UnsafeConfigurationError(Exception):
    """The settings must not be served with. Names the setting; the process ends."""


def verify(settings: Settings, *, development: bool) -> None:
    """Refuse settings that are unsafe to serve with. ``development`` is true under ``broker dev``.

    Raises:
        UnsafeConfigurationError: names the setting and the rule.
    """
    _verify_server(settings.server)
    for issuer in settings.issuers:
        _verify_issuer(issuer, development=development)
    _verify_peer("owner", settings.owner, development=development)
    _verify_peer("events", settings.events, development=development)
    _verify_embeddings(settings.embeddings)
    verify_dsn("store.dsn", settings.store.dsn.get_secret_value())
    ids = [provider.provider_id for provider in settings.providers]
    if len(ids) != len(set(ids)):
        raise UnsafeConfigurationError("providers: every provider_id may stand once")


def _verify_server(server: ServerSettings) -> None:
    _verify_address("server.listen", server.listen)
    if server.metrics_listen is not None:
        _verify_address("server.metrics_listen", server.metrics_listen)
    if (server.tls_certificate_file is None) != (server.tls_key_file is None):
        raise UnsafeConfigurationError(
            "server.tls_certificate_file and server.tls_key_file go together"
        )
    if server.tls_certificate_file is None and not is_loopback(server.listen):
        raise UnsafeConfigurationError("server.listen beyond loopback needs a certificate")
    if server.tls_certificate_file is None and server.client_ca_file is not None:
        raise UnsafeConfigurationError("server.client_ca_file needs a certificate of the server")
    if server.health_listen is not None:
        _verify_address("server.health_listen", server.health_listen)
    _verify_ports(server)
    _verify_certificates(server)


def _verify_address(name: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > PORT_MAX:
        raise UnsafeConfigurationError(f"{name} must be host:port")


def _verify_ports(server: ServerSettings) -> None:
    """Refuse ports that meet, also of different hosts: a host may be a name."""
    first = _port(server.metrics_listen)
    if first + server.workers - 1 > PORT_MAX:
        raise UnsafeConfigurationError("server.metrics_listen: too few ports for the workers")
    taken = [_port(server.listen), _port(server.health_listen)]
    taken += range(first, first + server.workers) if first else ()
    taken = [port for port in taken if port]
    if len(taken) != len(set(taken)):
        raise UnsafeConfigurationError(
            "server.listen, server.health_listen and server.metrics_listen, of which each worker "
            "takes a port, must not meet"
        )


def _port(address: str | None) -> int:
    return int(address.rpartition(":")[2]) if address else 0


def _verify_certificates(server: ServerSettings) -> None:
    _verify_pair("server.tls", server.tls_certificate_file, server.tls_key_file)
    _verify_file("server.client_ca_file", pem.check_authorities, server.client_ca_file)


def _verify_pair(prefix: str, chain: Path | None, key: Path | None) -> None:
    if chain is not None and key is not None:
        public = _verify_file(f"{prefix}_key_file", pem.check_key, key)
        _verify_file(f"{prefix}_certificate_file", partial(pem.check_chain, key=public), chain)


def _verify_file(setting: str, check: Callable[[Path], Any], file: Path | None) -> Any:
    try:
        return None if file is None else check(file)
    except CertificateError as error:
        raise UnsafeConfigurationError(f"{setting}: {error}") from error


def _verify_issuer(issuer: IssuerSettings, *, development: bool) -> None:
    if issuer.issuer == DEV_ISSUER and not development:
        raise UnsafeConfigurationError(f"issuers: {DEV_ISSUER} is served by broker dev only")
    if not issuer.issuer.startswith("https://"):
        raise UnsafeConfigurationError("issuers.issuer must be an https URL")
    if (issuer.jwks_file is None) == (issuer.jwks_url is None):
        raise UnsafeConfigurationError("issuers: exactly one of jwks_file and jwks_url")
    if issuer.jwks_url is not None and not issuer.jwks_url.startswith("https://"):
        raise UnsafeConfigurationError("issuers.jwks_url must be https")
    _verify_file("issuers.jwks_ca_file", pem.check_bundle, issuer.jwks_ca_file)


def _verify_peer(name: str, peer: PeerSettings, *, development: bool) -> None:
    if peer.plaintext_loopback and not development:
        raise UnsafeConfigurationError(f"{name}.plaintext_loopback is for development only")
    if peer.plaintext_loopback and not is_loopback(peer.address):
        raise UnsafeConfigurationError(f"{name}.plaintext_loopback needs a loopback {name}.address")
    authorities = f"{name}.root_certificates_file"
    _verify_file(authorities, pem.check_bundle, peer.root_certificates_file)
    _verify_pair(f"{name}.client", peer.client_certificate_file, peer.client_key_file)


def _verify_embeddings(given: EmbeddingsSettings) -> None:
    if not isinstance(given, HttpEmbeddingsSettings):
        return
    if why := _endpoint_fault(given.endpoint, allow_loopback=given.allow_loopback):
        raise UnsafeConfigurationError(f"embeddings.endpoint {why}")
    if given.key is not None and not _KEY.fullmatch(given.key.get_secret_value()):
        raise UnsafeConfigurationError(
            "embeddings.key must be printable ASCII without spaces, at most 4,096 characters"
        )
    _verify_file("embeddings.ca_file", pem.check_bundle, given.ca_file)


def _endpoint_fault(endpoint: str, *, allow_loopback: bool) -> str | None:
    """Say what is wrong; the addresses of a name are looked at when it is called."""
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "must be an https URL"
    if parts.scheme != "https" or not host or not _PRINTABLE.fullmatch(endpoint):
        return "must be an https URL"
    if "@" in parts.netloc or "?" in endpoint or "#" in endpoint:
        return "must have no user, query or fragment"
    try:
        why = refusal(host, allow_loopback=allow_loopback)
    except ValueError:  # it is a name
        return None
    return f"is {why}" if why else None


def verify_dsn(name: str, dsn: str) -> None:
    """Refuse a PostgreSQL address that is unsafe, or names files that no connection can come of.

    Raises:
        UnsafeConfigurationError: beyond loopback and sockets ``sslmode=verify-full`` is needed; or
            a file of authorities or of a certificate is not there, or is none.
    """
    if why := fault(dsn):
        raise UnsafeConfigurationError(f"{name} {why}")


def is_loopback(address: str) -> bool:
    """Tell whether ``host:port`` names this machine only."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

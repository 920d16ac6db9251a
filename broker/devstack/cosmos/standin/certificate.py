"""The certificate of the stand-in, kept so that clients may outlive a restart."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from broker.devstack.authority import LocalAuthority

RENEWAL = timedelta(days=7)
"""A certificate that is good for less time than this is replaced at a start."""


def server_context(directory: Path) -> ssl.SSLContext:
    """Returns what a server needs for TLS; ``ca.crt`` in the directory is what clients need."""
    certificate, key = directory / "server.crt", directory / "server.key"
    if not certificate.exists() or _ends_soon(certificate):
        LocalAuthority(directory)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def _ends_soon(path: Path) -> bool:
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    return certificate.not_valid_after_utc < datetime.now(UTC) + RENEWAL

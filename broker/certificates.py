"""Whether PEM files can be served with, found out before anything listens."""

from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import BasicConstraints, Certificate, load_pem_x509_certificates
from cryptography.x509.extensions import ExtensionNotFound


class CertificateError(Exception):
    """A file does not hold what it must. Names the file, and never shows what it holds."""


def check_key(file: Path) -> PublicKeyTypes:
    """Return the public half of the private key in a file.

    Raises:
        CertificateError: absent, not a private key, or under a password.
    """
    try:
        return load_pem_private_key(_read(file), password=None).public_key()
    except (ValueError, TypeError) as error:
        raise CertificateError(f"{file} holds no private key without a password") from error


def check_chain(file: Path, key: PublicKeyTypes) -> None:
    """Refuse a chain whose first certificate is not the one of a key, or that is not valid now.

    Raises:
        CertificateError: absent, not certificates, another key's, expired, or not valid yet.
    """
    chain = _certificates(file)
    if _bytes(chain[0].public_key()) != _bytes(key):
        raise CertificateError(f"{file} begins with a certificate of another key")
    for certificate in chain:
        _check_time(file, certificate)


def check_authorities(file: Path) -> None:
    """Refuse a file that does not hold certificates of authorities only.

    Raises:
        CertificateError: absent, not certificates, expired, not valid yet, or a certificate that
            may sign nothing.
    """
    for certificate in _certificates(file):
        _check_time(file, certificate)
        if not _may_sign(certificate):
            raise CertificateError(f"{file} holds a certificate that is not an authority's")


def check_bundle(file: Path) -> None:
    """Refuse a file to trust that holds no certificate.

    Raises:
        CertificateError: absent, or not certificates.
    """
    _certificates(file)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CertificateError(f"{file} cannot be read: {error.strerror}") from error


def _certificates(file: Path) -> list[Certificate]:
    try:
        return load_pem_x509_certificates(_read(file))
    except ValueError as error:
        raise CertificateError(f"{file} holds no certificate") from error


def _check_time(file: Path, certificate: Certificate) -> None:
    now = datetime.now(UTC)
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if end < now:
        raise CertificateError(f"{file} holds a certificate that expired on {end:%Y-%m-%d}")
    if begin > now:
        raise CertificateError(f"{file} holds a certificate that is valid from {begin:%Y-%m-%d} on")


def _may_sign(certificate: Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(BasicConstraints).value.ca
    except (ExtensionNotFound, ValueError):
        return False


def _bytes(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

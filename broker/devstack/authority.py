"""An authority of one machine: issues certificates for `localhost`, and for one client."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from broker.devstack import files

LIFETIME = timedelta(days=30)
SKEW = timedelta(minutes=5)

# Python 3.13 and newer hold certificates to RFC 5280, which asks for this and for key identifiers.
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


class LocalAuthority:
    """A new authority; its key is never written, so it issues nothing later.

    Attributes:
        ca_file: Its certificate. ``server.crt`` and ``server.key`` beside it are for servers on
            this machine, ``client.crt`` and ``client.key`` for a client.
    """

    def __init__(self, directory: Path) -> None:
        """Makes the authority and writes what it issues, over what was there.

        Args:
            directory: Where the files go; made when it is missing.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.ca_file = directory / "ca.crt"
        self.server = (directory / "server.crt", directory / "server.key")
        self.client = (directory / "client.crt", directory / "client.key")
        self._key = generate_private_key(SECP256R1())
        self._name = _name("development authority")
        public = self._key.public_key()
        ca = (
            self._certificate(self._name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_SIGNS_CERTIFICATES, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )
        files.replace(self.ca_file, ca.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        self._issue(self.server, ExtendedKeyUsageOID.SERVER_AUTH, x509.DNSName("localhost"), here)
        self._issue(self.client, ExtendedKeyUsageOID.CLIENT_AUTH, x509.DNSName("client"))

    def _issue(
        self,
        pair: tuple[Path, Path],
        usage: x509.ObjectIdentifier,
        *names: x509.GeneralName,
    ) -> None:
        key = generate_private_key(SECP256R1())
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            self._certificate(_name(pair[0].stem), key.public_key())
            .add_extension(by, critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        files.replace(pair[1], secret, files.PRIVATE)
        files.replace(pair[0], certificate.public_bytes(Encoding.PEM))

    def _certificate(
        self, subject: x509.Name, key: EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return x509.CertificateBuilder(
            self._name, subject, key, x509.random_serial_number(), now - SKEW, now + LIFETIME
        )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

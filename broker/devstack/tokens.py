"""Issues the tokens of a development machine.

Each directory has a key of its own, so a token of one ``broker dev`` is worth nothing to another.
``broker serve`` refuses the issuer named here.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from broker.devstack import files
from broker.devstack.errors import DevStackError

ISSUER = "https://dev.invalid"
AUDIENCE = "knowledge-broker"
ALGORITHM = "EdDSA"
LIFETIME = timedelta(hours=1)

# The names the broker looks for unless it is told others.
TENANT_CLAIM = "tenant_id"
PROJECT_CLAIM = "project_id"
RUN_CLAIM = "run_id"
PURPOSE_CLAIM = "purpose"


class TokenIssuer:
    """Signs tokens with the key of a directory, which is made when there is none.

    Attributes:
        jwks_file: The public keys, as a JSON Web Key Set; anybody may read it.
    """

    def __init__(self, directory: Path, issuer: str = ISSUER) -> None:
        """Opens the key, or makes it.

        Args:
            directory: Where the private key (mode 0600) and the public keys are kept.
            issuer: Who the tokens say they are from.

        Raises:
            DevStackError: The private key is damaged.
        """
        self._issuer = issuer
        self._key_file = directory / "signing-key.pem"
        self.jwks_file = directory / "jwks.json"
        if not self._key_file.exists():
            directory.mkdir(parents=True, exist_ok=True)
            self.rotate(keep_old=False)
        self._key = _load(self._key_file)

    @property
    def kid(self) -> str:
        """The id of the key that signs now: its RFC 7638 thumbprint."""
        return str(_public_jwk(self._key)["kid"])

    def mint(
        self,
        subject: str,
        *,
        tenant: str | None = None,
        project: str | None = None,
        run: str | None = None,
        purpose: str | None = None,
        lifetime: timedelta = LIFETIME,
        kid: str | None = None,
    ) -> str:
        """Returns a signed token.

        Args:
            subject: Who calls.
            tenant: The tenant the token asserts; none by default.
            project: The project the token is bound to; none by default.
            run: The run the token is bound to; none by default.
            purpose: The purpose the token is bound to; none by default.
            lifetime: How long it counts; negative for one that has expired.
            kid: Another key id to write in the header, to see it refused.
        """
        now = datetime.now(UTC)
        claims: dict[str, Any] = {
            "iss": self._issuer,
            "aud": AUDIENCE,
            "sub": subject,
            "iat": now,
            "exp": now + lifetime,
            "jti": str(uuid4()),
        }
        bounds = {
            TENANT_CLAIM: tenant,
            PROJECT_CLAIM: project,
            RUN_CLAIM: run,
            PURPOSE_CLAIM: purpose,
        }
        claims |= {name: value for name, value in bounds.items() if value is not None}
        return jwt.encode(claims, self._key, ALGORITHM, headers={"kid": kid or self.kid})

    def rotate(self, *, keep_old: bool = True) -> str:
        """Makes a new key, signs with it from now on, and returns its id.

        Args:
            keep_old: Whether tokens signed before go on counting.
        """
        self._key = Ed25519PrivateKey.generate()
        kept = self._public_keys() if keep_old else []
        # Verifiers must know the key before the first token signed with it is out.
        jwks = {"keys": [_public_jwk(self._key), *kept]}
        files.replace(self.jwks_file, json.dumps(jwks, indent=2) + "\n")
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        files.replace(self._key_file, pem, files.PRIVATE)
        return self.kid

    def _public_keys(self) -> list[dict[str, str]]:
        keys: list[dict[str, str]] = json.loads(self.jwks_file.read_bytes())["keys"]
        return keys


def _load(path: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except ValueError as error:
        raise DevStackError(f"{path} is damaged; delete it to get a new key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DevStackError(f"{path} does not hold an Ed25519 key")
    return key


def _public_jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    point = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    members = {"crv": "Ed25519", "kty": "OKP", "x": _base64url(point)}
    thumbprint = json.dumps(members, sort_keys=True, separators=(",", ":")).encode()
    kid = _base64url(hashlib.sha256(thumbprint).digest())
    return {**members, "alg": ALGORITHM, "use": "sig", "kid": kid}


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

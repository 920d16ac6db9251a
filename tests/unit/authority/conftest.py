"""Two trusted issuers whose key sets are files, and clocks that stand still."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from broker.authority.issuers import KeysFile, TrustedIssuer
from broker.authority.tokens import TokenVerifier
from tests.fixtures import forged_tokens as forge

SHARED_KID = "key-1"


def rsa(name: str = "a") -> forge.PrivateKey:
    return forge.private_key("2048", name)


RSA = forge.Signer(rsa(), SHARED_KID, "RS256")
PSS = forge.Signer(rsa("pss"), "pss-only", "PS256")
EC = forge.Signer(forge.private_key("EC", "a"), "ec", "ES256")
OTHER = forge.Signer(forge.private_key("OKP", "b"), SHARED_KID, "EdDSA")


def first_keys() -> bytes:
    private = {"d": forge.encode(b"1" * 32)}
    return forge.key_set(
        forge.public_jwk(RSA.key, SHARED_KID),
        forge.public_jwk(PSS.key, "pss-only", alg="PS256", use="sig"),
        forge.public_jwk(EC.key, "ec", key_ops=["verify"]),
        forge.public_jwk(RSA.key, "for-encryption", use="enc"),
        forge.public_jwk(RSA.key, "wraps", key_ops=["wrapKey"]),
        forge.public_jwk(EC.key, "leaked", **private),
        forge.public_jwk(forge.private_key("P-384", "a"), "p384"),
        forge.public_jwk(RSA.key, "twice"),
        forge.public_jwk(EC.key, "twice"),
        forge.public_jwk(RSA.key, "wrong-alg", alg="ES256"),
        forge.public_jwk(forge.private_key("1024", "weak"), "weak"),
        {"kty": "oct", "kid": "symmetric", "k": forge.encode(b"0" * 32)},
        {"kty": "RSA", "kid": "broken", "n": 5, "e": "AQAB"},
        forge.public_jwk(RSA.key, None),
    )


@dataclass
class World:
    """Everything one verification needs."""

    folder: Path
    clocks: forge.Clocks = field(default_factory=forge.Clocks)

    def __post_init__(self) -> None:
        self.first = self.folder / "first.json"
        self.second = self.folder / "second.json"
        self.first.write_bytes(first_keys())
        self.second.write_bytes(forge.key_set(forge.public_jwk(OTHER.key, SHARED_KID)))
        self.verifier = TokenVerifier(
            [
                TrustedIssuer(
                    issuer=forge.ISSUER,
                    audience=forge.AUDIENCE,
                    algorithms=frozenset({"RS256", "PS256", "ES256"}),
                    keys=KeysFile(self.first),
                    leeway_s=30.0,
                ),
                TrustedIssuer(
                    issuer=forge.OTHER_ISSUER,
                    audience=forge.AUDIENCE,
                    algorithms=frozenset({"EdDSA"}),
                    keys=KeysFile(self.second),
                    leeway_s=0.0,
                ),
            ],
            wall=self.clocks.wall,
            monotonic=self.clocks.monotonic,
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.verifier.aclose()


def public_pem() -> bytes:
    return RSA.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

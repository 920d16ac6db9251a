"""Reads a JWK set: which public key may verify which algorithm."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from broker.authority.syntax import is_label

DOCUMENT_BYTES_MAX = 256 * 1024
KEYS_MAX = 100
RSA_BITS_MIN = 2048
RSA_BITS_MAX = 8192

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

_READERS = {
    "RSA": RSAAlgorithm.from_jwk,
    "EC": ECAlgorithm.from_jwk,
    "OKP": OKPAlgorithm.from_jwk,
}


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key and the algorithms it may verify."""

    public: PublicKey = field(repr=False)
    algorithms: frozenset[str]


def read_key_set(document: bytes) -> Mapping[str, VerificationKey]:
    """Return the usable keys of a JWK set by ``kid``.

    Entries that are no public verification key (private, symmetric, for encryption, of an unknown
    type, without ``kid``, RSA outside 2048-8192 bits) are left out, as RFC 7517 asks. A ``kid``
    that two usable keys carry names neither.

    Raises:
        ValueError: not a JWK set, larger than 256 KiB or 100 keys, or without any usable key.
    """
    if len(document) > DOCUMENT_BYTES_MAX:
        raise ValueError("the key set is larger than 256 KiB")
    entries = _entries(document)
    usable: dict[str, list[VerificationKey]] = {}
    for entry in entries:
        key = _key(entry) if isinstance(entry, dict) else None
        if key is not None:
            usable.setdefault(entry["kid"], []).append(key)
    keys = {kid: found[0] for kid, found in usable.items() if len(found) == 1}
    if not keys:
        raise ValueError("the key set holds no usable key")
    return keys


def _entries(document: bytes) -> list[Any]:
    try:
        value = json.loads(document.decode("utf-8"))
    except RecursionError:
        raise ValueError("the key set is nested too deeply") from None
    entries = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(entries, list) or len(entries) > KEYS_MAX:
        raise ValueError("the key set is not an object with at most 100 keys")
    return entries


def _key(entry: dict[str, Any]) -> VerificationKey | None:
    kid, kty = entry.get("kid"), entry.get("kty")
    if not isinstance(kid, str) or not is_label(kid) or "d" in entry:
        return None
    if entry.get("use", "sig") != "sig" or not _may_verify(entry.get("key_ops", ["verify"])):
        return None
    public = _public(entry, kty) if isinstance(kty, str) and kty in _READERS else None
    algorithms = _algorithms(public)
    if "alg" in entry:
        algorithms = algorithms & {str(entry["alg"])}
    if public is None or not algorithms:
        return None
    return VerificationKey(public, algorithms)


def _may_verify(operations: object) -> bool:
    return isinstance(operations, list) and "verify" in operations


def _public(entry: dict[str, Any], kty: str) -> PublicKey | None:
    try:
        key = _READERS[kty](entry)
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
        return None
    return key if isinstance(key, PublicKey) else None


def _algorithms(public: PublicKey | None) -> frozenset[str]:
    if isinstance(public, RSAPublicKey) and RSA_BITS_MIN <= public.key_size <= RSA_BITS_MAX:
        return frozenset({"RS256", "PS256"})
    if isinstance(public, EllipticCurvePublicKey) and isinstance(public.curve, SECP256R1):
        return frozenset({"ES256"})
    if isinstance(public, Ed25519PublicKey):
        return frozenset({"EdDSA"})
    return frozenset()

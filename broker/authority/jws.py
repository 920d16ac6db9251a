"""Takes a compact JWT apart and verifies its signature. Knows nothing about what it says."""

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

import jwt

from broker.authority.faults import Fault, refusal
from broker.authority.issuers import ALGORITHMS
from broker.authority.jwk import VerificationKey
from broker.authority.syntax import is_label

TOKEN_MAX = 16_384

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\Z")
_KEYS_FROM_OUTSIDE = frozenset({"crit", "jku", "jwk", "x5u", "x5c", "b64"})
_TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_VERIFIERS = {name: jwt.PyJWS(algorithms=[name]) for name in ALGORITHMS}


@dataclass(frozen=True, slots=True)
class Unverified:
    """A token whose form is right and whose signature nobody has looked at yet."""

    token: str = field(repr=False)
    algorithm: str
    key_id: str
    payload: dict[str, Any] = field(repr=False)


def take_apart(token: str) -> Unverified:
    """Decode the header and payload of a compact JWT.

    Members that occur twice, headers that bring or point to keys, and critical extensions are
    refused: two readers of such a token could understand it differently.

    Raises:
        TokenInvalidError: too large, malformed, or a header that is not accepted. Not retryable.
    """
    if len(token) > TOKEN_MAX:
        raise refusal(Fault.TOO_LARGE)
    parts = _COMPACT.match(token)
    header = _members(parts[1]) if parts else None
    payload = _members(parts[2]) if parts else None
    if header is None or payload is None:
        raise refusal(Fault.MALFORMED)
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not _KEYS_FROM_OUTSIDE.isdisjoint(header) or not isinstance(algorithm, str):
        raise refusal(Fault.HEADER)
    if not isinstance(key_id, str) or not is_label(key_id):
        raise refusal(Fault.HEADER)
    if "typ" in header and str(header["typ"]).lower() not in _TYPES:
        raise refusal(Fault.TYPE)
    return Unverified(token=token, algorithm=algorithm, key_id=key_id, payload=payload)


def verify(unverified: Unverified, key: VerificationKey) -> None:
    """Verify the signature with a key that fits the token's algorithm.

    Raises:
        TokenInvalidError: the signature does not verify. Not retryable.
    """
    if not _verifies(unverified, key):
        raise refusal(Fault.SIGNATURE)


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members, each of which may occur once.

    Raises:
        ValueError: a member occurs twice.
    """
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice")
    return members


def _verifies(unverified: Unverified, key: VerificationKey) -> bool:
    algorithm = unverified.algorithm
    try:
        _VERIFIERS[algorithm].decode_complete(
            unverified.token, key=key.public, algorithms=[algorithm]
        )
    except (jwt.PyJWTError, ValueError, TypeError):
        return False
    return True


def _members(part: str) -> dict[str, Any] | None:
    try:
        text = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        value = json.loads(
            text.decode("utf-8"), object_pairs_hook=unique_members, parse_constant=_no_constant
        )
    except (binascii.Error, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

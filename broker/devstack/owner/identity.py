"""Who calls: the owner's own verification of the token, independent of the broker's."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jwt

from broker.devstack import tokens
from broker.devstack.owner.refusal import denied, unauthenticated

Metadata = Iterable[tuple[str, str | bytes]]

_LEEWAY_S = 30
_VERIFIED_MAX = 1_024
_REQUIRED = ["iss", "aud", "sub", "iat", "exp"]
_IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]{1,256}", re.ASCII)


class Shown(NamedTuple):
    """What a caller shows, as it came: the token, and every value of ``x-tenant``."""

    token: str
    selectors: tuple[str | bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a verified token and the metadata beside it say.

    Attributes:
        tenant_claim: The tenant the token asserts.
        tenant_selector: The tenant the caller asked for in ``x-tenant``.
        bound_project_id: The project the token is bound to.
        bound_run_id: The run the token is bound to; never without a project.
    """

    issuer: str
    subject: str
    tenant_claim: str | None
    tenant_selector: str | None
    bound_project_id: str | None
    bound_run_id: str | None
    purpose: str | None


def read_keys(content: bytes) -> dict[str, jwt.PyJWK]:
    """Returns the keys of a JSON Web Key Set by their ids."""
    keys = jwt.PyJWKSet.from_json(content.decode()).keys
    return {key.key_id: key for key in keys if key.key_id}


def is_identifier(value: str) -> bool:
    """Whether it is 1 to 256 ASCII letters, digits and ``. _ : -``."""
    return _IDENTIFIER.fullmatch(value) is not None


class Verifier:
    """Verifies tokens of one issuer. What verified is not verified again while the keys stay."""

    def __init__(self, issuer: str = tokens.ISSUER) -> None:
        """Begins with nothing verified."""
        self._issuer = issuer
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._verified: dict[str, dict[str, Any]] = {}

    def claims(self, token: str, keys: Mapping[str, jwt.PyJWK]) -> dict[str, Any]:
        """Returns the claims of a token.

        Raises:
            RefusalError: The token does not count, or not any more.
        """
        if keys is not self._keys or len(self._verified) >= _VERIFIED_MAX:
            self._keys = keys
            self._verified.clear()
        known = self._verified.get(token)
        if known is None or float(known["exp"]) + _LEEWAY_S <= time.time():
            known = self._verified[token] = _verified(token, keys, self._issuer)
        return known


def shown(metadata: Metadata) -> Shown:
    """Returns what a caller shows.

    Raises:
        RefusalError: There is not exactly one bearer token.
    """
    bearers: list[str | bytes] = []
    selectors: list[str | bytes] = []
    for name, value in metadata:
        match name.lower():
            case "authorization":
                bearers.append(value)
            case "x-tenant":
                selectors.append(value)
    return Shown(_token(bearers), tuple(selectors))


def identify(claims: Mapping[str, Any], selectors: Sequence[str | bytes]) -> Identity:
    """Returns who calls, by the claims of a token that counts and the values of ``x-tenant``.

    Raises:
        RefusalError: A claim or ``x-tenant`` is malformed.
    """
    project, run = _claim(claims, tokens.PROJECT_CLAIM), _claim(claims, tokens.RUN_CLAIM)
    if run is not None and project is None:
        raise unauthenticated("the token is bound to a run without a project")
    return Identity(
        issuer=claims["iss"],
        subject=claims["sub"],
        tenant_claim=_claim(claims, tokens.TENANT_CLAIM),
        tenant_selector=_selector(selectors),
        bound_project_id=project,
        bound_run_id=run,
        purpose=_purpose(claims),
    )


def _token(values: Sequence[str | bytes]) -> str:
    if len(values) != 1 or not isinstance(values[0], str):
        raise unauthenticated("exactly one authorization value is needed")
    scheme, _, token = values[0].partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise unauthenticated("authorization must be a bearer token")
    return token


def _selector(values: Sequence[str | bytes]) -> str | None:
    if not values:
        return None
    if len(values) != 1 or not isinstance(values[0], str) or not is_identifier(values[0]):
        raise denied("x-tenant must be one identifier")
    return values[0]


def _verified(token: str, keys: Mapping[str, jwt.PyJWK], issuer: str) -> dict[str, Any]:
    try:
        key = keys[jwt.get_unverified_header(token)["kid"]]
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[tokens.ALGORITHM],
            issuer=issuer,
            audience=tokens.AUDIENCE,
            leeway=_LEEWAY_S,
            options={"require": _REQUIRED},
        )
    except (jwt.PyJWTError, KeyError) as error:
        raise unauthenticated(f"the token does not count: {type(error).__name__}") from error
    return claims


def _claim(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if not isinstance(value, str) or not is_identifier(value):
        raise unauthenticated(f"the claim {name} is malformed")
    return value


def _purpose(claims: Mapping[str, Any]) -> str | None:
    """Any text: whoever serves knowledge refuses every purpose."""
    value = claims.get(tokens.PURPOSE_CLAIM)
    if tokens.PURPOSE_CLAIM in claims and (not isinstance(value, str) or not value):
        raise unauthenticated(f"the claim {tokens.PURPOSE_CLAIM} is malformed")
    return value

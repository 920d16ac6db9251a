"""What the development issuer signs, and with which key."""

from __future__ import annotations

import json
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest

from broker.devstack import tokens
from broker.devstack.owner.identity import Verifier, read_keys
from broker.devstack.owner.refusal import RefusalError
from broker.devstack.tokens import TokenIssuer


@pytest.fixture
def issuer(tmp_path: Path) -> TokenIssuer:
    return TokenIssuer(tmp_path / "keys")


def verify(issuer: TokenIssuer, token: str) -> dict[str, Any]:
    keys = read_keys(issuer.jwks_file.read_bytes())
    claims: dict[str, Any] = jwt.decode(
        token,
        keys[jwt.get_unverified_header(token)["kid"]],
        algorithms=[tokens.ALGORITHM],
        issuer="https://dev.invalid",
        audience="knowledge-broker",
    )
    return claims


def test_plain_token_has_the_required_claims_and_no_bounds(issuer: TokenIssuer) -> None:
    claims = verify(issuer, issuer.mint("olga"))
    assert claims.keys() == {"iss", "aud", "sub", "iat", "exp", "jti"}
    assert claims["sub"] == "olga"
    assert claims["exp"] - claims["iat"] == 3600


def test_bounds_are_written_under_the_default_claim_names(issuer: TokenIssuer) -> None:
    token = issuer.mint("olga", tenant="acme", project="atlas", run="run-1", purpose="audit")
    claims = verify(issuer, token)
    bounds = {name: claims[name] for name in ("tenant_id", "project_id", "run_id", "purpose")}
    assert bounds == {
        "tenant_id": "acme",
        "project_id": "atlas",
        "run_id": "run-1",
        "purpose": "audit",
    }


def test_no_two_tokens_are_equal(issuer: TokenIssuer) -> None:
    assert issuer.mint("olga") != issuer.mint("olga")


def test_negative_lifetime_gives_an_expired_token(issuer: TokenIssuer) -> None:
    with pytest.raises(jwt.ExpiredSignatureError):
        verify(issuer, issuer.mint("olga", lifetime=timedelta(minutes=-5)))


def test_key_id_can_be_forged(issuer: TokenIssuer) -> None:
    assert jwt.get_unverified_header(issuer.mint("olga", kid="other"))["kid"] == "other"


def test_private_key_is_private_and_the_public_file_holds_no_secret(issuer: TokenIssuer) -> None:
    directory = issuer.jwks_file.parent
    assert stat.S_IMODE((directory / "signing-key.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE(issuer.jwks_file.stat().st_mode) == 0o644
    (key,) = json.loads(issuer.jwks_file.read_text())["keys"]
    assert key.keys() == {"kty", "crv", "x", "alg", "use", "kid"}


def test_key_survives_and_differs_between_directories(tmp_path: Path) -> None:
    first = TokenIssuer(tmp_path / "a")
    assert TokenIssuer(tmp_path / "a").kid == first.kid
    assert TokenIssuer(tmp_path / "b").kid != first.kid


def test_rotation_keeps_old_tokens_unless_told_otherwise(issuer: TokenIssuer) -> None:
    old = issuer.mint("olga")
    kid = issuer.rotate()
    new = issuer.mint("olga")
    assert jwt.get_unverified_header(new)["kid"] == kid
    assert verify(issuer, old)["sub"] == verify(issuer, new)["sub"] == "olga"
    issuer.rotate(keep_old=False)
    with pytest.raises(KeyError):
        verify(issuer, new)
    assert verify(TokenIssuer(issuer.jwks_file.parent), issuer.mint("olga"))


def test_a_token_that_verified_counts_until_it_ends(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered of a signature outlives neither the token nor its key."""
    keys, token, verifier = (
        read_keys(issuer.jwks_file.read_bytes()),
        issuer.mint("olga"),
        Verifier(),
    )
    claims = verifier.claims(token, keys)
    assert verifier.claims(token, keys) is claims
    with pytest.raises(RefusalError):
        verifier.claims(token, {})
    assert verifier.claims(token, keys) == claims
    monkeypatch.setattr("broker.devstack.owner.identity.time.time", lambda: claims["exp"] + 30.0)
    monkeypatch.setattr("broker.devstack.owner.identity.jwt.decode", expired)
    with pytest.raises(RefusalError, match="ExpiredSignatureError"):
        verifier.claims(token, keys)


def expired(*_: object, **_more: object) -> None:
    """Find what every token is in time."""
    raise jwt.ExpiredSignatureError

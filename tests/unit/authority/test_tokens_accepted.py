"""Tokens that pass, and for how long (004-02, 004-03, 004-10, 004-12)."""

import pytest

from broker.authority import jws
from broker.authority.jwk import VerificationKey
from broker.domain.call import Caller
from broker.domain.errors import TokenInvalidError
from tests.fixtures import forged_tokens as forge
from tests.fixtures.forged_tokens import ABSENT, NOW
from tests.unit.authority.conftest import EC, OTHER, PSS, RSA, SHARED_KID, World, first_keys


async def verify(world: World, token: str, tenant: str | None = None) -> Caller:
    return await world.verifier.verify([f"Bearer {token}"], [] if tenant is None else [tenant])


@pytest.mark.parametrize(
    "token",
    [
        RSA.token(),
        PSS.token(),
        EC.token(),
        forge.Signer(RSA.key, SHARED_KID, "PS256").token(),
        OTHER.token(iss=forge.OTHER_ISSUER),
        RSA.token(head=RSA.header(typ=ABSENT)),
        RSA.token(head=RSA.header(typ="at+JWT")),
        RSA.token(head=RSA.header(x5t="hint")),
        RSA.token(aud=["events-tests", forge.AUDIENCE]),
        RSA.token(exp=int(NOW) - 29),
        RSA.token(exp=NOW - 29.5),
        RSA.token(iat=int(NOW) + 30),
        RSA.token(nbf=int(NOW) + 30),
        RSA.token(sub="s" * 256),
        RSA.token(roles=["unknown claims are ignored"]),
    ],
    ids=[
        "rs256",
        "ps256",
        "es256",
        "ps256_with_a_key_without_alg",
        "eddsa",
        "no_typ",
        "typ_at_jwt",
        "thumbprint_hint",
        "one_of_two_audiences",
        "exp_one_second_inside",
        "exp_half_a_second_inside",
        "iat_at_the_leeway",
        "nbf_at_the_leeway",
        "longest_subject",
        "unknown_claim",
    ],
)
async def test_token_is_accepted(world: World, token: str) -> None:
    """004-03: verified, and accepted again from the cache."""
    assert await verify(world, token) == await verify(world, token)


async def test_largest_token(world: World) -> None:
    """004-03: 16,384 characters pass, one more does not."""
    shortest = len(RSA.token(filler=""))
    room = (jws.TOKEN_MAX - shortest) // 4 * 3
    fits = next(
        token
        for size in range(room + 3, room - 3, -1)
        if len(token := RSA.token(filler="x" * size)) <= jws.TOKEN_MAX
    )
    assert len(fits) >= jws.TOKEN_MAX - 1
    await verify(world, fits)
    with pytest.raises(TokenInvalidError, match="signature"):
        await verify(world, fits.ljust(jws.TOKEN_MAX, "A")[:-4] + "AAAA")
    with pytest.raises(TokenInvalidError, match="16384"):
        await verify(world, fits.ljust(jws.TOKEN_MAX + 1, "A"))


async def test_caller_holds_what_the_token_says(world: World) -> None:
    """004-02, 004-10: bounds, tenant and purpose as signed; the bearer as it came."""
    token = RSA.token(project_id="project-a", run_id="run-a", tid="tenant-a", purpose="events")
    caller = await world.verifier.verify([f"bearer {token}"], ["tenant-b"])
    assert caller == Caller(
        issuer=forge.ISSUER,
        subject="actor-a",
        bearer=f"bearer {token}",
        tenant_selector="tenant-b",
        tenant_claim="tenant-a",
        bound_project_id="project-a",
        bound_run_id="run-a",
        purpose="events",
    )
    assert token not in repr(caller)


async def test_unbound_caller(world: World) -> None:
    """004-10: claims that are absent bind to nothing."""
    caller = await verify(world, RSA.token())
    assert (caller.bound, caller.tenant_claim, caller.purpose) == (False, None, None)
    assert caller.tenant_selector is None


async def test_two_issuers_share_a_kid(world: World) -> None:
    """004-12: a key counts for its own issuer only, whatever its kid."""
    assert (await verify(world, RSA.token())).issuer == forge.ISSUER
    other = OTHER.token(iss=forge.OTHER_ISSUER)
    assert (await verify(world, other)).issuer == forge.OTHER_ISSUER
    crossed = forge.Signer(forge.private_key("OKP", "c"), SHARED_KID, "EdDSA")
    with pytest.raises(TokenInvalidError, match="signature"):
        await verify(world, crossed.token(iss=forge.OTHER_ISSUER))


async def test_cache_never_extends_expiry(world: World) -> None:
    """004-03: a cached token is refused from exp plus leeway on, and not before."""
    token = RSA.token(exp=int(NOW) + 20)
    await verify(world, token)
    world.clocks.advance(49.9)
    await verify(world, token)
    world.clocks.advance(0.1)
    with pytest.raises(TokenInvalidError, match="expired"):
        await verify(world, token)


async def test_cached_token_is_checked_against_a_clock_set_back(world: World) -> None:
    """004-03: every check but the signature is made on each call."""
    token = RSA.token(iat=int(NOW))
    await verify(world, token)
    world.clocks.time -= 31
    with pytest.raises(TokenInvalidError, match="not valid yet"):
        await verify(world, token)


@pytest.fixture
def verifications(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kid of every signature that was verified."""
    seen: list[str] = []
    real = jws.verify

    def counted(unverified: jws.Unverified, key: VerificationKey) -> None:
        seen.append(unverified.key_id)
        real(unverified, key)

    monkeypatch.setattr(jws, "verify", counted)
    return seen


async def test_signature_is_verified_once_in_sixty_seconds(
    world: World, verifications: list[str]
) -> None:
    """004-03: the cache saves the signature for 60 seconds, not longer."""
    token = RSA.token()
    await verify(world, token)
    world.clocks.advance(59.9)
    await verify(world, token)
    assert len(verifications) == 1
    world.clocks.advance(0.1)
    await verify(world, token)
    assert len(verifications) == 2


async def test_failures_are_not_cached(world: World, verifications: list[str]) -> None:
    """004-03: a token that was refused is judged afresh."""
    token = RSA.token(nbf=int(NOW) + 40)
    for _ in range(2):
        with pytest.raises(TokenInvalidError):
            await verify(world, token)
    assert len(verifications) == 2
    world.clocks.advance(10)
    await verify(world, token)
    assert len(verifications) == 3


async def test_key_rotation_drops_cached_signatures(world: World, verifications: list[str]) -> None:
    """004-03: a key that left the set verifies nothing any more, cached or not."""
    token, other = RSA.token(), OTHER.token(iss=forge.OTHER_ISSUER)
    await verify(world, token)
    await verify(world, other)
    world.first.write_bytes(forge.key_set(forge.public_jwk(EC.key, "ec")))
    with pytest.raises(TokenInvalidError, match="key"):
        await verify(world, token)
    await verify(world, other)
    assert len(verifications) == 2, "the other issuer's signatures stay cached"
    world.first.write_bytes(first_keys())
    await verify(world, token)
    assert len(verifications) == 3


async def test_key_replaced_under_the_same_kid(world: World) -> None:
    """004-03: the cache follows the key, not its name."""
    token = RSA.token()
    await verify(world, token)
    fresh = forge.private_key("2048", "fresh")
    world.first.write_bytes(forge.key_set(forge.public_jwk(fresh, SHARED_KID)))
    with pytest.raises(TokenInvalidError, match="signature"):
        await verify(world, token)
    await verify(world, forge.Signer(fresh, SHARED_KID, "RS256").token())

"""Every token that must not pass (004-03, 004-10, 004-12), one row for each cause."""

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest

from broker.authority.faults import Fault
from broker.domain.errors import TokenInvalidError
from tests.fixtures import forged_tokens as forge
from tests.fixtures.forged_tokens import ABSENT, NOW, payload_of
from tests.unit.authority.conftest import EC, OTHER, PSS, RSA, SHARED_KID, World, public_pem

GOOD_HEADER = json.dumps(RSA.header())[1:-1]
GOOD_PAYLOAD = json.dumps(payload_of())[1:-1]

Forged = Callable[[], str]


def with_header(**changes: object) -> Forged:
    return lambda: RSA.token(head=RSA.header(**changes))


def with_claims(**changes: Any) -> Forged:
    return lambda: RSA.token(**changes)


def raw_header(text: str) -> Forged:
    return lambda: RSA.token(head=text.encode())


def raw_payload(text: bytes) -> Forged:
    return lambda: RSA.token(body=text)


def unsigned(algorithm: str) -> Forged:
    return lambda: forge.assemble(
        {"alg": algorithm, "kid": SHARED_KID}, payload_of(), lambda _: b""
    )


def with_other_payload() -> str:
    head, _, signature = RSA.token().split(".")
    return ".".join([head, RSA.token(sub="actor-b").split(".")[1], signature])


def with_flipped_signature() -> str:
    head, body, signature = RSA.token().split(".")
    return f"{head}.{body}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"


def signed_by(signer: forge.Signer, kid: str, **claims: Any) -> Forged:
    return lambda: signer.token(head=signer.header(kid=kid), **claims)


FORM: dict[str, tuple[Forged, Fault]] = {
    "two_parts": (lambda: RSA.token().rsplit(".", 1)[0], Fault.MALFORMED),
    "five_parts": (lambda: RSA.token() + ".AA.AA", Fault.MALFORMED),
    "empty_signature": (lambda: RSA.token().rsplit(".", 1)[0] + ".", Fault.MALFORMED),
    "padded_parts": (lambda: RSA.token().replace(".", "=.", 1), Fault.MALFORMED),
    "impossible_base64": (lambda: "A." + RSA.token().split(".", 1)[1], Fault.MALFORMED),
    "standard_base64_letters": (lambda: "a+/b." + RSA.token().split(".", 1)[1], Fault.MALFORMED),
    "header_no_json": (raw_header("alg"), Fault.MALFORMED),
    "header_a_list": (raw_header('["RS256"]'), Fault.MALFORMED),
    "header_alg_twice": (raw_header("{" + GOOD_HEADER + ',"alg":"none"}'), Fault.MALFORMED),
    "header_too_deep": (
        raw_header('{"x":' + "[" * 5000 + "]" * 5000 + "}"),
        # From 3.12 on Python reads even that, and the member is what is refused.
        Fault.MALFORMED if sys.version_info < (3, 12) else Fault.HEADER,
    ),
    "payload_no_json": (raw_payload(b"{"), Fault.MALFORMED),
    "payload_a_list": (raw_payload(b"[1]"), Fault.MALFORMED),
    "payload_not_utf8": (raw_payload(b'{"iss":"\xff"}'), Fault.MALFORMED),
    "payload_utf16": (raw_payload(json.dumps(payload_of()).encode("utf-16")), Fault.MALFORMED),
    "payload_nan": (raw_payload(("{" + GOOD_PAYLOAD + ',"x":NaN}').encode()), Fault.MALFORMED),
    "payload_iss_twice": (
        raw_payload(("{" + GOOD_PAYLOAD + f',"iss":"{forge.ISSUER}"' + "}").encode()),
        Fault.MALFORMED,
    ),
    "payload_project_twice": (
        raw_payload(("{" + GOOD_PAYLOAD + ',"project_id":"p","project_id":"q"}').encode()),
        Fault.MALFORMED,
    ),
    "payload_nested_member_twice": (
        raw_payload(("{" + GOOD_PAYLOAD + ',"x":{"y":1,"y":1}}').encode()),
        Fault.MALFORMED,
    ),
    "too_large": (with_claims(filler="x" * 16_384), Fault.TOO_LARGE),
}

HEADER: dict[str, tuple[Forged, Fault]] = {
    "alg_absent": (with_header(alg=ABSENT), Fault.HEADER),
    "alg_a_number": (with_header(alg=256), Fault.HEADER),
    "alg_a_list": (with_header(alg=["RS256"]), Fault.HEADER),
    "kid_absent": (with_header(kid=ABSENT), Fault.HEADER),
    "kid_a_number": (with_header(kid=1), Fault.HEADER),
    "kid_empty": (with_header(kid=""), Fault.HEADER),
    "kid_too_long": (with_header(kid="k" * 257), Fault.HEADER),
    "crit": (with_header(crit=["exp"]), Fault.HEADER),
    "crit_b64": (with_header(crit=["b64"], b64=False), Fault.HEADER),
    "b64_alone": (with_header(b64=True), Fault.HEADER),
    "jku": (with_header(jku="https://evil.test/keys"), Fault.HEADER),
    "jwk": (with_header(jwk=forge.public_jwk(EC.key, "ec")), Fault.HEADER),
    "x5u": (with_header(x5u="https://evil.test/cert"), Fault.HEADER),
    "x5c": (with_header(x5c=["AA=="]), Fault.HEADER),
    "typ_of_another_use": (with_header(typ="logout+jwt"), Fault.TYPE),
    "typ_a_number": (with_header(typ=1), Fault.TYPE),
    "typ_null": (with_header(typ=None), Fault.TYPE),
}

ALGORITHM: dict[str, tuple[Forged, Fault]] = {
    "none_with_a_signature": (lambda: RSA.token(head=RSA.header(alg="none")), Fault.ALGORITHM),
    "none_without": (unsigned("none"), Fault.MALFORMED),
    "None_in_capitals": (with_header(alg="NONE"), Fault.ALGORITHM),
    "hs256_with_the_public_key": (
        lambda: forge.hs256_with(b"-" + public_pem(), SHARED_KID),
        Fault.ALGORITHM,
    ),
    "rs512": (with_header(alg="RS512"), Fault.ALGORITHM),
    "lower_case": (with_header(alg="rs256"), Fault.ALGORITHM),
    "of_the_other_issuer": (OTHER.token, Fault.ALGORITHM),
}

KEY: dict[str, tuple[Forged, Fault]] = {
    "unknown": (with_header(kid="nobody"), Fault.KEY),
    "of_another_type": (with_header(kid="ec"), Fault.KEY),
    "ec_token_with_an_rsa_kid": (signed_by(EC, SHARED_KID), Fault.KEY),
    "of_another_algorithm": (with_header(kid="pss-only"), Fault.KEY),
    "alg_contradicts_type": (with_header(kid="wrong-alg"), Fault.KEY),
    "for_encryption": (with_header(kid="for-encryption"), Fault.KEY),
    "for_wrapping": (with_header(kid="wraps"), Fault.KEY),
    "private": (signed_by(EC, "leaked"), Fault.KEY),
    "of_another_curve": (signed_by(EC, "p384"), Fault.KEY),
    "named_twice": (with_header(kid="twice"), Fault.KEY),
    "too_weak": (with_header(kid="weak"), Fault.KEY),
    "symmetric": (with_header(kid="symmetric"), Fault.KEY),
    "broken": (with_header(kid="broken"), Fault.KEY),
    "shared_kid_other_issuer": (
        lambda: forge.Signer(RSA.key, SHARED_KID, "RS256").token(iss=forge.OTHER_ISSUER),
        Fault.ALGORITHM,
    ),
}

SIGNATURE: dict[str, tuple[Forged, Fault]] = {
    "of_another_key": (signed_by(forge.Signer(PSS.key, "", "RS256"), SHARED_KID), Fault.SIGNATURE),
    "of_another_payload": (with_other_payload, Fault.SIGNATURE),
    "flipped": (with_flipped_signature, Fault.SIGNATURE),
    "pss_for_rs256": (
        lambda: forge.assemble(RSA.header(), payload_of(), forge.Signer(RSA.key, "", "PS256").sign),
        Fault.SIGNATURE,
    ),
    "ec_of_wrong_length": (
        lambda: forge.assemble(EC.header(), payload_of(), lambda _: b"1" * 63),
        Fault.SIGNATURE,
    ),
    "ec_of_zeros": (
        lambda: forge.assemble(EC.header(), payload_of(), lambda _: bytes(64)),
        Fault.SIGNATURE,
    ),
}

CLAIMS: dict[str, tuple[Forged, Fault]] = {
    "iss_absent": (with_claims(iss=ABSENT), Fault.ISSUER),
    "iss_a_list": (with_claims(iss=[forge.ISSUER]), Fault.ISSUER),
    "iss_without_slash": (with_claims(iss=forge.ISSUER[:-1]), Fault.ISSUER),
    "iss_in_capitals": (with_claims(iss=forge.ISSUER.upper()), Fault.ISSUER),
    "iss_of_nobody": (with_claims(iss="https://evil.test/"), Fault.ISSUER),
    "sub_absent": (with_claims(sub=ABSENT), Fault.SUBJECT),
    "sub_a_number": (with_claims(sub=7), Fault.SUBJECT),
    "sub_empty": (with_claims(sub=""), Fault.SUBJECT),
    "sub_blank": (with_claims(sub="  "), Fault.SUBJECT),
    "sub_with_a_line_end": (with_claims(sub="a\nb"), Fault.SUBJECT),
    "sub_with_half_a_character": (with_claims(sub="a\ud800"), Fault.SUBJECT),
    "sub_too_long": (with_claims(sub="s" * 257), Fault.SUBJECT),
    "aud_absent": (with_claims(aud=ABSENT), Fault.AUDIENCE),
    "aud_of_another": (with_claims(aud="events-tests"), Fault.AUDIENCE),
    "aud_list_of_others": (with_claims(aud=["events-tests", "x"]), Fault.AUDIENCE),
    "aud_empty_list": (with_claims(aud=[]), Fault.AUDIENCE),
    "aud_list_with_a_number": (with_claims(aud=[forge.AUDIENCE, 1]), Fault.AUDIENCE),
    "aud_an_object": (with_claims(aud={forge.AUDIENCE: 1}), Fault.AUDIENCE),
    "aud_a_part_of_the_name": (with_claims(aud=forge.AUDIENCE[:-1]), Fault.AUDIENCE),
    "aud_too_many": (with_claims(aud=[forge.AUDIENCE] * 65), Fault.AUDIENCE),
    "exp_absent": (with_claims(exp=ABSENT), Fault.TIMES),
    "exp_a_string": (with_claims(exp=str(int(NOW) + 60)), Fault.TIMES),
    "exp_true": (with_claims(exp=True), Fault.TIMES),
    "exp_null": (with_claims(exp=None), Fault.TIMES),
    "exp_negative": (with_claims(exp=-1), Fault.TIMES),
    "exp_infinite": (
        raw_payload(json.dumps(payload_of(exp=0)).replace('"exp": 0', '"exp": 1e999').encode()),
        Fault.TIMES,
    ),
    "exp_beyond_all_clocks": (with_claims(exp=2**53 + 1), Fault.TIMES),
    "iat_absent": (with_claims(iat=ABSENT), Fault.TIMES),
    "iat_a_string": (with_claims(iat="now"), Fault.TIMES),
    "nbf_a_string": (with_claims(nbf="now"), Fault.TIMES),
    "nbf_null": (with_claims(nbf=None), Fault.TIMES),
    "expired": (with_claims(exp=int(NOW) - 31), Fault.EXPIRED),
    "expired_at_the_edge": (with_claims(exp=int(NOW) - 30), Fault.EXPIRED),
    "issued_too_far_ahead": (with_claims(iat=int(NOW) + 31), Fault.NOT_YET),
    "not_before_too_far_ahead": (with_claims(nbf=int(NOW) + 31), Fault.NOT_YET),
}

BOUNDS: dict[str, tuple[Forged, Fault]] = {
    "project_a_number": (with_claims(project_id=1), Fault.BOUNDS),
    "project_null": (with_claims(project_id=None), Fault.BOUNDS),
    "project_a_list": (with_claims(project_id=["project-a", "project-a"]), Fault.BOUNDS),
    "project_empty": (with_claims(project_id=""), Fault.BOUNDS),
    "project_with_a_slash": (with_claims(project_id="a/b"), Fault.BOUNDS),
    "project_with_a_line_end": (with_claims(project_id="a\n"), Fault.BOUNDS),
    "project_too_long": (with_claims(project_id="p" * 257), Fault.BOUNDS),
    "project_not_ascii": (with_claims(project_id="projekt-ä"), Fault.BOUNDS),
    "run_an_object": (with_claims(project_id="p", run_id={}), Fault.BOUNDS),
    "run_without_project": (with_claims(run_id="run-a"), Fault.RUN_WITHOUT_PROJECT),
    "tenant_a_number": (with_claims(tenant_id=1), Fault.BOUNDS),
    "tenant_malformed": (with_claims(tenant_id="a b"), Fault.BOUNDS),
    "two_tenant_claims": (with_claims(tenant_id="t", tid="t"), Fault.BOUNDS),
    "purpose_null": (with_claims(purpose=None), Fault.BOUNDS),
    "purpose_empty": (with_claims(purpose=""), Fault.BOUNDS),
    "two_purpose_claims": (with_claims(purpose="x", token_purpose="x"), Fault.BOUNDS),
}

ROWS = [
    pytest.param(forged, fault, id=f"{part}-{name}")
    for part, table in {
        "form": FORM,
        "header": HEADER,
        "algorithm": ALGORITHM,
        "key": KEY,
        "signature": SIGNATURE,
        "claims": CLAIMS,
        "bounds": BOUNDS,
    }.items()
    for name, (forged, fault) in table.items()
]


@pytest.mark.parametrize(("forged", "fault"), ROWS)
async def test_forged_token_is_refused(
    world: World, forged: Forged, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    """004-03, 004-10, 004-12: refused for its own cause, and nothing said or logged holds it."""
    caplog.set_level(logging.DEBUG)
    token = forged()
    for _ in range(2):  # a refusal is not remembered as anything else
        with pytest.raises(TokenInvalidError) as refused:
            await world.verifier.verify([f"Bearer {token}"], [])
        assert refused.value.message == fault.value
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None
        assert token not in repr(refused.value)
    assert token not in caplog.text


AUTHORIZATIONS: dict[str, Callable[[str], list[str]]] = {
    "none": lambda _: [],
    "empty": lambda _: [""],
    "twice": lambda token: [f"Bearer {token}"] * 2,
    "two_different": lambda token: [f"Bearer {token}", "Bearer x"],
    "other_scheme": lambda token: [f"Basic {token}"],
    "no_scheme": lambda token: [token],
    "no_token": lambda _: ["Bearer "],
    "scheme_alone": lambda _: ["Bearer"],
    "two_spaces": lambda token: [f"Bearer  {token}"],
    "tab": lambda token: [f"Bearer\t{token}"],
    "space_after": lambda token: [f"Bearer {token} "],
    "line_end_after": lambda token: [f"Bearer {token}\n"],
    "two_joined": lambda token: [f"Bearer {token}, Bearer {token}"],
    "not_ascii": lambda token: [f"Bearer {token}ä"],
}


@pytest.mark.parametrize("values", AUTHORIZATIONS.values(), ids=AUTHORIZATIONS)
async def test_authorization_is_one_bearer(
    world: World, values: Callable[[str], list[str]]
) -> None:
    """004-03: exactly one authorization value, scheme Bearer, one token."""
    with pytest.raises(TokenInvalidError, match=r"exactly one authorization"):
        await world.verifier.verify(values(RSA.token()), [])


@pytest.mark.parametrize(
    "values",
    [["a", "a"], [""], ["a b"], ["a/b"], ["t" * 257], ["ä"], ["a\n"], ["a,b"]],
    ids=["twice", "empty", "space", "slash", "long", "not_ascii", "line_end", "comma"],
)
async def test_tenant_selector_is_at_most_one_identifier(world: World, values: list[str]) -> None:
    """004-04: x-tenant at most once, and an identifier."""
    with pytest.raises(TokenInvalidError, match=r"x-tenant at most once"):
        await world.verifier.verify([f"Bearer {RSA.token()}"], values)


def test_the_table_is_long_enough() -> None:
    """004-12: more than forty kinds of forged token."""
    assert len(ROWS) >= 40

"""Whatever is wrong with a caller or with what the owner says: one refusal, and nothing was done.

Every row calls every RPC of RecordService and BindingService, and SearchProject unless the token is
bound; what a row of grants is to ListProviders, which needs another permission, stands in
test_bindings.py. Each proves code, reason
and metadata, how often the owner was asked, that no provider was asked and that no row of a
provider was written.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from grpc import StatusCode
from jwt.algorithms import get_default_algorithms

from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import (
    CASES,
    Ground,
    Row,
    Says,
    bent,
    claiming,
    closes,
    each,
    fails,
    granting,
    ground,
    hangs,
    judge,
    projects_grant,
    rows_of,
    said,
    sends,
    without_selection,
)
from tests.fixtures.broker import Stand
from tests.fixtures.forged_tokens import Signer, assemble
from tests.fixtures.identity import KID
from tests.fixtures.owner_answers import padded
from tests.fixtures.record_calls import GET, LIST_PROVIDERS, SEARCH_PROJECT, outcomes

__all__ = ["ground"]

APK: Final = owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE
SELECTION: Final = owners.PERMISSION_READ_RUN_SELECTION
PROJECTS: Final = owners.PERMISSION_READ_PROJECTS
WRITE: Final = owners.PERMISSION_WRITE_PROJECTS
TENANT: Final = owners.RESOURCE_TYPE_TENANT
PLATFORM: Final = owners.RESOURCE_TYPE_PLATFORM
PROJECT: Final = owners.RESOURCE_TYPE_PROJECT


# -------------------- tokens


def bearing(*values: str) -> Says:
    """Say these values of ``authorization``."""
    return lambda stand, project: [("authorization", value) for value in values]


def adding(*pairs: tuple[str, str | bytes]) -> Says:
    """Say something beside a right token."""
    return lambda stand, project: [*stand.metadata(), *pairs]


def claims_of(stand: Stand, **changes: Any) -> dict[str, Any]:
    """Return what a right token says, with changes."""
    part = stand.identity.token().split(".")[1]
    decoded: dict[str, Any] = json.loads(_decoded(part))
    return decoded | changes


def _decoded(part: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def forged(make: Callable[[Stand, Signer], str]) -> Says:
    """Say a token made with the right key in a way no library would make it."""

    def says(stand: Stand, project: str) -> list[tuple[str, str | bytes]]:
        signer = Signer(stand.identity._key, KID, "ES256")
        return [("authorization", f"Bearer {make(stand, signer)}")]

    return says


def with_header(**header: object) -> Says:
    """Say a token with another header."""
    return forged(
        lambda stand, signer: signer.token(head=signer.header(**header), body=claims_of(stand))
    )


def unsigned(signature: bytes) -> Says:
    """Say a token of algorithm ``none``."""
    head = {"alg": "none", "kid": KID, "typ": "JWT"}
    return forged(lambda stand, _: assemble(head, claims_of(stand), lambda _: signature))


def _hmac_with_public_key(stand: Stand, signer: Signer) -> str:
    public = signer.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    algorithm: Any = get_default_algorithms()["HS256"]
    return assemble(
        {"alg": "HS256", "kid": KID},
        claims_of(stand),
        lambda message: algorithm.sign(message, public),
    )


def _other_key(stand: Stand, _: Signer) -> str:
    return Signer(generate_private_key(SECP256R1()), KID, "ES256").token(body=claims_of(stand))


def _tampered(stand: Stand, _: Signer) -> str:
    head, body, signature = stand.identity.token().split(".")
    other = stand.identity.token("actor-b").split(".")[1]
    assert body != other
    return f"{head}.{other}.{signature}"


def _doubled(stand: Stand, signer: Signer) -> str:
    body = json.dumps(claims_of(stand))[:-1] + ',"project_id":"a","project_id":"b"}'
    return signer.token(body=body.encode())


token = rows_of("004-03, 004-12", StatusCode.UNAUTHENTICATED, "TOKEN_INVALID", 0)
bound = rows_of("004-10, 004-11", StatusCode.PERMISSION_DENIED, "TOKEN_BINDING_MISMATCH", 0)
TOKEN_ROWS: Final = (
    token("token_absent", says=bearing()),
    token("token_twice", says=lambda stand, _: stand.metadata() * 2),
    token("token_in_binary_too", says=adding(("authorization-bin", b"x"))),
    token("other_scheme", says=bearing("Basic dXNlcjpwYXNz")),
    token("token_empty", says=bearing("Bearer ")),
    token("two_spaces", says=lambda s, _: [("authorization", f"Bearer  {s.identity.token()}")]),
    token("token_malformed", says=bearing("Bearer not-a-token")),
    token("token_of_two_parts", says=bearing("Bearer e30.e30")),
    token("token_too_large", says=bearing("Bearer " + "a" * 16_385)),
    token("token_expired", says=claiming(exp=1_700_000_000)),
    token("token_not_valid_yet", says=claiming(nbf=4_000_000_000)),
    token("wrong_issuer", says=claiming(iss="https://evil.test")),
    token("issuer_with_a_slash_more", says=claiming(iss="https://identity.test/")),
    token("issuer_absent", says=claiming(iss=None)),
    token("wrong_audience", says=claiming(aud="somebody-else")),
    token("audience_absent", says=claiming(aud=None)),
    token("subject_absent", says=claiming(sub=None)),
    token("expiry_absent", says=claiming(exp=None)),
    token("algorithm_none", says=unsigned(b"")),
    token("algorithm_none_with_a_signature", says=unsigned(b"signature")),
    token("algorithm_hs256_with_the_public_key", says=forged(_hmac_with_public_key)),
    token("foreign_key", says=forged(_other_key)),
    token("unknown_key_id", says=with_header(kid="other-key")),
    token("tampered", says=forged(_tampered)),
    token("brings_its_own_key", says=with_header(jwk={"kty": "EC"})),
    token("points_to_a_key", says=with_header(jku="https://evil.test/keys")),
    token("critical_extension", says=with_header(crit=["b64"])),
    token("run_without_project", says=claiming(run_id="run-a")),
    token("two_tenant_claims", says=claiming(tid="tenant-a")),
    token("project_claim_twice", says=forged(_doubled)),
    token("project_claim_malformed", says=claiming(project_id="a/b")),
    token("selector_twice", says=adding(*[("x-tenant", "tenant-a")] * 2), proves="004-04"),
    token("selector_malformed", says=adding(("x-tenant", "a/b")), proves="004-04"),
    token("selector_empty", says=adding(("x-tenant", "")), proves="004-04"),
    token("selector_in_binary", says=adding(("x-tenant-bin", b"tenant-a")), proves="004-04"),
    bound("purpose_bound", says=claiming(purpose="export"), reason="TOKEN_PURPOSE_BOUND"),
    bound("project_bound_elsewhere", says=claiming(project_id="elsewhere")),
    bound("run_bound_elsewhere", says=claiming(project_id=lambda p: p, run_id="run-b")),
    bound("run_bound_in_another_case", says=claiming(project_id=lambda p: p, run_id="RUN-A")),
)

# -------------------- the owner's answers

denied = rows_of(
    "004-05, 004-14",
    StatusCode.PERMISSION_DENIED,
    "PERMISSION_MISSING",
    1,
    metadata={"permission": "AccessPrivateKnowledge"},
)
no_selection = rows_of(
    "004-09",
    StatusCode.PERMISSION_DENIED,
    "PERMISSION_MISSING",
    1,
    metadata={"permission": "ReadRunSelection"},
)
GRANT_ROWS: Final = (
    denied("owner_denies", script=fails(StatusCode.PERMISSION_DENIED)),
    denied("project_unknown", script=fails(StatusCode.NOT_FOUND)),
    denied("no_grants", script=bent(granting())),
    denied(
        "no_grants_and_no_selection",
        script=bent(each(granting(), without_selection)),
    ),
    denied(
        "metadata_reader",
        script=bent(granting(projects_grant(PROJECTS, SELECTION))),
        proves="004-07, B6",
    ),
    denied("writer", script=bent(granting(projects_grant(WRITE))), proves="004-08"),
    denied(
        "writer_who_reads",
        script=bent(granting(projects_grant(WRITE, PROJECTS, SELECTION))),
        proves="004-08",
    ),
    denied(
        "platform_only",
        script=bent(granting((PLATFORM, "platform", (APK, SELECTION)))),
        proves="004-06",
    ),
    denied(
        "platform_named_as_the_project",
        script=bent(granting((PLATFORM, None, (APK, SELECTION)))),
        proves="004-06",
    ),
    denied("another_project", script=bent(granting((PROJECT, "elsewhere", (APK, SELECTION))))),
    denied(
        "another_tenant",
        script=bent(granting((TENANT, "tenant-b", (APK,)), projects_grant(SELECTION))),
        proves="004-06",
    ),
    no_selection("knowledge_alone", script=bent(granting(projects_grant(APK, WRITE, PROJECTS)))),
    no_selection(
        "tenant_alone", script=bent(granting((TENANT, "tenant-a", (APK, WRITE, SELECTION))))
    ),
    no_selection(
        "selection_on_the_platform",
        script=bent(granting(projects_grant(APK), (PLATFORM, "platform", (SELECTION,)))),
    ),
    no_selection(
        "selection_on_another_project",
        script=bent(granting(projects_grant(APK), (PROJECT, "elsewhere", (SELECTION,)))),
    ),
)

unavailable = rows_of("004-14", StatusCode.UNAVAILABLE, "AUTHORITY_UNAVAILABLE", 1, retry=True)
invalid = rows_of("004-13", StatusCode.INTERNAL, "AUTHORITY_RESPONSE_INVALID", 1)
invalid_tenant = rows_of("004-12", StatusCode.INTERNAL, "AUTHORITY_RESPONSE_INVALID", 1)
project_bound = claiming(project_id=lambda project: project)
run_bound = claiming(project_id=lambda project: project, run_id="run-a")


def _grants(answer: Any) -> Any:
    return answer.context.grants


OWNER_ROWS: Final = (
    Row(
        name="owner_rejects_the_token",
        proves="004-14",
        code=StatusCode.UNAUTHENTICATED,
        reason="TOKEN_REJECTED_BY_OWNER",
        questions=1,
        script=fails(StatusCode.UNAUTHENTICATED),
    ),
    unavailable("owner_unavailable", script=fails(StatusCode.UNAVAILABLE)),
    unavailable("owner_overloaded", script=fails(StatusCode.RESOURCE_EXHAUSTED)),
    unavailable("owner_too_late", script=fails(StatusCode.DEADLINE_EXCEEDED)),
    unavailable("owner_hangs", script=hangs()),
    unavailable("owner_broken", script=fails(StatusCode.INTERNAL)),
    unavailable("owner_ends", script=fails(StatusCode.CANCELLED)),
    invalid("owner_out_of_range", script=fails(StatusCode.OUT_OF_RANGE)),
    invalid("answer_empty", script=sends(b"")),
    invalid("answer_garbage", script=sends(b"\xff\xff\xff\xff")),
    invalid("answer_of_300_kib", script=sends(padded(300 * 1024))),
    invalid("other_issuer", script=bent(said(issuer="https://evil.test"))),
    invalid("other_actor", script=bent(said(actor_id="actor-b"))),
    invalid("actor_in_another_case", script=bent(said(actor_id="Actor-A"))),
    invalid("contract_version_2", script=bent(said(contract_version=2))),
    invalid("contract_version_absent", script=bent(said(contract_version=0))),
    invalid("membership_revision_0", script=bent(said(membership_revision=0))),
    invalid(
        "unknown_resource_type",
        script=bent(lambda answer: setattr(_grants(answer)[0], "resource_type", 99)),
    ),
    invalid(
        "unspecified_resource_type",
        script=bent(lambda answer: setattr(_grants(answer)[0], "resource_type", 0)),
    ),
    invalid(
        "unknown_permission",
        script=bent(lambda a: setattr(_grants(a)[0].permissions[0], "permission", 99)),
    ),
    invalid(
        "unspecified_permission",
        script=bent(lambda a: setattr(_grants(a)[0].permissions[0], "permission", 0)),
    ),
    invalid(
        "role_revision_0",
        script=bent(lambda a: setattr(_grants(a)[0].permissions[3], "role_revision", 0)),
    ),
    invalid(
        "project_granted_twice",
        script=bent(granting(projects_grant(APK), projects_grant(SELECTION))),
    ),
    invalid(
        "malformed_and_without_grants",
        proves="004-13: the form is judged first",
        script=bent(each(granting(), said(contract_version=2))),
    ),
    invalid("bounds_added", script=bent(said(bound_project_id="elsewhere")), proves="004-10"),
    invalid(
        "bounds_missing",
        says=project_bound,
        script=bent(said(bound_project_id=None)),
        proves="004-10",
    ),
    invalid(
        "run_bound_missing", says=run_bound, script=bent(said(bound_run_id=None)), proves="004-10"
    ),
    invalid(
        "run_bound_added",
        says=project_bound,
        script=bent(said(bound_run_id="run-a")),
        proves="004-10",
    ),
    invalid(
        "bound_elsewhere", says=run_bound, script=bent(said(bound_run_id="run-b")), proves="004-10"
    ),
    invalid(
        "run_bound_without_project",
        says=run_bound,
        script=bent(said(bound_project_id=None)),
        proves="004-10",
    ),
    invalid("purpose_added", script=bent(said(token_purpose="export")), proves="004-11"),
    invalid_tenant("tenant_absent", script=bent(said(tenant_id=""))),
    invalid_tenant("tenant_of_nobody", script=bent(said(tenant_id="tenant-b"))),
    invalid_tenant("selector_of_another_tenant", says=adding(("x-tenant", "tenant-b"))),
    invalid_tenant("selector_in_another_case", says=adding(("x-tenant", "Tenant-A"))),
    invalid_tenant(
        "selector_alone_of_another_tenant",
        says=lambda s, _: s.metadata(s.identity.token(tenant_id=None), x_tenant="b"),
    ),
)


BOUND: Final = (project_bound, run_bound)
"""Tokens that SearchProject refuses for what they are."""

OF_A_RUN: Final = {"run_bound_elsewhere", "run_bound_in_another_case"}
"""Rows that mean nothing to a call that names no run."""


def with_search(row: Row) -> Row:
    """Call SearchProject too, which needs the permissions of a run and an unbound token."""
    return row if row.says in BOUND else replace(row, cases=(*row.cases, SEARCH_PROJECT))


def with_providers(row: Row) -> Row:
    """Call the two RPCs that name no run too."""
    wider = with_search(row)
    return replace(wider, cases=(*wider.cases, LIST_PROVIDERS))


@pytest.mark.parametrize("row", TOKEN_ROWS, ids=lambda row: row.name)
async def test_token(ground: Ground, row: Row) -> None:
    """004-03, 004-04, 004-10, 004-11, 004-12: judged by the token alone; no owner is asked."""
    replies = await judge(ground, row if row.name in OF_A_RUN else with_providers(row))
    assert len({reply.message for reply in replies.values()}) == 1


@pytest.mark.parametrize("row", GRANT_ROWS, ids=lambda row: row.name)
async def test_grants(ground: Ground, row: Row) -> None:
    """004-05, 004-06, 004-07, 004-08, 004-09, 001-14, 001-29, B6: one question, and nothing more.

    Who may not see a project is refused by every RPC: told nothing, and not everything.
    """
    await judge(ground, with_search(row))


@pytest.mark.parametrize("row", OWNER_ROWS, ids=lambda row: row.name)
async def test_owner(ground: Ground, row: Row) -> None:
    """004-10, 004-11, 004-12, 004-13, 004-14: the owner's answer is refused, and asked for once."""
    await judge(ground, with_providers(row))


async def test_owner_closes(ground: Ground) -> None:
    """004-14: the connection ends while the owner is asked; the next call finds it again."""
    port = ground.stand.owner.port
    for case in CASES:  # one after the other: no connection ends before it stands
        row = unavailable("owner_closes", script=closes(port), cases=(case,))
        await judge(ground, row)
    assert outcomes(await ground.call((GET,))) == {GET: ("OK", "")}

"""The owner client and both checks against a real gRPC server that misbehaves (004-01..17)."""

import asyncio
import logging
from collections.abc import Callable

import grpc
import pytest

from broker.authority.checks import OwnerAuthority
from broker.domain.authority import KNOWLEDGE, Need, Permission
from broker.domain.errors import (
    AuthorityResponseInvalidError,
    AuthorityUnavailableError,
    BrokerError,
    PermissionMissingError,
    RunSelectionInvalidError,
    TokenRejectedByOwnerError,
)
from broker.outbound import ANSWER_BYTES_MAX, METADATA_BYTES
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.owner_answers import BEARER, SCOPE, answer, caller, padded
from tests.fixtures.scripted_owner import Context, Script, ScriptedOwner, fails, gives
from tests.integration.authority.conftest import SECRET, call_of, refused


async def test_metadata_is_forwarded_once_and_unchanged(
    owner: ScriptedOwner, authority: OwnerAuthority, streams: bool
) -> None:
    """004-02: bearer, tenant selector and request id, each exactly once, byte for byte."""
    await authority.check(call_of(caller(tenant_selector="tenant-a")), SCOPE, KNOWLEDGE)
    (seen,) = owner.metadata
    ours = [entry for entry in seen if entry[0] != "user-agent"]
    of_the_rpc = [] if streams else [("x-request-id", "request-1")]
    assert sorted(ours) == [("authorization", BEARER), *of_the_rpc, ("x-tenant", "tenant-a")]
    assert owner.request_ids == ["request-1"]
    (request,) = owner.requests
    assert (request.project_id, request.run_id) == (SCOPE.project_id, SCOPE.run_id)


async def test_no_selector_is_made_up(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-02: x-tenant goes out only where it came in, also when the token names a tenant."""
    await authority.check(call_of(caller(tenant_claim="tenant-a")), SCOPE, KNOWLEDGE)
    assert "x-tenant" not in dict(owner.metadata[0])


async def test_nothing_is_remembered(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-01, 004-15, 004-16: one RPC for each check; a revocation counts at once."""
    call = call_of()
    first = await authority.check(call, SCOPE, KNOWLEDGE)
    await authority.recheck(first, KNOWLEDGE)
    assert len(owner.requests) == 2
    revoked = answer()
    del revoked.context.grants[:]
    owner.script = gives(revoked)
    with pytest.raises(PermissionMissingError):
        await authority.recheck(first, KNOWLEDGE)
    with pytest.raises(PermissionMissingError):
        await authority.check(call, SCOPE, KNOWLEDGE)
    assert len(owner.requests) == 4


async def test_calls_share_one_connection(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-01: fifty checks at the same time, fifty RPCs, one connection."""
    callers = [caller(subject=f"actor-{n}") for n in range(50)]
    outcomes = await asyncio.gather(
        *(authority.check(call_of(said), SCOPE, KNOWLEDGE) for said in callers),
        return_exceptions=True,
    )
    assert all(isinstance(outcome, AuthorityResponseInvalidError) for outcome in outcomes)
    assert len(owner.requests) == 50
    assert len(owner.peers) == 1


STATUSES: dict[grpc.StatusCode, type[BrokerError]] = {
    grpc.StatusCode.CANCELLED: AuthorityUnavailableError,
    grpc.StatusCode.UNKNOWN: AuthorityUnavailableError,
    grpc.StatusCode.INVALID_ARGUMENT: AuthorityResponseInvalidError,
    grpc.StatusCode.DEADLINE_EXCEEDED: AuthorityUnavailableError,
    grpc.StatusCode.NOT_FOUND: PermissionMissingError,
    grpc.StatusCode.ALREADY_EXISTS: AuthorityResponseInvalidError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionMissingError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: AuthorityUnavailableError,
    grpc.StatusCode.FAILED_PRECONDITION: AuthorityResponseInvalidError,
    grpc.StatusCode.ABORTED: AuthorityResponseInvalidError,
    grpc.StatusCode.OUT_OF_RANGE: AuthorityResponseInvalidError,
    grpc.StatusCode.UNIMPLEMENTED: AuthorityResponseInvalidError,
    grpc.StatusCode.INTERNAL: AuthorityUnavailableError,
    grpc.StatusCode.UNAVAILABLE: AuthorityUnavailableError,
    grpc.StatusCode.DATA_LOSS: AuthorityResponseInvalidError,
    grpc.StatusCode.UNAUTHENTICATED: TokenRejectedByOwnerError,
}


@pytest.mark.parametrize("status", STATUSES, ids=lambda status: status.name)
async def test_every_status(
    owner: ScriptedOwner, authority: OwnerAuthority, status: grpc.StatusCode
) -> None:
    """004-14: each status has one meaning; the owner's own words are shown to nobody."""
    owner.script = fails(status, f"details with {SECRET}")
    refusal = await refused(authority)
    assert type(refusal) is STATUSES[status]
    assert len(owner.requests) == 1, "nothing is asked twice"


def test_every_status_has_a_row() -> None:
    """004-14: none is forgotten."""
    assert set(STATUSES) == set(grpc.StatusCode) - {grpc.StatusCode.OK}


@pytest.mark.parametrize(
    ("needed", "named"),
    [
        (KNOWLEDGE.permissions, "AccessPrivateKnowledge"),
        (frozenset({Permission.WRITE_PROJECTS}), "WriteProjects"),
    ],
    ids=["knowledge", "receipts"],
)
async def test_unknown_project_names_the_first_permission(
    owner: ScriptedOwner,
    authority: OwnerAuthority,
    needed: frozenset[Permission],
    named: str,
) -> None:
    """004-14: a project unknown to the caller and one without grants look the same."""
    owner.script = fails(grpc.StatusCode.NOT_FOUND)
    with pytest.raises(PermissionMissingError) as unknown:
        await authority.check(call_of(), SCOPE, Need(needed))
    bare = answer()
    del bare.context.grants[:]
    owner.script = gives(bare)
    with pytest.raises(PermissionMissingError) as without:
        await authority.check(call_of(), SCOPE, Need(needed))
    assert unknown.value.metadata == without.value.metadata == {"permission": named}
    assert unknown.value.message == without.value.message


def bent(
    bend: Callable[[owners.GetRunAuthorityResponse], object],
) -> owners.GetRunAuthorityResponse:
    given = answer()
    bend(given)
    return given


WRONG_ANSWERS: dict[str, owners.GetRunAuthorityResponse | bytes] = {
    "empty": b"",
    "not_a_message": b"\xff\xff\xff\xff",
    "cut_off": answer().SerializeToString()[:-3],
    "text_that_is_not_utf8": b"\x0a\x03\x12\x01\xff",
    "one_byte_too_large": padded(ANSWER_BYTES_MAX + 1),
    "ten_megabytes": padded(10 * 1024 * 1024),
    "wrong_actor": bent(lambda given: setattr(given.context, "actor_id", "actor-b")),
    "wrong_issuer": bent(lambda given: setattr(given.context, "issuer", "https://evil.test/")),
    "no_tenant": bent(lambda given: setattr(given.context, "tenant_id", "")),
    "unknown_resource_type": bent(
        lambda given: setattr(given.context.grants[0], "resource_type", 99)
    ),
    "unknown_permission": bent(
        lambda given: setattr(given.context.grants[0].permissions[0], "permission", 99)
    ),
    "bound_where_the_token_is_not": bent(
        lambda given: setattr(given.context, "bound_project_id", "project-a")
    ),
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
async def test_wrong_answers(owner: ScriptedOwner, authority: OwnerAuthority, name: str) -> None:
    """004-13: whatever is wrong about an answer, it is refused and not asked for again."""
    owner.script = gives(WRONG_ANSWERS[name])
    assert type(await refused(authority)) is AuthorityResponseInvalidError
    assert len(owner.requests) == 1


async def test_largest_answer_passes(
    owner: ScriptedOwner, authority: OwnerAuthority, streams: bool
) -> None:
    """004-13: 256 KiB exactly, and fields that are not known are ignored."""
    around = 6 if streams else 0  # the tag and the length of its field, and the number
    owner.script = gives(padded(ANSWER_BYTES_MAX - around))
    await authority.check(call_of(), SCOPE, KNOWLEDGE)


async def test_answer_beyond_what_the_channel_takes(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-13: above 16 MiB gRPC itself refuses, in the words of an overloaded owner."""
    owner.script = gives(padded(17 * 1024 * 1024))
    assert type(await refused(authority)) is AuthorityUnavailableError
    assert len(owner.requests) == 1


async def test_tenant_of_the_answer_must_be_the_selected_one(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-12: another tenant than the one that was asked for or signed."""
    for said in (caller(tenant_selector="tenant-b"), caller(tenant_claim="tenant-b")):
        refusal = await refused(authority, call_of(said))
        assert type(refusal) is AuthorityResponseInvalidError
    assert len(owner.requests) == 2


@pytest.mark.parametrize("field", ["tenant_id", "project_id", "run_id"])
async def test_selection_of_something_else(
    owner: ScriptedOwner, authority: OwnerAuthority, field: str
) -> None:
    """004-14: the check passes, and whoever needs the selection is refused."""
    owner.script = gives(bent(lambda given: setattr(given.selection, field, "other")))
    authorized = await authority.check(call_of(), SCOPE, KNOWLEDGE)
    with pytest.raises(RunSelectionInvalidError):
        authorized.selected()


async def test_owner_that_comes_back(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-14: after trouble the next call is asked for real."""
    owner.script = fails(grpc.StatusCode.UNAVAILABLE)
    assert type(await refused(authority)) is AuthorityUnavailableError
    owner.script = gives(answer())
    await authority.check(call_of(), SCOPE, KNOWLEDGE)


@pytest.mark.parametrize("streams", [False], indirect=True)
async def test_metadata_limit(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-14: an owner whose trailers exceed 64 KiB is refused, and below never.

    Of a stream they come after its last answer.
    """

    def trailing(size: int) -> Script:
        async def script(context: Context) -> bytes:
            context.set_trailing_metadata((("x-filler", "f" * size),))
            return answer().SerializeToString()

        return script

    owner.script = trailing(METADATA_BYTES - 2048)
    for _ in range(20):
        await authority.check(call_of(), SCOPE, KNOWLEDGE)
    owner.script = trailing(METADATA_BYTES + 2048)
    assert isinstance(
        await refused(authority), AuthorityUnavailableError | AuthorityResponseInvalidError
    )


@pytest.mark.parametrize("script", [gives(b"\xff"), fails(grpc.StatusCode.INTERNAL, SECRET)])
async def test_no_token_in_any_log(
    owner: ScriptedOwner,
    authority: OwnerAuthority,
    script: Script,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """004-02: not in what is logged, at any level, whatever the owner says."""
    caplog.set_level(logging.DEBUG)
    owner.script = script
    await refused(authority)
    assert SECRET not in caplog.text

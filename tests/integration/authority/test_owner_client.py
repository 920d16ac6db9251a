"""The owner client and both checks against a real gRPC server that misbehaves (004-01..17)."""

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest
import trustme

from broker.authority.channel import ANSWER_BYTES_MAX, METADATA_BYTES, OwnerSettings
from broker.authority.checks import OwnerAuthority
from broker.authority.client import OwnerClient
from broker.domain.authority import KNOWLEDGE, Need, Permission
from broker.domain.call import Call, Caller
from broker.domain.errors import (
    AuthorityResponseInvalidError,
    AuthorityUnavailableError,
    BrokerError,
    DeadlineExceededError,
    PermissionMissingError,
    RunSelectionInvalidError,
    TokenRejectedByOwnerError,
)
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.owner_answers import BEARER, SCOPE, answer, caller
from tests.fixtures.raw_server import Handler, dripping, listening
from tests.fixtures.scripted_owner import Context, Script, ScriptedOwner, fails, gives, hangs

SECRET = BEARER.removeprefix("Bearer ")


def call_of(said: Caller | None = None, *, seconds: float = 30.0) -> Call:
    deadline = asyncio.get_running_loop().time() + seconds
    return Call(caller=said or caller(), request_id="request-1", deadline=deadline)


@pytest.fixture
async def owner() -> AsyncIterator[ScriptedOwner]:
    async with ScriptedOwner().running() as running:
        yield running


def settings(address: str, timeout_s: float = 20.0) -> OwnerSettings:
    return OwnerSettings(address=address, timeout_s=timeout_s, plaintext_loopback=True)


@pytest.fixture
async def client(owner: ScriptedOwner) -> AsyncIterator[OwnerClient]:
    made = OwnerClient(settings(owner.address))
    yield made
    await made.aclose()


@pytest.fixture
def authority(client: OwnerClient) -> OwnerAuthority:
    return OwnerAuthority(client)


async def refused(authority: OwnerAuthority, call: Call | None = None) -> BrokerError:
    """The refusal of one check. Nothing of it, its chain or its frames may hold the token."""
    with pytest.raises(BrokerError) as caught:
        await authority.check(call or call_of(), SCOPE, KNOWLEDGE)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.metadata)
    assert SECRET not in shown
    assert caught.value.__context__ is None
    return caught.value


async def test_metadata_is_forwarded_once_and_unchanged(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-02: bearer, tenant selector and request id, each exactly once, byte for byte."""
    await authority.check(call_of(caller(tenant_selector="tenant-a")), SCOPE, KNOWLEDGE)
    (seen,) = owner.metadata
    ours = [entry for entry in seen if entry[0] != "user-agent"]
    assert sorted(ours) == [
        ("authorization", BEARER),
        ("x-request-id", "request-1"),
        ("x-tenant", "tenant-a"),
    ]
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
    grpc.StatusCode.CANCELLED: AuthorityResponseInvalidError,
    grpc.StatusCode.UNKNOWN: AuthorityResponseInvalidError,
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
    grpc.StatusCode.INTERNAL: AuthorityResponseInvalidError,
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


def padded(size: int) -> bytes:
    """The right answer with an unknown field that brings it to ``size`` bytes."""
    right = answer().SerializeToString()
    room = size - len(right) - 1 - 3 - (1 if size - len(right) > 2**21 else 0)
    length, varint = room, b""
    while length >= 0x80:
        varint += bytes([length & 0x7F | 0x80])
        length >>= 7
    padding = b"\x7a" + varint + bytes([length]) + bytes(room)
    assert len(right) + len(padding) == size
    return right + padding


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


async def test_largest_answer_passes(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-13: 256 KiB exactly, and fields that are not known are ignored."""
    owner.script = gives(padded(ANSWER_BYTES_MAX))
    await authority.check(call_of(), SCOPE, KNOWLEDGE)


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


async def test_hanging_owner(owner: ScriptedOwner) -> None:
    """004-14: the owner's own time limit makes it unavailable, while the call has time left."""
    owner.script = hangs
    client = OwnerClient(settings(owner.address, timeout_s=0.2))
    call = call_of()
    assert type(await refused(OwnerAuthority(client), call)) is AuthorityUnavailableError
    assert call.remaining() > 10
    await client.aclose()


@pytest.mark.parametrize(("sent", "outcome"), [(False, "not_applied"), (True, "unknown")])
async def test_call_that_runs_out_of_time(
    owner: ScriptedOwner, authority: OwnerAuthority, sent: bool, outcome: str
) -> None:
    """004-14: the call's own deadline is not the owner's fault."""
    owner.script = hangs
    call = call_of(seconds=0.2)
    call.commit_sent = sent
    refusal = await refused(authority, call)
    assert type(refusal) is DeadlineExceededError
    assert refusal.metadata == {"outcome": outcome}
    assert owner.remaining[0] < 10.0


async def test_call_without_time_asks_nobody(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-14: a deadline that has passed costs no RPC."""
    assert type(await refused(authority, call_of(seconds=0.0))) is DeadlineExceededError
    assert owner.requests == []


async def test_owner_is_given_the_shorter_time(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-14: the deadline is handed on, bounded by the owner's own limit of 20 seconds."""
    await authority.check(call_of(seconds=5.0), SCOPE, KNOWLEDGE)
    await authority.check(call_of(seconds=60.0), SCOPE, KNOWLEDGE)
    assert owner.remaining[0] < 10.0  # on the wire, times are rounded up
    assert 10.0 < owner.remaining[1] < 30.0


async def test_caller_who_leaves_ends_the_rpc(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-14: a cancelled call cancels its owner call and stays cancelled."""
    began, ended = asyncio.Event(), asyncio.Event()

    async def script(_: Context) -> bytes:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return b""

    owner.script = script
    check = asyncio.create_task(authority.check(call_of(), SCOPE, KNOWLEDGE))
    await began.wait()
    check.cancel()
    with pytest.raises(asyncio.CancelledError):
        await check
    await asyncio.wait_for(ended.wait(), 10)


async def test_channel_closed_under_a_call(owner: ScriptedOwner) -> None:
    """004-14: shutting down is no answer, during a call and before one."""
    began = asyncio.Event()

    async def script(_: Context) -> bytes:
        began.set()
        await asyncio.Event().wait()
        return b""

    owner.script = script
    client = OwnerClient(settings(owner.address))
    authority = OwnerAuthority(client)
    check = asyncio.create_task(refused(authority))
    await began.wait()
    await client.aclose()
    assert type(await check) is AuthorityUnavailableError
    assert type(await refused(authority)) is AuthorityUnavailableError


async def test_nobody_listens() -> None:
    """004-14: an owner that is not there."""
    async with listening(_closes) as port:
        pass
    client = OwnerClient(settings(f"127.0.0.1:{port}"))
    assert type(await refused(OwnerAuthority(client))) is AuthorityUnavailableError
    await client.aclose()


async def _closes(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(1)


async def _talks_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def _says_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(-1)


@pytest.mark.parametrize("behaviour", [_closes, _talks_nonsense, _says_nothing])
async def test_connections_that_do_not_speak(behaviour: Handler) -> None:
    """004-14: closed, foreign or silent connections make the owner unavailable."""
    async with listening(behaviour) as port:
        client = OwnerClient(settings(f"127.0.0.1:{port}", timeout_s=0.3))
        assert type(await refused(OwnerAuthority(client))) is AuthorityUnavailableError
        await client.aclose()


async def test_dripping_owner(owner: ScriptedOwner) -> None:
    """004-14: an answer that comes in byte by byte is too slow, however steady."""
    owner.script = gives(padded(ANSWER_BYTES_MAX))
    async with listening(dripping(owner.port, pause_s=0.01)) as port:
        client = OwnerClient(settings(f"127.0.0.1:{port}", timeout_s=0.5))
        assert type(await refused(OwnerAuthority(client))) is AuthorityUnavailableError
        await client.aclose()


async def test_owner_that_comes_back(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-14: after trouble the next call is asked for real."""
    owner.script = fails(grpc.StatusCode.UNAVAILABLE)
    assert type(await refused(authority)) is AuthorityUnavailableError
    owner.script = gives(answer())
    await authority.check(call_of(), SCOPE, KNOWLEDGE)


async def test_metadata_limit(owner: ScriptedOwner, authority: OwnerAuthority) -> None:
    """004-14: an owner whose trailers exceed 64 KiB is refused, and below never."""

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


async def test_proxies_of_the_environment_are_ignored(
    owner: ScriptedOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-02: the token goes to the owner and to nobody in between."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:9")
    client = OwnerClient(settings(owner.address))
    await OwnerAuthority(client).check(call_of(), SCOPE, KNOWLEDGE)
    await client.aclose()


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


class Certificates:
    """A server and a client certificate of one authority."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        server = authority.issue_cert("localhost")
        client = authority.issue_cert("broker@knowledge.test")
        self.ca_file = folder / "ca.pem"
        self.certificate_file = folder / "client.pem"
        self.key_file = folder / "client.key"
        authority.cert_pem.write_to_path(self.ca_file)
        client.cert_chain_pems[0].write_to_path(self.certificate_file)
        client.private_key_pem.write_to_path(self.key_file)
        self.server_credentials = grpc.ssl_server_credentials(
            [(server.private_key_pem.bytes(), server.cert_chain_pems[0].bytes())],
            root_certificates=authority.cert_pem.bytes(),
            require_client_auth=True,
        )


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.mark.parametrize(
    ("trusts", "shows", "passes"),
    [(True, True, True), (False, True, False), (True, False, False)],
    ids=["both", "server_unknown", "no_client_certificate"],
)
async def test_tls(certificates: Certificates, trusts: bool, shows: bool, passes: bool) -> None:
    """004-02: the token leaves only for a server that is known, which knows us too."""
    async with ScriptedOwner().running(certificates.server_credentials) as owner:
        client = OwnerClient(
            OwnerSettings(
                address=owner.address,
                timeout_s=5.0,
                root_ca_file=certificates.ca_file if trusts else None,
                client_certificate_file=certificates.certificate_file if shows else None,
                client_key_file=certificates.key_file if shows else None,
            )
        )
        authority = OwnerAuthority(client)
        if passes:
            await authority.check(call_of(), SCOPE, KNOWLEDGE)
        else:
            assert type(await refused(authority)) is AuthorityUnavailableError
            assert owner.requests == []
        await client.aclose()

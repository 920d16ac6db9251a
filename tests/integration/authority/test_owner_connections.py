"""An owner that is slow, gone, in the clear or unknown (004-02, 004-14)."""

import asyncio
from pathlib import Path

import grpc
import pytest
import trustme

from broker.authority.checks import OwnerAuthority
from broker.authority.client import OwnerClient
from broker.domain.authority import KNOWLEDGE
from broker.domain.errors import AuthorityUnavailableError, DeadlineExceededError
from broker.outbound import ANSWER_BYTES_MAX, PeerSettings
from tests.fixtures.owner_answers import SCOPE, padded
from tests.fixtures.raw_server import Handler, dripping, listening
from tests.fixtures.scripted_owner import Context, ScriptedOwner, gives, hangs
from tests.integration.authority.conftest import call_of, refused, settings


async def test_hanging_owner(owner: ScriptedOwner, streams: bool) -> None:
    """004-14: the owner's own time limit makes it unavailable, while the call has time left."""
    owner.script = hangs
    client = OwnerClient(settings(owner.address, timeout_s=0.2), streams=streams)
    call = call_of()
    assert type(await refused(OwnerAuthority(client), call)) is AuthorityUnavailableError
    assert call.remaining() > 10
    await client.aclose()


@pytest.mark.parametrize(("sent", "outcome"), [(False, "not_applied"), (True, "unknown")])
async def test_call_that_runs_out_of_time(
    owner: ScriptedOwner, authority: OwnerAuthority, sent: bool, outcome: str
) -> None:
    """004-14: the call's own deadline is not the owner's fault."""
    await authority.check(call_of(), SCOPE, KNOWLEDGE)  # so that the connection stands
    owner.script = hangs
    call = call_of(seconds=0.2)
    call.commit_sent = sent
    refusal = await refused(authority, call)
    assert type(refusal) is DeadlineExceededError
    assert refusal.metadata == {"outcome": outcome}


async def test_call_without_time_asks_nobody(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-14: a deadline that has passed costs no RPC."""
    assert type(await refused(authority, call_of(seconds=0.0))) is DeadlineExceededError
    assert owner.requests == []


@pytest.mark.parametrize("streams", [False], indirect=True)
async def test_owner_is_given_the_shorter_time(
    owner: ScriptedOwner, authority: OwnerAuthority
) -> None:
    """004-14: the deadline is handed on, bounded by the owner's own limit of 20 seconds.

    A stream has no deadline: it carries the questions of many calls.
    """
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


async def test_channel_closed_under_a_call(owner: ScriptedOwner, streams: bool) -> None:
    """004-14: shutting down is no answer, during a call and before one."""
    began = asyncio.Event()

    async def script(_: Context) -> bytes:
        began.set()
        await asyncio.Event().wait()
        return b""

    owner.script = script
    client = OwnerClient(settings(owner.address), streams=streams)
    authority = OwnerAuthority(client)
    check = asyncio.create_task(refused(authority))
    await began.wait()
    await client.aclose()
    assert type(await check) is AuthorityUnavailableError
    assert type(await refused(authority)) is AuthorityUnavailableError


async def test_nobody_listens(streams: bool) -> None:
    """004-14: an owner that is not there."""
    async with listening(_closes) as port:
        pass
    client = OwnerClient(settings(f"127.0.0.1:{port}"), streams=streams)
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
async def test_connections_that_do_not_speak(behaviour: Handler, streams: bool) -> None:
    """004-14: closed, foreign or silent connections make the owner unavailable."""
    async with listening(behaviour) as port:
        client = OwnerClient(settings(f"127.0.0.1:{port}", timeout_s=0.3), streams=streams)
        assert type(await refused(OwnerAuthority(client))) is AuthorityUnavailableError
        await client.aclose()


async def test_dripping_owner(owner: ScriptedOwner, streams: bool) -> None:
    """004-14: an answer that comes in byte by byte is too slow, however steady."""
    owner.script = gives(padded(ANSWER_BYTES_MAX))
    async with listening(dripping(owner.port, pause_s=0.01)) as port:
        client = OwnerClient(settings(f"127.0.0.1:{port}", timeout_s=0.5), streams=streams)
        assert type(await refused(OwnerAuthority(client))) is AuthorityUnavailableError
        await client.aclose()


async def test_proxies_of_the_environment_are_ignored(
    owner: ScriptedOwner, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-02: the token goes to the owner and to nobody in between."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:9")
    client = OwnerClient(settings(owner.address), streams=streams)
    await OwnerAuthority(client).check(call_of(), SCOPE, KNOWLEDGE)
    await client.aclose()


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
            PeerSettings(
                address=owner.address,
                timeout_s=20.0,
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

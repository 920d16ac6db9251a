"""The reference owner, asked over gRPC: tokens that do not count, and files that change."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import grpc
import jwt
import pytest

from broker.devstack import playground
from broker.owners.v1 import projects_config_service_pb2 as pb
from tests.fixtures.owner import Asker, OwnerStand, ScriptedServicer, owner_stand

ATLAS = "atlas"
DENIED = grpc.StatusCode.PERMISSION_DENIED
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


# --- tokens ------------------------------------------------------------------------------------


async def test_tokens_that_do_not_count(ask: Asker, stand: OwnerStand, tmp_path: Path) -> None:
    """004-03, 004-12: by the owner's own verification."""
    foreign = type(stand.tokens)(tmp_path / "foreign")
    good = stand.tokens.mint("olga")
    bad = [
        (),
        (("authorization", f"Bearer {good}"), ("authorization", f"Bearer {good}")),
        (("authorization", f"Basic {good}"),),
        (("authorization", "Bearer "),),
        (("authorization", "Bearer a.b.c"),),
        (("authorization", f"Bearer {foreign.mint('olga')}"),),
        (("authorization", f"Bearer {foreign.mint('olga', kid=stand.tokens.kid)}"),),
        ask.metadata("olga", lifetime=timedelta(minutes=-5)),
        ask.metadata("olga", run="run-1"),
        ask.metadata("olga", project="a b"),
    ]
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    for metadata in bad:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.stub.GetRunAuthority(request, metadata=metadata)
        assert error.value.code() is UNAUTHENTICATED
    await ask.run("olga")


async def test_rotation_is_seen_by_the_next_call(ask: Asker, stand: OwnerStand) -> None:
    old = ask.metadata("olga")
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    stand.tokens.rotate()
    await ask.stub.GetRunAuthority(request, metadata=old)
    stand.tokens.rotate(keep_old=False)
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await ask.stub.GetRunAuthority(request, metadata=old)
    assert error.value.code() is UNAUTHENTICATED
    await ask.run("olga")


# --- changes -----------------------------------------------------------------------------------


async def test_permission_revoked_between_two_calls(ask: Asker, stand: OwnerStand) -> None:
    """004-01, 004-16: the very next call sees it, and the one after sees it given back."""
    for round_ in range(20):
        before = await ask.run("olga")
        assert before.context.membership_revision == 1 + 2 * round_
        playground.revoke(stand.file, subject="olga", tenant="acme", project=ATLAS)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.run("olga")
        assert error.value.code() is DENIED
        playground.grant(stand.file, subject="olga", role="owner", tenant="acme", project=ATLAS)
    assert stand.calls == 40


async def test_a_question_asked_again_is_answered_by_what_holds_now(
    ask: Asker, stand: OwnerStand
) -> None:
    """004-01: by the same token, about the same run, also after the file said otherwise."""
    shown = ask.metadata("olga")
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    for _ in range(3):
        first = await ask.stub.GetRunAuthority(request, metadata=shown)
        assert await ask.stub.GetRunAuthority(request, metadata=shown) == first
        playground.revoke(stand.file, subject="olga", tenant="acme", project=ATLAS)
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await ask.stub.GetRunAuthority(request, metadata=shown)
            assert error.value.code() is DENIED
        playground.grant(stand.file, subject="olga", role="owner", tenant="acme", project=ATLAS)


async def test_a_question_asked_again_is_refused_once_its_token_ended(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = ask.metadata("olga")
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    await ask.stub.GetRunAuthority(request, metadata=shown)
    ends = time.time() + timedelta(hours=2).total_seconds()
    monkeypatch.setattr("broker.devstack.owner.identity.time.time", lambda: ends)
    monkeypatch.setattr("broker.devstack.owner.identity.jwt.decode", _expired)
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await ask.stub.GetRunAuthority(request, metadata=shown)
    assert error.value.code() is UNAUTHENTICATED


async def test_answers_are_told_apart_by_all_they_depend_on(ask: Asker) -> None:
    """The caller, the tenant asked for, the project, the run: none is answered as another was."""
    shown = ask.metadata("olga")
    run = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    absent = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="no-run")
    assert (await ask.stub.GetRunAuthority(run, metadata=shown)).HasField("selection")
    assert not (await ask.stub.GetRunAuthority(absent, metadata=shown)).HasField("selection")
    foreign = pb.GetRunAuthorityRequest(project_id="no-project", run_id="run-1")
    for request, metadata in ((foreign, shown), (run, (*shown, ("x-tenant", "no-tenant")))):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.stub.GetRunAuthority(request, metadata=metadata)
        assert error.value.code() is DENIED


def _expired(*_: object, **_more: object) -> None:
    """Find what every token is in time."""
    raise jwt.ExpiredSignatureError


async def test_permission_lowered_between_two_calls(ask: Asker, stand: OwnerStand) -> None:
    playground.grant(
        stand.file, subject="olga", role="metadata-reader", tenant="acme", project=ATLAS
    )
    (grant,) = (await ask.run("olga")).context.grants
    held = {each.permission for each in grant.permissions}
    assert pb.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE not in held


@pytest.mark.parametrize("broken", ["", "tenants: {", "catalog: {}\ntenants: {a: {projcts: {}}}"])
async def test_invalid_file_fails_closed(
    ask: Asker, stand: OwnerStand, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also whoever could call before is refused, until the file is valid again."""
    await ask.run("olga")
    good = stand.file.read_text()
    stand.file.write_text(broken)
    for _ in range(3):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.run("olga")
        assert error.value.code() is UNAVAILABLE
    assert capsys.readouterr().err.count(str(stand.file)) == 1
    stand.file.write_text(good)
    await ask.run("olga")


async def test_missing_files_fail_closed(ask: Asker, stand: OwnerStand) -> None:
    for file in (stand.file, stand.tokens.jwks_file):
        content = file.read_text()
        file.unlink()
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.run("olga")
        assert error.value.code() is UNAVAILABLE
        file.write_text(content)
        await ask.run("olga")


async def test_script_revokes_at_a_given_call(tmp_path: Path) -> None:
    """The tool other tests use to take authority away between two checks of one request."""
    async with owner_stand(tmp_path, ScriptedServicer) as stand:
        servicer = stand.server.servicer
        assert isinstance(servicer, ScriptedServicer)

        async def revoke_at_second(number: int) -> None:
            if number == 2:
                playground.revoke(stand.file, subject="olga", tenant="acme", project=ATLAS)

        servicer.before = revoke_at_second
        async with grpc.aio.insecure_channel(stand.server.address) as channel:
            ask = Asker(stand, channel)
            await ask.run("olga")
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await ask.run("olga")
        assert error.value.code() is DENIED
        assert stand.calls == 2

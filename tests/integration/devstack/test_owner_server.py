"""The reference owner, asked over gRPC."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from broker.devstack import playground
from broker.owners.v1 import projects_config_service_pb2 as pb
from broker.owners.v1 import projects_config_service_pb2_grpc as pb_grpc
from tests.fixtures.owner import OwnerStand, ScriptedServicer, owner_stand

ATLAS = "atlas"
DENIED = grpc.StatusCode.PERMISSION_DENIED
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
INVALID = grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[OwnerStand]:
    async with owner_stand(tmp_path) as running:
        yield running


@pytest.fixture
async def ask(stand: OwnerStand) -> AsyncIterator[Asker]:
    async with grpc.aio.insecure_channel(stand.server.address) as channel:
        yield Asker(stand, channel)


class Asker:
    """Calls the owner as anybody."""

    def __init__(self, stand: OwnerStand, channel: grpc.aio.Channel) -> None:
        self.stub = pb_grpc.ProjectsConfigServiceStub(channel)
        self._tokens = stand.tokens

    def metadata(
        self, subject: str, tenant: str | None = None, **claims: Any
    ) -> tuple[tuple[str, str], ...]:
        bearer = ("authorization", f"Bearer {self._tokens.mint(subject, **claims)}")
        return (bearer,) if tenant is None else (bearer, ("x-tenant", tenant))

    async def run(
        self, subject: str, run: str = "run-1", project: str = ATLAS, **caller: Any
    ) -> pb.GetRunAuthorityResponse:
        request = pb.GetRunAuthorityRequest(project_id=project, run_id=run)
        return await self.stub.GetRunAuthority(request, metadata=self.metadata(subject, **caller))

    async def project(
        self, subject: str, runs: list[str], **caller: Any
    ) -> pb.GetProjectAuthorityResponse:
        request = pb.GetProjectAuthorityRequest(project_id=ATLAS, run_ids=runs)
        metadata = self.metadata(subject, **caller)
        return await self.stub.GetProjectAuthority(request, metadata=metadata)

    async def caller(self, subject: str, **caller: Any) -> pb.AuthorizationContext:
        metadata = self.metadata(subject, **caller)
        answer = await self.stub.GetCallerAuthority(
            pb.GetCallerAuthorityRequest(), metadata=metadata
        )
        return answer.context


def permissions(context: pb.AuthorizationContext) -> dict[tuple[str, str], set[str]]:
    return {
        (
            pb.ResourceType.Name(grant.resource_type).removeprefix("RESOURCE_TYPE_"),
            grant.resource_id,
        ): {
            pb.Permission.Name(each.permission).removeprefix("PERMISSION_")
            for each in grant.permissions
        }
        for grant in context.grants
    }


def refused(error: pytest.ExceptionInfo[grpc.aio.AioRpcError]) -> grpc.StatusCode:
    code = error.value.code()
    assert isinstance(code, grpc.StatusCode)
    return code


# --- authority ---------------------------------------------------------------------------------


async def test_context_and_selection_of_one_snapshot(ask: Asker) -> None:
    """004-13, 004-21, 004-22: everything the broker insists on is there."""
    answer = await ask.run("olga")
    context, selection = answer.context, answer.selection
    assert (context.contract_version, context.issuer) == (1, "https://dev.invalid")
    assert (context.actor_id, context.tenant_id, context.membership_revision) == ("olga", "acme", 1)
    assert not context.HasField("bound_project_id")
    assert not context.HasField("token_purpose")
    assert (selection.tenant_id, selection.project_id, selection.run_id) == (
        "acme",
        ATLAS,
        "run-1",
    )
    assert (selection.project_revision, selection.project_configuration_revision) == (1, 1)
    assert (selection.platform_runtime_revision, selection.context_revision) == (1, "1")
    (providers,) = selection.providers
    assert (providers.seam, providers.cardinality) == ("Memory", pb.CARDINALITY_EXCLUSIVE)
    (candidate,) = providers.candidates
    assert (candidate.provider_id, candidate.adapter_version) == ("postgres.native-memory", "1.0.0")
    assert len(candidate.advertised_capabilities) == 7
    assert not selection.run_limits.HasField("max_prompt_tokens")


async def test_run_can_narrow_its_selection(ask: Asker) -> None:
    selection = (await ask.run("olga", "run-2")).selection
    assert selection.run_limits.max_prompt_tokens == 4000
    assert len(selection.providers[0].candidates[0].required_capabilities) == 2


async def test_roles_of_a_project(ask: Asker) -> None:
    """004-05, 004-07."""
    at = ("PROJECT", ATLAS)
    agent = permissions((await ask.run("atlas-agent")).context)
    assert agent == {at: {"READ_RUN_SELECTION", "ACCESS_PRIVATE_KNOWLEDGE"}}
    reader = permissions((await ask.run("rita")).context)
    assert reader == {at: {"READ_PROJECTS", "READ_RUN_SELECTION"}}


async def test_tenant_admin_holds_grants_on_the_tenant_alone(ask: Asker) -> None:
    """004-06, 004-08, 004-09: the owner shows the selection, the grant is not the project's."""
    answer = await ask.run("tara")
    assert answer.HasField("selection")
    (at,) = permissions(answer.context)
    assert at == ("TENANT", "acme")
    bound = await ask.run("tara", project=ATLAS)
    assert "ACCESS_PRIVATE_KNOWLEDGE" in permissions(bound.context)[at]


async def test_run_bound_token(ask: Asker) -> None:
    """004-08, 004-10: bounds come back as signed; the owner keeps knowledge and cannot write."""
    metadata = ask.metadata("olga", project=ATLAS, run="run-1")
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    answer = await ask.stub.GetRunAuthority(request, metadata=metadata)
    assert (answer.context.bound_project_id, answer.context.bound_run_id) == (ATLAS, "run-1")
    assert permissions(answer.context)["PROJECT", ATLAS] == {
        "READ_PROJECTS",
        "READ_RUN_SELECTION",
        "ACCESS_PRIVATE_KNOWLEDGE",
    }
    other = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-2")
    answer = await ask.stub.GetRunAuthority(other, metadata=metadata)
    assert not answer.HasField("selection")
    metadata = ask.metadata("tara", project=ATLAS, run="run-1")
    answer = await ask.stub.GetRunAuthority(request, metadata=metadata)
    assert permissions(answer.context)["TENANT", "acme"] == {"READ_PROJECTS", "READ_RUN_SELECTION"}


async def test_token_bound_to_another_project_is_denied(ask: Asker) -> None:
    """004-10."""
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await ask.stub.GetRunAuthority(request, metadata=ask.metadata("olga", project="other"))
    assert refused(error) is DENIED


async def test_purpose_is_reported(ask: Asker) -> None:
    """004-11: it is for the broker to refuse."""
    assert (await ask.run("olga", purpose="an export")).context.token_purpose == "an export"


async def test_caller_authority_names_every_project_of_the_tenant(
    ask: Asker, stand: OwnerStand
) -> None:
    with playground.edited(stand.file) as content:
        content["tenants"]["acme"]["projects"]["borea"] = {"members": {"olga": "agent-runtime"}}
    assert permissions(await ask.caller("olga")).keys() == {
        ("PROJECT", ATLAS),
        ("PROJECT", "borea"),
    }
    assert permissions(await ask.caller("olga", project="borea")).keys() == {("PROJECT", "borea")}


# --- tenants -----------------------------------------------------------------------------------


async def test_two_tenants_with_the_same_ids(ask: Asker) -> None:
    """The same project and run ids mean two projects and two runs."""
    acme, globex = await ask.run("olga"), await ask.run("gus")
    assert (acme.context.tenant_id, acme.selection.tenant_id) == ("acme", "acme")
    assert (globex.context.tenant_id, globex.selection.tenant_id) == ("globex", "globex")
    assert not (await ask.run("gus", "run-2")).HasField("selection")
    assert (await ask.run("olga", "run-2")).HasField("selection")


async def test_member_of_two_tenants_has_to_choose(ask: Asker) -> None:
    """004-02: the selector of the caller is what decides."""
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await ask.run("casey")
    assert refused(error) is DENIED
    assert "x-tenant" in (error.value.details() or "")
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    for tenant in ("acme", "globex"):
        metadata = ask.metadata("casey", tenant)
        answer = await ask.stub.GetRunAuthority(request, metadata=metadata)
        assert answer.context.tenant_id == answer.selection.tenant_id == tenant


@pytest.mark.parametrize("selector", [["globex"], ["nowhere"], ["a b"], ["acme", "acme"]])
async def test_selector_that_does_not_fit_is_denied(ask: Asker, selector: list[str]) -> None:
    """004-04."""
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    metadata = (*ask.metadata("olga"), *(("x-tenant", value) for value in selector))
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await ask.stub.GetRunAuthority(request, metadata=metadata)
    assert refused(error) is DENIED


# --- selections --------------------------------------------------------------------------------


async def test_absent_run_has_no_selection(ask: Asker) -> None:
    """004-14: the broker judges permissions first, so the answer comes."""
    answer = await ask.run("olga", "absent")
    assert answer.context.actor_id == "olga"
    assert not answer.HasField("selection")


async def test_no_selection_without_permission_to_read_it(ask: Asker, stand: OwnerStand) -> None:
    """004-09."""
    with playground.edited(stand.file) as content:
        content["roles"]["blind"] = {"permissions": ["AccessPrivateKnowledge"]}
        content["tenants"]["acme"]["projects"][ATLAS]["members"]["olga"] = "blind"
    answer = await ask.run("olga")
    assert permissions(answer.context) == {("PROJECT", ATLAS): {"ACCESS_PRIVATE_KNOWLEDGE"}}
    assert not answer.HasField("selection")


async def test_selections_of_a_project_keep_the_order(ask: Asker) -> None:
    answer = await ask.project("olga", ["run-2", "absent", "run-1"])
    assert [entry.run_id for entry in answer.selections] == ["run-2", "absent", "run-1"]
    assert [entry.HasField("selection") for entry in answer.selections] == [True, False, True]
    assert not (await ask.project("olga", [])).selections


async def test_selections_of_five_hundred_runs_fit_one_answer(
    ask: Asker, stand: OwnerStand
) -> None:
    runs = [f"run-{number:03}" for number in range(500)]
    with playground.edited(stand.file) as content:
        content["tenants"]["acme"]["projects"][ATLAS]["runs"] = {run: {} for run in runs}
    answer = await ask.project("olga", runs)
    assert all(entry.HasField("selection") for entry in answer.selections)
    for bad in ([*runs, "one-more"], ["run-001", "run-001"], ["a b"]):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.project("olga", bad)
        assert refused(error) is INVALID


async def test_unknown_project_and_foreign_project_look_alike(
    ask: Asker, stand: OwnerStand
) -> None:
    with playground.edited(stand.file) as content:
        content["tenants"]["acme"]["projects"]["secret"] = {"runs": {"run-1": {}}}
    details = set()
    for subject, project in (("olga", "absent"), ("olga", "secret"), ("tara", "absent")):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.run(subject, project=project)
        assert refused(error) is DENIED
        details.add(error.value.details())
    assert len(details) == 1


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
        assert refused(error) is UNAUTHENTICATED
    await ask.run("olga")


async def test_rotation_is_seen_by_the_next_call(ask: Asker, stand: OwnerStand) -> None:
    old = ask.metadata("olga")
    request = pb.GetRunAuthorityRequest(project_id=ATLAS, run_id="run-1")
    stand.tokens.rotate()
    await ask.stub.GetRunAuthority(request, metadata=old)
    stand.tokens.rotate(keep_old=False)
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await ask.stub.GetRunAuthority(request, metadata=old)
    assert refused(error) is UNAUTHENTICATED
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
        assert refused(error) is DENIED
        playground.grant(stand.file, subject="olga", role="owner", tenant="acme", project=ATLAS)
    assert stand.server.servicer.calls == {"GetRunAuthority": 40}


async def test_permission_lowered_between_two_calls(ask: Asker, stand: OwnerStand) -> None:
    playground.grant(
        stand.file, subject="olga", role="metadata-reader", tenant="acme", project=ATLAS
    )
    held = permissions((await ask.run("olga")).context)["PROJECT", ATLAS]
    assert "ACCESS_PRIVATE_KNOWLEDGE" not in held


@pytest.mark.parametrize("broken", ["", "tenants: {", "catalog: {}\ntenants: {a: {projcts: {}}}"])
async def test_invalid_file_fails_closed(
    ask: Asker, stand: OwnerStand, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also whoever could call before is refused, until the file is valid again."""
    await ask.run("olga")
    good = stand.file.read_text()
    stand.file.write_text(broken)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await ask.run("olga")
            assert refused(error) is UNAVAILABLE
    (line,) = [entry for entry in caplog.records if entry.name.startswith("broker.devstack")]
    assert str(stand.file) in line.getMessage()
    stand.file.write_text(good)
    await ask.run("olga")


async def test_missing_files_fail_closed(ask: Asker, stand: OwnerStand) -> None:
    for file in (stand.file, stand.tokens.jwks_file):
        content = file.read_text()
        file.unlink()
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.run("olga")
        assert refused(error) is UNAVAILABLE
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
        assert refused(error) is DENIED
        assert stand.calls == 2

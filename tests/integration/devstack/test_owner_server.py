"""The reference owner, asked over gRPC: authority, tenants, selections."""

from __future__ import annotations

import grpc
import pytest

from broker.devstack import playground
from broker.owners.v1 import projects_config_service_pb2 as pb
from tests.fixtures.owner import Asker, OwnerStand

ATLAS = "atlas"
DENIED = grpc.StatusCode.PERMISSION_DENIED
INVALID = grpc.StatusCode.INVALID_ARGUMENT


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


# --- authority ---------------------------------------------------------------------------------


async def test_context_and_selection_of_one_snapshot(ask: Asker, stand: OwnerStand) -> None:
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
    catalog = playground.read(stand.file).catalog[candidate.provider_id]
    assert list(candidate.advertised_capabilities) == catalog.capabilities
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
    assert error.value.code() is DENIED


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
    assert error.value.code() is DENIED
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
    assert error.value.code() is DENIED


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
    """004-69: also where each takes 2 KiB; an answer may be 4 KiB longer for each run."""
    runs = [f"run-{number:03}" for number in range(500)]
    names = [f"capability-{n}-{'x' * 230}" for n in range(5)]
    wide = {"memory": {"advertised": names, "required": names}}
    with playground.edited(stand.file) as content:
        content["tenants"]["acme"]["projects"][ATLAS]["runs"] = dict.fromkeys(runs, wide)
    answer = await ask.project("olga", runs)
    assert answer.ByteSize() > 500 * 2 * 1024
    assert all(entry.HasField("selection") for entry in answer.selections)
    for bad in ([*runs, "one-more"], ["run-001", "run-001"], ["a b"]):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.project("olga", bad)
        assert error.value.code() is INVALID


async def test_unknown_project_and_foreign_project_look_alike(
    ask: Asker, stand: OwnerStand
) -> None:
    with playground.edited(stand.file) as content:
        content["tenants"]["acme"]["projects"]["secret"] = {"runs": {"run-1": {}}}
    details = set()
    for subject, project in (("olga", "absent"), ("olga", "secret"), ("tara", "absent")):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask.run(subject, project=project)
        assert error.value.code() is DENIED
        details.add(error.value.details())
    assert len(details) == 1

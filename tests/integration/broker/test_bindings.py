"""BindingService: what a run is pinned to, and which providers there are; nothing is pinned."""

import hashlib
from typing import Any, Final

import pytest
from grpc import StatusCode

from broker.api.v1 import binding_service_pb2 as pb
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import (
    Ground,
    Row,
    bent,
    candidate,
    fails,
    granting,
    ground,
    hangs,
    judge,
    projects_grant,
    rows_of,
    said,
    sends,
)
from tests.fixtures.broker import Stand
from tests.fixtures.desk import Desk, desk
from tests.fixtures.memory import CAPABILITIES
from tests.fixtures.record_calls import GET_BINDING, LIST_PROVIDERS, scope

pytestmark = pytest.mark.memories("postgres", "redis")

__all__ = ["desk", "ground"]

KNOWLEDGE: Final = owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE
SELECTION: Final = owners.PERMISSION_READ_RUN_SELECTION
PROJECTS: Final = owners.PERMISSION_READ_PROJECTS
WRITE: Final = owners.PERMISSION_WRITE_PROJECTS
MISSING: Final = ("FAILED_PRECONDITION", "BINDING_MISSING")
IDENTIFIER: Final = "must be 1-256 ASCII letters, digits, . _ : -"


@pytest.fixture
async def pinned(desk: Desk) -> Desk:
    """A project whose run has a pin."""
    await desk.made()
    return desk


# -------------------- GetBinding


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_a_pin(pinned: Desk) -> None:
    """004-28, 004-33: every field of it; of the resource only the hash of its id."""
    memory = pinned.stand.memory
    candidate, resource = memory.candidate, memory.resource
    binding = (await pinned.done(GET_BINDING)).binding
    assert binding.create_time.seconds > 0
    binding.ClearField("create_time")
    assert binding == pb.Binding(
        tenant_id="tenant-a",
        project_id=pinned.project,
        run_id="run-a",
        project_revision=1,
        project_configuration_revision=1,
        context_revision="context-v1",
        provider_id=candidate.provider_id,
        adapter_version=candidate.adapter_version,
        options_schema_version=candidate.options_schema_version,
        options_revision=candidate.options_revision,
        resource_id_hash=hashlib.sha256(resource.resource_id.encode()).hexdigest()[:24],
        resource_generation=resource.generation,
        capabilities=sorted(CAPABILITIES),
    )
    assert resource.resource_id.encode() not in binding.SerializeToString()


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_a_pin_never_changes(pinned: Desk) -> None:
    """004-28, 004-31: read twice, after more calls and after a restart it is the same."""
    first = await pinned.done(GET_BINDING)
    await pinned.made("key-2")
    assert await pinned.done(GET_BINDING) == first
    assert pinned.stand.broker.stop() == 0
    pinned.stand.broker.start()
    async with pinned.stand.channel() as channel:
        after = Desk(pinned.stand, channel, pinned.project)
        assert await after.done(GET_BINDING) == first


async def test_no_pin_is_made(desk: Desk) -> None:
    """004-30: a run without a pin has none afterwards either, however often it is asked for."""
    for _ in range(2):
        reply = await desk.told(GET_BINDING)
        assert (reply.code, reply.reason) == MISSING
        assert reply.precondition and not reply.retry
    assert await desk.stand.rows("knowledge.pins", desk.project) == 0
    assert len(desk.stand.owner.questions[desk.project]) == 4, "told only after check two"


async def test_whose_pin(pinned: Desk) -> None:
    """004-12, 004-28: another run, another project, another tenant has a pin of its own."""
    for run in ("run-b", "RUN-A"):
        assert (await pinned.told(GET_BINDING, run=run)).reason == MISSING[1]
    assert (await pinned.told(GET_BINDING, {"tenant": "tenant-b"})).reason == MISSING[1]
    elsewhere = Desk(pinned.stand, pinned.channel, pinned.project.upper())
    assert (await elsewhere.told(GET_BINDING)).reason == MISSING[1]
    assert await pinned.stand.rows("knowledge.pins", pinned.project) == 1


async def test_missing_is_not_told_to_whoever_lost_access(desk: Desk) -> None:
    """004-15, 004-16: revoked meanwhile, not even that there is no pin."""
    desk.stand.owner.scripts[desk.project] = bent(granting(), at=2)
    reply = await desk.told(GET_BINDING)
    assert (reply.reason, reply.metadata) == (
        "PERMISSION_MISSING",
        {"permission": "AccessPrivateKnowledge"},
    )


async def test_a_drifted_selection(pinned: Desk) -> None:
    """004-23, 004-29: a selection that the catalog does not hold shows no pin."""
    pinned.stand.owner.scripts[pinned.project] = bent(candidate(options_revision="options-v2"))
    reply = await pinned.told(GET_BINDING)
    assert reply.code == "FAILED_PRECONDITION"
    assert reply.reason == "PROVIDER_SELECTION_INVALID"


async def test_fields(desk: Desk) -> None:
    """004-48: both ids are judged before any owner is asked."""
    for value in ("", "a b", "a/b", "a" * 257):
        reply = await desk.told(GET_BINDING, scope=scope(value, run=value))
        assert reply.violations == dict.fromkeys(["project_id", "run_id"], IDENTIFIER)
        reply = await desk.told(LIST_PROVIDERS, scope=scope(value))
        assert reply.violations == {"project_id": IDENTIFIER}
    assert desk.stand.owner.counts["a b"] == 0


# -------------------- ListProviders


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_providers(stand: Stand, desk: Desk) -> None:
    """004-32, 004-33: the catalog with its capabilities; no endpoint, no credential."""
    candidate, options = stand.memory.candidate, stand.memory.options()
    reply = await desk.done(LIST_PROVIDERS)
    (provider,) = reply.providers
    assert provider == pb.Provider(
        provider_id=candidate.provider_id,
        adapter_version=candidate.adapter_version,
        options_schema_version=candidate.options_schema_version,
        options_revision=candidate.options_revision,
        hosting=candidate.hosting,
        advertised_capabilities=sorted(CAPABILITIES),
        enabled=True,
    )
    told = reply.SerializeToString()
    texts = [value for value in options.values() if isinstance(value, str)]
    for secret in (stand.database.name, stand.database.runtime_role, *texts):
        assert secret.encode() not in told
    first, second = desk.stand.owner.questions[desk.project]
    for question in (first, second):
        asked = owners.GetProjectAuthorityRequest(project_id=desk.project)
        assert question.request == asked, "no run is named"


@pytest.mark.parametrize(
    "claims",
    [{}, {"project_id": True}, {"project_id": True, "run_id": "run-a"}, {"tenant_id": None}],
    ids=["unbound", "project", "run", "no_tenant"],
)
async def test_whose_token_lists(desk: Desk, claims: dict[str, Any]) -> None:
    """004-10, 004-32: bound to the project or a run of it, or to nothing."""
    given = {key: desk.project if value is True else value for key, value in claims.items()}
    assert (await desk.done(LIST_PROVIDERS, given)).providers


async def test_selection_alone_lists(desk: Desk) -> None:
    """004-09, 004-32: ReadRunSelection on the project is all it takes."""
    desk.stand.owner.scripts[desk.project] = bent(granting(projects_grant(SELECTION)))
    assert (await desk.done(LIST_PROVIDERS)).providers
    reply = await desk.told(GET_BINDING)
    assert reply.metadata == {"permission": "AccessPrivateKnowledge"}


denied = rows_of(
    "004-05, 004-09, 004-14",
    StatusCode.PERMISSION_DENIED,
    "PERMISSION_MISSING",
    1,
    metadata={"permission": "ReadRunSelection"},
    cases=(LIST_PROVIDERS,),
)
meanwhile = rows_of(
    "004-16, 004-17",
    StatusCode.PERMISSION_DENIED,
    "AUTHORITY_CHANGED",
    2,
    cases=(LIST_PROVIDERS,),
)
TENANT: Final = (owners.RESOURCE_TYPE_TENANT, "tenant-a", (KNOWLEDGE, WRITE, SELECTION))
PLATFORM: Final = (owners.RESOURCE_TYPE_PLATFORM, "platform", (SELECTION,))
ELSEWHERE: Final = (owners.RESOURCE_TYPE_PROJECT, "elsewhere", (SELECTION,))
ROWS: Final = (
    denied("owner_denies", script=fails(StatusCode.PERMISSION_DENIED)),
    denied("project_unknown", script=fails(StatusCode.NOT_FOUND)),
    denied("no_grants", script=bent(granting())),
    denied("all_but_selection", script=bent(granting(projects_grant(KNOWLEDGE, WRITE, PROJECTS)))),
    denied("tenant", script=bent(granting(TENANT))),
    denied("platform", script=bent(granting(PLATFORM))),
    denied("another_project", script=bent(granting(ELSEWHERE))),
    denied("revoked_between", script=bent(granting(), at=2), questions=2),
    denied("gone_between", script=fails(StatusCode.NOT_FOUND, at=2), questions=2),
    meanwhile("actor_between", script=bent(said(actor_id="actor-b"), at=2)),
    meanwhile("tenant_between", script=bent(said(tenant_id="tenant-b"), at=2)),
    meanwhile(
        "garbage_between",
        code=StatusCode.INTERNAL,
        reason="AUTHORITY_RESPONSE_INVALID",
        script=sends(b"\xff\xff", at=2),
    ),
    meanwhile(
        "hangs_between",
        code=StatusCode.UNAVAILABLE,
        reason="AUTHORITY_UNAVAILABLE",
        retry=True,
        script=hangs(at=2),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_who_lists(ground: Ground, row: Row) -> None:
    """004-05, 004-09, 004-16, 004-17: ReadRunSelection on the project itself, at both checks."""
    await judge(ground, row)

"""What the Events service does when the broker or the owner refuses or tells nonsense."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from broker.api.v1 import effect_service_pb2
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.events_calls import EventsDesk, events_desk
from tests.fixtures.owner_answers import grant
from tests.fixtures.postgres import Database
from tests.fixtures.receipt_broker import PROJECT, TENANT, receipt

DENIED = grpc.StatusCode.PERMISSION_DENIED
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
INTERNAL = grpc.StatusCode.INTERNAL
NOT_FOUND = grpc.StatusCode.NOT_FOUND
WRITE, READ = owners.PERMISSION_WRITE_PROJECTS, owners.PERMISSION_READ_PROJECTS
ON_PROJECT, ON_TENANT = owners.RESOURCE_TYPE_PROJECT, owners.RESOURCE_TYPE_TENANT


@pytest.fixture
async def desk(tmp_path: Path, postgres_database: Database) -> AsyncIterator[EventsDesk]:
    async with events_desk(tmp_path, postgres_database) as running:
        yield running


BROKER_SAYS = {
    grpc.StatusCode.PERMISSION_DENIED: (DENIED, "accepted_effect_receipt_forbidden"),
    grpc.StatusCode.NOT_FOUND: (NOT_FOUND, "accepted_effect_receipt_not_found"),
    grpc.StatusCode.UNAUTHENTICATED: (INTERNAL, "knowledge_receipt_authority_rejected"),
    grpc.StatusCode.UNAVAILABLE: (UNAVAILABLE, "knowledge_receipt_unavailable"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (UNAVAILABLE, "knowledge_receipt_unavailable"),
    grpc.StatusCode.INTERNAL: (UNAVAILABLE, "knowledge_receipt_unavailable"),
    grpc.StatusCode.FAILED_PRECONDITION: (UNAVAILABLE, "knowledge_receipt_unavailable"),
    grpc.StatusCode.DATA_LOSS: (INTERNAL, "knowledge_receipt_invalid"),
    grpc.StatusCode.UNIMPLEMENTED: (INTERNAL, "knowledge_receipt_invalid"),
}


@pytest.mark.parametrize("said", BROKER_SAYS)
async def test_a_receipt_that_cannot_be_had_is_no_fact(
    desk: EventsDesk, said: grpc.StatusCode
) -> None:
    """004-80, A5: forbidden, not found, or the broker cannot be asked."""

    async def script(_: object, context: Any) -> bytes:
        await context.abort(said, "receipt-1 and a token")
        return b""

    desk.broker.script = script
    await desk.refused(*BROKER_SAYS[said], await desk.admit())
    assert not desk.owner.questions


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xff",
        effect_service_pb2.GetAcceptedEffectResponse(
            receipt=receipt(context_revision="x" * 300_000)
        ).SerializeToString(),
    ],
    ids=["no receipt", "garbage", "too large"],
)
async def test_an_answer_that_is_no_receipt_is_no_fact(desk: EventsDesk, content: bytes) -> None:
    """004-80: an answer is at most 256 KiB and holds a receipt."""

    async def script(*_: object) -> bytes:
        return content

    desk.broker.script = script
    await desk.refused(INTERNAL, "knowledge_receipt_invalid", await desk.admit())


@pytest.mark.parametrize(
    "changes",
    [
        {"receipt_id": "receipt-2"},
        {"project_id": "project-b", "authorization_resource_id": "project-b"},
        {"run_id": "run-b"},
        {"schema_version": 2},
        {"event_version": 2},
        {"effect_id": "another"},
        {"record_version": 0},
        {"tenant_id": ""},
        {"authorization_resource_type": 0},
        {"authorization_resource_type": 3},
        {"authorization_resource_id": TENANT},
        {"authorization_revision": 0},
        {"membership_revision": 0},
        {"project_revision": 0},
        {"project_configuration_revision": -1},
        {"context_revision": ""},
        {"bound_project_id": "project-b"},
        {"bound_run_id": "run-b"},
        {"accept_time": None},
    ],
    ids=str,
)
async def test_a_receipt_that_breaks_a_rule_is_no_fact(
    desk: EventsDesk, changes: dict[str, Any]
) -> None:
    """004-72, 004-80: it is the receipt asked for, whole, and of a known version."""
    told = effect_service_pb2.GetAcceptedEffectResponse(receipt=receipt(**changes))

    async def script(*_: object) -> bytes:
        return told.SerializeToString()

    desk.broker.script = script
    await desk.refused(INTERNAL, "accepted_effect_receipt_invalid", await desk.admit())


OWNER_SAYS = {
    grpc.StatusCode.UNAUTHENTICATED: (DENIED, "missing_current_project_authority"),
    grpc.StatusCode.PERMISSION_DENIED: (DENIED, "missing_effective_writeprojects"),
    grpc.StatusCode.NOT_FOUND: (DENIED, "missing_effective_writeprojects"),
    grpc.StatusCode.UNAVAILABLE: (UNAVAILABLE, "projects_authority_unavailable"),
    grpc.StatusCode.INTERNAL: (UNAVAILABLE, "projects_authority_unavailable"),
    grpc.StatusCode.UNIMPLEMENTED: (INTERNAL, "invalid_authority_response"),
}


@pytest.mark.parametrize("said", OWNER_SAYS)
async def test_without_the_owners_word_nothing_is_a_fact(
    desk: EventsDesk, said: grpc.StatusCode
) -> None:
    """004-80: WriteProjects is held now, or nothing is kept."""

    async def script(_: object, __: object, context: Any) -> bytes:
        await context.abort(said, "no")
        return b""

    desk.owner.scripts[PROJECT] = script
    await desk.refused(*OWNER_SAYS[said], await desk.admit())


@pytest.mark.parametrize(
    ("grants", "enough"),
    [
        ([grant(ON_PROJECT, PROJECT, WRITE)], True),
        ([grant(ON_TENANT, TENANT, WRITE)], True),
        ([grant(ON_PROJECT, PROJECT, READ), grant(ON_TENANT, TENANT, WRITE)], True),
        ([], False),
        ([grant(ON_PROJECT, PROJECT, READ)], False),
        ([grant(ON_PROJECT, "project-b", WRITE)], False),
        ([grant(ON_TENANT, "tenant-b", WRITE)], False),
        ([grant(owners.RESOURCE_TYPE_PLATFORM, "platform", WRITE)], False),
    ],
    ids=[
        "project",
        "tenant",
        "both",
        "none",
        "other right",
        "other project",
        "other tenant",
        "all",
    ],
)
async def test_write_projects_counts_on_the_project_or_the_tenant(
    desk: EventsDesk, grants: list[owners.Grant], enough: bool
) -> None:
    """004-06, 004-80: and nowhere else."""

    async def script(_: object, answer: Any, __: object) -> bytes:
        del answer.context.grants[:]
        answer.context.grants.extend(grants)
        content: bytes = answer.SerializeToString()
        return content

    desk.owner.scripts[PROJECT] = script
    outcome = await desk.admit()
    if enough:
        assert outcome.acknowledgement.sequence == 1
    else:
        await desk.refused(DENIED, "missing_effective_writeprojects", outcome)


@pytest.mark.parametrize(
    "changes", [{"actor_id": "actor-b"}, {"tenant_id": "tenant-b"}, {"bound_run_id": "run-a"}]
)
async def test_an_owner_that_speaks_of_somebody_else_is_not_believed(
    desk: EventsDesk, changes: dict[str, str]
) -> None:
    """004-13, 004-80: its answer agrees with the token."""

    async def script(_: object, answer: Any, __: object) -> bytes:
        for name, value in changes.items():
            setattr(answer.context, name, value)
        content: bytes = answer.SerializeToString()
        return content

    desk.owner.scripts[PROJECT] = script
    await desk.refused(INTERNAL, "invalid_authority_response", await desk.admit())


async def test_a_broker_that_is_away_is_waited_for_by_nobody(desk: EventsDesk) -> None:
    """004-80: refused as unavailable, and taken once it is back."""
    desk.site.stop()
    desk.site.start("127.0.0.1:1")
    await desk.refused(UNAVAILABLE, "knowledge_receipt_unavailable", await desk.admit())
    desk.site.stop()
    desk.site.start(desk.broker.address)
    assert (await desk.admit()).acknowledgement.sequence == 1

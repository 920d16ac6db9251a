"""Whom the Events service refuses: by their tokens, and by the receipt that is not theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from broker.api.v1 import effect_pb2
from tests.fixtures.events_calls import BOTH, EventsDesk, Metadata, events_desk
from tests.fixtures.identity import AUDIENCE, EVENTS_AUDIENCE, Identity
from tests.fixtures.postgres import Database
from tests.fixtures.receipt_broker import PROJECT, RUN, receipt

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED


@pytest.fixture
async def desk(tmp_path: Path, postgres_database: Database) -> AsyncIterator[EventsDesk]:
    async with events_desk(tmp_path, postgres_database) as running:
        yield running


Sends = Callable[[Identity], Metadata]


def one(**claims: Any) -> Sends:
    """One token that is good for both, but for these claims."""
    return lambda who: [("authorization", f"Bearer {who.token(**({'aud': BOTH} | claims))}")]


def two(events: dict[str, Any], knowledge: dict[str, Any]) -> Sends:
    """Two tokens, each with claims of its own."""

    def sends(who: Identity) -> Metadata:
        first = who.token(**({"aud": EVENTS_AUDIENCE} | events))
        second = who.token(**({"aud": AUDIENCE} | knowledge))
        return [
            ("authorization", f"Bearer {first}"),
            ("x-knowledge-authorization", f"Bearer {second}"),
        ]

    return sends


def raw(*pairs: tuple[str, str]) -> Sends:
    """Metadata as it stands; TOKEN stands for one that is good for both."""
    return lambda who: [(key, value.replace("TOKEN", who.token(aud=BOTH))) for key, value in pairs]


BEARER = ("authorization", "Bearer TOKEN")
KNOWLEDGE = "x-knowledge-authorization"

TOKENS: dict[str, tuple[Sends, grpc.StatusCode, str]] = {
    "none": (raw(), UNAUTHENTICATED, "caller_token_missing"),
    "two values": (raw(BEARER, BEARER), UNAUTHENTICATED, "caller_token_missing"),
    "no scheme": (raw(("authorization", "TOKEN")), UNAUTHENTICATED, "caller_token_missing"),
    "another scheme": (
        raw(("authorization", "Basic TOKEN")),
        UNAUTHENTICATED,
        "caller_token_missing",
    ),
    "two tokens in one value": (
        raw(("authorization", "Bearer TOKEN, Bearer TOKEN")),
        UNAUTHENTICATED,
        "caller_token_missing",
    ),
    "two values for knowledge": (
        raw(BEARER, (KNOWLEDGE, "Bearer TOKEN"), (KNOWLEDGE, "Bearer TOKEN")),
        UNAUTHENTICATED,
        "caller_token_missing",
    ),
    "no scheme for knowledge": (
        raw(BEARER, (KNOWLEDGE, "TOKEN")),
        UNAUTHENTICATED,
        "caller_token_missing",
    ),
    "no tenant": (raw(BEARER, ("x-tenant", "a b")), UNAUTHENTICATED, "invalid_tenant_selector"),
    "two tenants": (
        raw(BEARER, ("x-tenant", "tenant-a"), ("x-tenant", "tenant-a")),
        UNAUTHENTICATED,
        "invalid_tenant_selector",
    ),
    "not a token": (raw(("authorization", "Bearer x")), UNAUTHENTICATED, "caller_token_rejected"),
    "for knowledge only": (one(aud=AUDIENCE), UNAUTHENTICATED, "caller_token_rejected"),
    "expired": (one(exp=1), UNAUTHENTICATED, "caller_token_rejected"),
    "another issuer": (
        one(iss="https://other.test"),
        UNAUTHENTICATED,
        "caller_token_rejected",
    ),
    "for events only": (one(aud=EVENTS_AUDIENCE), DENIED, "caller_identity_invalid"),
    "knowledge expired": (two({}, {"exp": 1}), DENIED, "caller_identity_invalid"),
    "two people": (two({}, {"sub": "actor-b"}), DENIED, "caller_identity_invalid"),
    "purpose": (one(purpose="export"), DENIED, "caller_identity_invalid"),
    "purpose of knowledge": (
        two({}, {"purpose": "export"}),
        DENIED,
        "caller_identity_invalid",
    ),
}


@pytest.mark.parametrize("name", TOKENS)
async def test_a_token_that_does_not_count_is_refused(desk: EventsDesk, name: str) -> None:
    """004-80, A5: before anybody is asked."""
    sends, status, code = TOKENS[name]
    await desk.refused(status, code, await desk.admit(metadata=sends(desk.identity)))
    assert not desk.broker.asked
    assert not desk.owner.questions


BOUND = {"project_id": PROJECT, "run_id": RUN}
ON_TENANT = effect_pb2.AUTHORIZATION_RESOURCE_TYPE_TENANT

# The claims of the tokens, and the receipt that the broker tells.
STRANGERS: dict[str, tuple[Sends, dict[str, Any]]] = {
    "another subject": (one(), {"subject": "actor-b"}),
    "another issuer": (one(), {"issuer": "https://identity.test/"}),
    "another tenant": (one(), {"tenant_id": "tenant-b"}),
    "another tenant selected": (
        lambda who: [*one(tenant=None)(who), ("x-tenant", "tenant-b")],
        {},
    ),
    "another tenant by the owner": (one(tenant=None), {"tenant_id": "tenant-b"}),
    "token bound, receipt not": (one(**BOUND), {}),
    "token bound to the project only": (
        one(project_id=PROJECT),
        {"bound_project_id": PROJECT, "bound_run_id": RUN},
    ),
    "receipt bound, token not": (one(), {"bound_project_id": PROJECT}),
    "receipt bound, token of events not": (
        two({}, {"project_id": PROJECT}),
        {"bound_project_id": PROJECT},
    ),
    "receipt bound, token of knowledge not": (
        two({"project_id": PROJECT}, {}),
        {"bound_project_id": PROJECT},
    ),
}


@pytest.mark.parametrize("name", STRANGERS)
async def test_a_receipt_of_somebody_else_is_refused(desk: EventsDesk, name: str) -> None:
    """004-80, A5: issuer, subject, tenant and bounds are those of both tokens."""
    sends, changes = STRANGERS[name]
    desk.broker.holds(receipt(**changes))
    outcome = await desk.admit(metadata=sends(desk.identity))
    await desk.refused(DENIED, "accepted_effect_caller_mismatch", outcome)


@pytest.mark.parametrize(
    ("claims", "changes"),
    [
        ({"project_id": PROJECT}, {"bound_project_id": PROJECT}),
        (BOUND, {"bound_project_id": PROJECT, "bound_run_id": RUN}),
        (
            {},
            {
                "authorization_resource_type": ON_TENANT,
                "authorization_resource_id": "tenant-a",
            },
        ),
    ],
    ids=["project", "run", "granted on the tenant"],
)
async def test_equal_bounds_are_taken(
    desk: EventsDesk, claims: dict[str, Any], changes: dict[str, Any]
) -> None:
    """004-80: what the token is bound to is what it was bound to then."""
    desk.broker.holds(receipt(**changes))
    outcome = await desk.admit(metadata=one(**claims)(desk.identity))
    assert outcome.acknowledgement.sequence == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"receipt_id": ""},
        {"receipt_id": "a/b"},
        {"project_id": "x" * 257},
        {"run_id": ""},
        {"schema_version": 0},
        {"schema_version": 2},
        {"event_version": 2},
    ],
    ids=str,
)
async def test_a_request_that_breaks_the_contract_is_refused(
    desk: EventsDesk, changes: dict[str, Any]
) -> None:
    """004-76: ids are identifiers, and the versions are known ones."""
    outcome = await desk.admit(**({"receipt_id": "receipt-1"} | changes))
    await desk.refused(grpc.StatusCode.INVALID_ARGUMENT, "invalid_request", outcome)
    assert not desk.broker.asked

"""Receipts of accepted effects: what they hold, to whom they are told, and what damage is."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from broker.domain.authority import (
    Authorized,
    Candidate,
    Grant,
    GrantedOn,
    Permission,
    RunSelection,
)
from broker.domain.call import Call, Caller, RunScope
from broker.domain.effects import EffectReceipt, accepted_effect, check_its_caller, receipt_of
from broker.domain.errors import EffectNotFoundError
from providers.conformance import specimens
from providers.errors import StoredDataInvalidError
from providers.model import AcceptedEffect

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
SCOPE = RunScope("project", "run")
CALLER = Caller("https://i", "actor", "Bearer x", bound_project_id="project", bound_run_id="run")
SELECTION = RunSelection(
    tenant_id="tenant",
    project_id="project",
    run_id="run",
    project_revision=3,
    project_configuration_revision=4,
    platform_runtime_revision=5,
    context_revision="context",
    memory=Candidate(
        seam="Memory",
        provider_id="native",
        adapter_version="1.0.0",
        options_schema_version=1,
        options_revision="options",
        hosting="platform",
        advertised=frozenset({"a"}),
        required=frozenset(),
    ),
    max_prompt_tokens=None,
)
AUTHORIZED = Authorized(
    call=Call(CALLER, "request", deadline=1e18),
    scope=SCOPE,
    tenant_id="tenant",
    membership_revision=7,
    grants={
        Permission.ACCESS_PRIVATE_KNOWLEDGE: Grant(
            on=GrantedOn.TENANT, resource_id="tenant", role_revision=9
        )
    },
    selection=SELECTION,
)


def effect() -> AcceptedEffect:
    """Return the effect of a decision."""
    decision = specimens.decision("decision").current
    return accepted_effect(
        AUTHORIZED, decision=decision, receipt_id="receipt", sequence=2, accept_time=NOW
    )


def test_a_receipt_comes_back_as_it_was_made() -> None:
    """004-18, 004-72: the grant that counted, every revision, no content."""
    made = effect()
    assert (made.receipt_id, made.run_id, made.sequence) == ("receipt", "run", 2)
    assert receipt_of(made) == EffectReceipt(
        receipt_id="receipt",
        schema_version=1,
        event_version=1,
        project_id="project",
        run_id="run",
        effect_id="decision",
        record_id="decision",
        record_version=1,
        issuer="https://i",
        subject="actor",
        tenant_id="tenant",
        bound_project_id="project",
        bound_run_id="run",
        authorization_resource_type=GrantedOn.TENANT,
        authorization_resource_id="tenant",
        authorization_revision=9,
        membership_revision=7,
        project_revision=3,
        project_configuration_revision=4,
        context_revision="context",
        accept_time=NOW,
    )


@pytest.mark.parametrize("name", sorted(effect().receipt))
@pytest.mark.parametrize("value", [None, 0, -1, True, 1.5, ["x"]], ids=repr)
def test_a_damaged_receipt_is_not_told(name: str, value: Any) -> None:
    """004-44: a field of another type, or below 1, is damage; only bounds may be absent."""
    made = effect()
    damaged = replace(made, receipt={**made.receipt, name: value})
    if value is None and name.startswith("bound_"):
        assert getattr(receipt_of(damaged), name) is None
        return
    with pytest.raises(StoredDataInvalidError):
        receipt_of(damaged)


def test_a_receipt_has_its_fields_and_no_other() -> None:
    """004-44, 004-72: one too few or too many is damage."""
    made = effect()
    short = dict(made.receipt)
    del short["subject"]
    odd = {**made.receipt, "authorization_resource_type": "platform"}
    for kept in (short, {**made.receipt, "content": "x"}, odd):
        with pytest.raises(StoredDataInvalidError):
            receipt_of(replace(made, receipt=kept))


STRANGERS: dict[str, tuple[Caller, str, RunScope]] = {
    "issuer": (replace(CALLER, issuer="https://j"), "tenant", SCOPE),
    "subject": (replace(CALLER, subject="Actor"), "tenant", SCOPE),
    "tenant": (CALLER, "other", SCOPE),
    "project": (CALLER, "tenant", RunScope("other", "run")),
    "run": (CALLER, "tenant", RunScope("project", "other")),
    "bound_to_no_project": (replace(CALLER, bound_project_id=None), "tenant", SCOPE),
    "bound_to_no_run": (replace(CALLER, bound_run_id=None), "tenant", SCOPE),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_receipt_is_told_to_its_caller_alone(name: str) -> None:
    """004-81: whatever differs, the answer is that there is none."""
    receipt = receipt_of(effect())
    check_its_caller(receipt, CALLER, "tenant", SCOPE)
    with pytest.raises(EffectNotFoundError):
        check_its_caller(receipt, *STRANGERS[name])

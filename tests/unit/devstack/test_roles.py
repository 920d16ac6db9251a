"""Which role permits what, to which token."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from broker.devstack import playground
from broker.devstack.owner import document, rules
from broker.devstack.owner.identity import Identity
from broker.devstack.owner.model import Document
from broker.devstack.owner.refusal import RefusalError
from broker.devstack.owner.roles import BUILT_IN, Permission, Place

KNOWLEDGE = Permission.ACCESS_PRIVATE_KNOWLEDGE
SELECTION = Permission.READ_RUN_SELECTION
WRITE = Permission.WRITE_PROJECTS


def identity(subject: str, **more: Any) -> Identity:
    fields: dict[str, Any] = dict.fromkeys(
        ("tenant_claim", "tenant_selector", "bound_project_id", "bound_run_id", "purpose")
    )
    return Identity(issuer="https://dev.invalid", subject=subject, **(fields | more))


@pytest.fixture
def content() -> Document:
    return document.parse(playground.template())


@pytest.mark.parametrize(
    ("role", "knowledge", "selection", "write"),
    [
        ("owner", "always", "always", "unbound"),
        ("agent-runtime", "always", "always", "never"),
        ("metadata-reader", "never", "always", "never"),
        ("tenant-admin", "unbound", "always", "unbound"),
        ("platform-operator", "never", "never", "never"),
    ],
)
def test_what_the_built_in_roles_permit(
    role: str, knowledge: str, selection: str, write: str
) -> None:
    """004-07 (reading metadata is not reading records) and 004-08 (what a bound token loses)."""
    assert _when(role, KNOWLEDGE) == knowledge
    assert _when(role, SELECTION) == selection
    assert _when(role, WRITE) == write


def _when(role: str, permission: Permission) -> str:
    bound = permission in BUILT_IN[role].permissions(run_bound=True)
    unbound = permission in BUILT_IN[role].permissions(run_bound=False)
    return {(True, True): "always", (False, True): "unbound", (False, False): "never"}[
        (bound, unbound)
    ]


def test_role_is_bound_to_its_place() -> None:
    """004-06, 004-09: a tenant's role is never held on a project, nor the other way round."""
    places = {name: role.places for name, role in BUILT_IN.items()}
    assert places["tenant-admin"] == {Place.TENANT}
    assert places["owner"] == places["agent-runtime"] == {Place.PROJECT}


def test_project_bound_token_keeps_what_only_run_bound_ones_lose(content: Document) -> None:
    caller = rules.enter_tenant(content, identity("olga", bound_project_id="atlas"))
    (held,) = rules.grants(content, caller, ["atlas"])
    assert {KNOWLEDGE, WRITE} <= held.permissions.keys()


def test_grants_carry_the_revision_of_their_role() -> None:
    raw = yaml.safe_load(playground.template())
    raw["roles"] = {"owner": {"revision": 7}, "auditor": {"permissions": [str(KNOWLEDGE)]}}
    raw["tenants"]["acme"]["members"]["olga"] = "auditor"
    content = document.parse(yaml.safe_dump(raw))
    caller = rules.enter_tenant(content, identity("olga"))
    tenant, project = rules.grants(content, caller, ["atlas", "absent"])
    assert (tenant.place, tenant.resource_id, tenant.permissions) == (
        Place.TENANT,
        "acme",
        {KNOWLEDGE: 1},
    )
    assert (project.place, set(project.permissions.values())) == (Place.PROJECT, {7})


@pytest.mark.parametrize(
    ("subject", "claim", "selector", "tenant"),
    [
        ("olga", None, None, "acme"),
        ("olga", "acme", "acme", "acme"),
        ("olga", None, "globex", None),
        ("olga", "globex", None, None),
        ("olga", "acme", "globex", None),
        ("olga", None, "nowhere", None),
        ("tara", None, None, "acme"),
        ("casey", None, None, None),
        ("casey", None, "globex", "globex"),
        ("casey", "acme", None, "acme"),
        ("casey", "acme", "globex", None),
        ("nobody", None, None, None),
    ],
)
def test_tenant_comes_from_membership(
    content: Document, subject: str, claim: str | None, selector: str | None, tenant: str | None
) -> None:
    caller = identity(subject, tenant_claim=claim, tenant_selector=selector)
    if tenant is None:
        with pytest.raises(RefusalError):
            rules.enter_tenant(content, caller)
    else:
        assert rules.enter_tenant(content, caller).tenant_id == tenant

"""The owner's statement about the caller: one row for each rule (004-10..13)."""

from collections.abc import Callable

import pytest

from broker.authority.context import disagreement, read_context
from broker.domain.errors import AuthorityResponseInvalidError
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.owner_answers import answer, caller

Answer = owners.GetRunAuthorityResponse
Bend = Callable[[owners.AuthorizationContext], object]


def test_right_answer_is_read() -> None:
    """004-13: what is right is taken as it is."""
    context = read_context(answer())
    assert (context.issuer, context.actor_id) == ("https://identity.test/", "actor-a")
    assert (context.tenant_id, context.membership_revision) == ("tenant-a", 7)
    assert (context.bound_project_id, context.bound_run_id, context.purpose) == (None,) * 3
    assert disagreement(context, caller()) is None


def test_no_grants_at_all_is_a_right_answer() -> None:
    """004-13: a caller may have nothing."""
    bent = answer()
    del bent.context.grants[:]
    assert read_context(bent).grants == {}


def set_field(name: str, value: object) -> Bend:
    return lambda context: setattr(context, name, value)


def add_grant(change: Callable[[owners.Grant], object]) -> Bend:
    def bend(context: owners.AuthorizationContext) -> None:
        change(
            context.grants.add(
                resource_type=owners.RESOURCE_TYPE_PROJECT,
                resource_id="project-b",
                permissions=[
                    owners.GrantedPermission(
                        permission=owners.PERMISSION_READ_PROJECTS, role_revision=1
                    )
                ],
            )
        )

    return bend


def in_grant(name: str, value: object) -> Bend:
    return add_grant(lambda grant: setattr(grant, name, value))


def in_permission(name: str, value: object) -> Bend:
    return add_grant(lambda grant: setattr(grant.permissions[0], name, value))


MALFORMED: dict[str, tuple[Bend, str]] = {
    "contract_version_0": (set_field("contract_version", 0), "contract_version"),
    "contract_version_2": (set_field("contract_version", 2), "contract_version"),
    "issuer_absent": (set_field("issuer", ""), "issuer"),
    "issuer_too_long": (set_field("issuer", "i" * 513), "issuer"),
    "actor_absent": (set_field("actor_id", ""), "actor_id"),
    "actor_too_long": (set_field("actor_id", "a" * 257), "actor_id"),
    "actor_with_a_line_end": (set_field("actor_id", "a\nb"), "actor_id"),
    "tenant_absent": (set_field("tenant_id", ""), "tenant_id"),
    "tenant_with_a_slash": (set_field("tenant_id", "a/b"), "tenant_id"),
    "tenant_too_long": (set_field("tenant_id", "t" * 257), "tenant_id"),
    "membership_revision_0": (set_field("membership_revision", 0), "membership_revision"),
    "membership_revision_negative": (set_field("membership_revision", -1), "membership_revision"),
    "resource_type_unset": (in_grant("resource_type", 0), "resource_type"),
    "resource_type_unknown": (in_grant("resource_type", 4), "resource_type"),
    "resource_id_empty": (in_grant("resource_id", ""), "resource_id"),
    "resource_id_malformed": (in_grant("resource_id", "a/b"), "resource_id"),
    "resource_granted_twice": (in_grant("resource_id", "project-a"), "granted once"),
    "permission_unset": (in_permission("permission", 0), "permission"),
    "permission_unknown": (in_permission("permission", 9), "permission"),
    "role_revision_0": (in_permission("role_revision", 0), "role_revision"),
    "role_revision_negative": (in_permission("role_revision", -1), "role_revision"),
    "permission_granted_twice": (
        add_grant(lambda grant: grant.permissions.append(grant.permissions[0])),
        "granted once",
    ),
}


@pytest.mark.parametrize(("bend", "rule"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_answer_is_refused(bend: Bend, rule: str) -> None:
    """004-13, 004-18: each field has its rule, and a rule broken anywhere refuses the answer."""
    bent = answer()
    bend(bent.context)
    with pytest.raises(AuthorityResponseInvalidError, match=rule):
        read_context(bent)


def test_empty_answer_is_refused() -> None:
    """004-13: an answer without a statement is none."""
    with pytest.raises(AuthorityResponseInvalidError, match="context"):
        read_context(Answer())


DISAGREEMENTS: dict[str, tuple[dict[str, str | None], Bend, str]] = {
    "issuer": ({}, set_field("issuer", "https://identity.test"), "issuer"),
    "actor": ({}, set_field("actor_id", "Actor-a"), "actor_id"),
    "selector": ({"tenant_selector": "tenant-b"}, lambda _: None, "tenant_id"),
    "claim": ({"tenant_claim": "tenant-b"}, lambda _: None, "tenant_id"),
    "selector_right_claim_not": (
        {"tenant_selector": "tenant-a", "tenant_claim": "tenant-b"},
        lambda _: None,
        "tenant_id",
    ),
    "tenant_moved": (
        {"tenant_selector": "tenant-a"},
        set_field("tenant_id", "tenant-b"),
        "tenant_id",
    ),
    "project_only_in_the_token": (
        {"bound_project_id": "project-a"},
        lambda _: None,
        "bound_project_id",
    ),
    "project_only_in_the_answer": (
        {},
        set_field("bound_project_id", "project-a"),
        "bound_project_id",
    ),
    "project_empty_in_the_answer": ({}, set_field("bound_project_id", ""), "bound_project_id"),
    "project_differs": (
        {"bound_project_id": "project-a"},
        set_field("bound_project_id", "project-b"),
        "bound_project_id",
    ),
    "run_only_in_the_answer": ({}, set_field("bound_run_id", "run-a"), "bound_run_id"),
    "run_empty_in_the_answer": ({}, set_field("bound_run_id", ""), "bound_run_id"),
    "run_differs": (
        {"bound_run_id": "run-a"},
        set_field("bound_run_id", "run-b"),
        "bound_run_id",
    ),
    "purpose_only_in_the_answer": ({}, set_field("token_purpose", "events"), "token_purpose"),
    "purpose_empty_in_the_answer": ({}, set_field("token_purpose", ""), "token_purpose"),
    "purpose_only_in_the_token": ({"purpose": "events"}, lambda _: None, "token_purpose"),
}


@pytest.mark.parametrize(
    ("token", "bend", "field"), DISAGREEMENTS.values(), ids=list(DISAGREEMENTS)
)
def test_answer_must_fit_the_token(token: dict[str, str | None], bend: Bend, field: str) -> None:
    """004-10, 004-11, 004-12, 004-13: identity, tenant, bounds and purpose, both ways."""
    bent = answer()
    bend(bent.context)
    assert disagreement(read_context(bent), caller(**token)) == field


def test_answer_fits_a_bound_token() -> None:
    """004-10: bounds that are equal on both sides, and a tenant named three times."""
    bent = answer()
    bent.context.bound_project_id = "project-a"
    bent.context.bound_run_id = "run-a"
    bound = caller(
        bound_project_id="project-a",
        bound_run_id="run-a",
        tenant_selector="tenant-a",
        tenant_claim="tenant-a",
    )
    assert disagreement(read_context(bent), bound) is None

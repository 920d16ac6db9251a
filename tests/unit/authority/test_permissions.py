"""Which grants give which permission, and what a token alone forbids (004-05..11)."""

from itertools import combinations

import pytest

from broker.authority.context import read_context
from broker.authority.permissions import first_of, held, judge_grants, judge_token
from broker.domain.authority import KNOWLEDGE, Grant, GrantedOn, Need, Permission
from broker.domain.errors import (
    BrokerError,
    PermissionMissingError,
    TokenBindingMismatchError,
    TokenBoundError,
    TokenPurposeBoundError,
)
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.owner_answers import SCOPE, answer, caller, grant

K = Permission.ACCESS_PRIVATE_KNOWLEDGE
W = Permission.WRITE_PROJECTS
S = Permission.READ_RUN_SELECTION

WIRE = {
    K: owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE,
    W: owners.PERMISSION_WRITE_PROJECTS,
    S: owners.PERMISSION_READ_RUN_SELECTION,
}
PLACES = {
    "project": (owners.RESOURCE_TYPE_PROJECT, "project-a"),
    "other_project": (owners.RESOURCE_TYPE_PROJECT, "project-b"),
    "project_in_capitals": (owners.RESOURCE_TYPE_PROJECT, "PROJECT-A"),
    "project_named_like_the_tenant": (owners.RESOURCE_TYPE_PROJECT, "tenant-a"),
    "tenant": (owners.RESOURCE_TYPE_TENANT, "tenant-a"),
    "other_tenant": (owners.RESOURCE_TYPE_TENANT, "tenant-b"),
    "tenant_named_like_the_project": (owners.RESOURCE_TYPE_TENANT, "project-a"),
    "platform": (owners.RESOURCE_TYPE_PLATFORM, "platform"),
    "platform_named_like_the_project": (owners.RESOURCE_TYPE_PLATFORM, "project-a"),
    "platform_named_like_the_tenant": (owners.RESOURCE_TYPE_PLATFORM, "tenant-a"),
}
COUNTS = {K: {"project", "tenant"}, W: {"project", "tenant"}, S: {"project"}}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("permission", WIRE)
def test_where_a_permission_counts(permission: Permission, place: str) -> None:
    """004-06, 004-09: project or own tenant; the selection on the project only; platform never."""
    kind, name = PLACES[place]
    context = read_context(answer(grant(kind, name, WIRE[permission])))
    for asked in WIRE:
        expected = asked is permission and place in COUNTS[permission]
        assert (asked in held(context, SCOPE.project_id)) is expected


@pytest.mark.parametrize(
    "other",
    sorted(set(owners.Permission.values()) - set(WIRE.values()) - {0}),
)
def test_no_other_permission_stands_in(other: int) -> None:
    """004-07: metadata readers, creators and administrators of defaults see no record."""
    context = read_context(answer(*(grant(kind, name, other) for kind, name in PLACES.values())))
    assert held(context, SCOPE.project_id) == {}


def test_write_and_knowledge_do_not_imply_each_other() -> None:
    """004-08: each is granted by itself."""
    for given, asked in ((K, W), (W, K)):
        context = read_context(
            answer(*(grant(kind, name, WIRE[given]) for kind, name in PLACES.values()))
        )
        assert given in held(context, SCOPE.project_id)
        assert asked not in held(context, SCOPE.project_id)


def test_grants_on_project_and_tenant_add_up() -> None:
    """004-06: the two resources that count are taken together."""
    context = read_context(
        answer(
            grant(owners.RESOURCE_TYPE_TENANT, "tenant-a", WIRE[K]),
            grant(owners.RESOURCE_TYPE_PROJECT, "project-a", WIRE[S]),
        )
    )
    judge_grants(held(context, SCOPE.project_id), KNOWLEDGE)


def test_a_grant_on_the_project_goes_before_one_on_the_tenant() -> None:
    """004-18: the grant that counts is one, and is told with the revision of its role."""
    on_tenant = grant(owners.RESOURCE_TYPE_TENANT, "tenant-a", WIRE[K])
    on_project = grant(owners.RESOURCE_TYPE_PROJECT, "project-a", WIRE[K])
    on_project.permissions[0].role_revision = 42
    for both in ((on_tenant, on_project), (on_project, on_tenant)):
        assert held(read_context(answer(*both)), SCOPE.project_id) == {
            K: Grant(on=GrantedOn.PROJECT, resource_id="project-a", role_revision=42)
        }
    (counting,) = held(read_context(answer(on_tenant)), SCOPE.project_id).values()
    assert (counting.on, counting.resource_id) == (GrantedOn.TENANT, "tenant-a")


NEEDS = [frozenset(some) for size in range(4) for some in combinations((K, W, S), size)]
ORDER = (K, W, S)


@pytest.mark.parametrize("given", NEEDS, ids=lambda given: "+".join(sorted(given)) or "nothing")
@pytest.mark.parametrize("needed", NEEDS, ids=lambda need: "+".join(sorted(need)) or "nothing")
def test_first_missing_permission_is_named(
    needed: frozenset[Permission], given: frozenset[Permission]
) -> None:
    """004-05, 004-14: AccessPrivateKnowledge, then WriteProjects, then ReadRunSelection."""
    wire = [WIRE[permission] for permission in sorted(given)]
    context = read_context(answer(grant(owners.RESOURCE_TYPE_PROJECT, "project-a", *wire)))
    missing = next((entry for entry in ORDER if entry in needed - given), None)
    if missing is None:
        judge_grants(held(context, SCOPE.project_id), Need(needed))
        return
    with pytest.raises(PermissionMissingError) as refused:
        judge_grants(held(context, SCOPE.project_id), Need(needed))
    assert refused.value.metadata == {"permission": missing.value}


def test_caller_with_nothing_is_told_of_knowledge_first() -> None:
    """004-05: whatever else is needed."""
    assert first_of(Need(frozenset({K, W, S}))) is K
    assert first_of(Need(frozenset({W, S}))) is W
    assert first_of(Need(frozenset({S}))) is S
    assert first_of(Need(frozenset())) is K


P = {"bound_project_id": "project-a"}
PR = {**P, "bound_run_id": "run-a"}
OTHER_P = {"bound_project_id": "project-b"}
OTHER_R = {**P, "bound_run_id": "run-b"}
PURPOSE = {"purpose": "events"}


@pytest.mark.parametrize(
    ("token", "unbound", "refusal"),
    [
        ({}, False, None),
        ({}, True, None),
        (P, False, None),
        (PR, False, None),
        (P, True, TokenBoundError),
        (PR, True, TokenBoundError),
        (OTHER_P, False, TokenBindingMismatchError),
        (OTHER_P, True, TokenBindingMismatchError),
        (OTHER_R, False, TokenBindingMismatchError),
        ({"bound_project_id": "PROJECT-A"}, False, TokenBindingMismatchError),
        (PURPOSE, False, TokenPurposeBoundError),
        ({**OTHER_P, **PURPOSE}, True, TokenPurposeBoundError),
    ],
    ids=str,
)
def test_what_a_token_alone_forbids(
    token: dict[str, str], unbound: bool, refusal: type[BrokerError] | None
) -> None:
    """004-10, 004-11: purpose first, then bounds, then whether it must be unbound."""
    need = Need(frozenset({K, S}), unbound=unbound)
    if refusal is None:
        judge_token(caller(**token), SCOPE, need)
        return
    with pytest.raises(refusal):
        judge_token(caller(**token), SCOPE, need)

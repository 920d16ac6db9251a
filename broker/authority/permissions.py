"""Judges what a caller may do: first by the token alone, then by the owner's grants."""

from collections.abc import Mapping

from broker.authority.context import PROJECT, TENANT, Context
from broker.domain.authority import Grant, GrantedOn, Need, Permission
from broker.domain.call import Caller, ProjectScope, RunScope
from broker.domain.errors import (
    PermissionMissingError,
    TokenBindingMismatchError,
    TokenBoundError,
    TokenPurposeBoundError,
)
from broker.owners.v1 import projects_config_service_pb2 as owners

ORDER = (
    Permission.ACCESS_PRIVATE_KNOWLEDGE,
    Permission.WRITE_PROJECTS,
    Permission.READ_RUN_SELECTION,
)
"""The order in which permissions are judged: a caller with none is told of the first."""

_GRANTED = {
    Permission.ACCESS_PRIVATE_KNOWLEDGE: int(owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE),
    Permission.WRITE_PROJECTS: int(owners.PERMISSION_WRITE_PROJECTS),
    Permission.READ_RUN_SELECTION: int(owners.PERMISSION_READ_RUN_SELECTION),
}
_GRANTED_ON: Mapping[GrantedOn, Mapping[Permission, int]] = {
    GrantedOn.TENANT: {
        permission: number
        for permission, number in _GRANTED.items()
        if permission is not Permission.READ_RUN_SELECTION
    },
    GrantedOn.PROJECT: _GRANTED,
}
"""Which permissions a grant counts for, by what it is on."""


def judge_token(caller: Caller, scope: RunScope | ProjectScope, need: Need) -> None:
    """Judge what the token alone decides: purpose, then bounds, then whether it must be unbound.

    Raises:
        TokenPurposeBoundError: it is bound to a purpose (004-11). Not retryable.
        TokenBindingMismatchError: it is bound to another project or run (004-10). Not retryable.
        TokenBoundError: it is bound, and the method needs an unbound one. Not retryable.
    """
    judge_purpose(caller)
    if caller.bound_project_id not in {None, scope.project_id}:
        raise TokenBindingMismatchError("the token is bound to another project")
    if isinstance(scope, RunScope) and caller.bound_run_id not in {None, scope.run_id}:
        raise TokenBindingMismatchError("the token is bound to another run")
    if need.unbound and caller.bound:
        raise TokenBoundError("this needs a token that is bound to no project and no run")


def judge_purpose(caller: Caller) -> None:
    """Refuse a token that is bound to a purpose.

    Raises:
        TokenPurposeBoundError: whatever the purpose is (004-11). Not retryable.
    """
    if caller.purpose is not None:
        raise TokenPurposeBoundError("the token is bound to a purpose; use a general one")


def held(context: Context, project_id: str) -> dict[Permission, Grant]:
    """Return the permissions the caller holds on a project, each with the grant that counts.

    A grant on the project counts, and goes first (004-18); one on the caller's own tenant counts
    for all but ReadRunSelection; one on the platform, another project or another tenant never does
    (004-06..09).
    """
    found: dict[Permission, Grant] = {}
    for on, resource in (
        (GrantedOn.TENANT, (TENANT, context.tenant_id)),
        (GrantedOn.PROJECT, (PROJECT, project_id)),
    ):
        revisions = context.grants.get(resource)
        if revisions is None:
            continue
        for permission, number in _GRANTED_ON[on].items():
            if number in revisions:
                found[permission] = Grant(
                    on=on, resource_id=resource[1], role_revision=revisions[number]
                )
    return found


def judge_grants(grants: Mapping[Permission, Grant], need: Need) -> None:
    """Demand every permission of ``need``, in ``ORDER``.

    Raises:
        PermissionMissingError: names the first that is missing (004-05..09). Not retryable.
    """
    for permission in ORDER:
        if permission in need.permissions and permission not in grants:
            raise PermissionMissingError(permission)


def first_of(need: Need) -> Permission:
    """Return the permission that a caller who does not know the project is told of."""
    for permission in ORDER:
        if permission in need.permissions:
            return permission
    return ORDER[0]

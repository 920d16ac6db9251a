"""Reads the owner's statement about the caller, and holds it against the token."""

from collections.abc import Mapping
from typing import NamedTuple

from broker.authority.issuers import ISSUER_MAX
from broker.authority.syntax import is_label
from broker.domain.call import Caller
from broker.domain.errors import AuthorityResponseInvalidError
from broker.domain.fields import is_identifier
from broker.owners.v1 import projects_config_service_pb2 as owners

CONTRACT_VERSION = 1

PLATFORM = int(owners.RESOURCE_TYPE_PLATFORM)
TENANT = int(owners.RESOURCE_TYPE_TENANT)
PROJECT = int(owners.RESOURCE_TYPE_PROJECT)

_RESOURCE_TYPES = frozenset({PLATFORM, TENANT, PROJECT})
_PERMISSIONS = frozenset(int(value) for value in owners.Permission.values()) - {0}

Grants = Mapping[tuple[int, str], Mapping[int, int]]
"""The permissions held on each resource, by its type and id, and the revision of each one's role.
"""


class Context(NamedTuple):
    """The owner's statement, checked for its form only."""

    issuer: str
    actor_id: str
    tenant_id: str
    membership_revision: int
    bound_project_id: str | None
    bound_run_id: str | None
    purpose: str | None
    grants: Grants


def read_context(
    answer: owners.GetRunAuthorityResponse
    | owners.GetProjectAuthorityResponse
    | owners.GetCallerAuthorityResponse,
) -> Context:
    """Check every field of the statement for its form (004-13).

    Raises:
        AuthorityResponseInvalidError: a field is absent, malformed, unknown or doubled. The
            message names the rule. Not retryable.
    """
    if not answer.HasField("context"):
        raise _broken("context must be set")
    said = answer.context
    if said.contract_version != CONTRACT_VERSION:
        raise _broken("contract_version must be 1")
    if not is_label(said.issuer, ISSUER_MAX):
        raise _broken("issuer must be 1-512 printable characters")
    if not is_label(said.actor_id):
        raise _broken("actor_id must be 1-256 printable characters")
    if not is_identifier(said.tenant_id):
        raise _broken("tenant_id must be an identifier")
    if said.membership_revision < 1:
        raise _broken("membership_revision must be at least 1")
    return Context(
        issuer=said.issuer,
        actor_id=said.actor_id,
        tenant_id=said.tenant_id,
        membership_revision=said.membership_revision,
        bound_project_id=said.bound_project_id if said.HasField("bound_project_id") else None,
        bound_run_id=said.bound_run_id if said.HasField("bound_run_id") else None,
        purpose=said.token_purpose if said.HasField("token_purpose") else None,
        grants=_grants(said),
    )


def disagreement(context: Context, caller: Caller) -> str | None:
    """Name the first field in which the owner and the verified token differ, if any (004-10..13).

    Bounds and purpose must be present on both sides or on none. The tenant must equal the selector
    where it was sent and the token's tenant claim where it is present.
    """
    if context.issuer != caller.issuer:
        return "issuer"
    if context.actor_id != caller.subject:
        return "actor_id"
    if not {caller.tenant_selector, caller.tenant_claim} <= {None, context.tenant_id}:
        return "tenant_id"
    if context.bound_project_id != caller.bound_project_id:
        return "bound_project_id"
    if context.bound_run_id != caller.bound_run_id:
        return "bound_run_id"
    if context.purpose != caller.purpose:
        return "token_purpose"
    return None


def _grants(said: owners.AuthorizationContext) -> Grants:
    grants: dict[tuple[int, str], Mapping[int, int]] = {}
    for grant in said.grants:
        resource = (int(grant.resource_type), grant.resource_id)
        if resource[0] not in _RESOURCE_TYPES:
            raise _broken("a grant's resource_type must be known")
        if not is_identifier(resource[1]):
            raise _broken("a grant's resource_id must be an identifier")
        if resource in grants:
            raise _broken("a resource may be granted once")
        grants[resource] = _permissions(grant)
    return grants


def _permissions(grant: owners.Grant) -> dict[int, int]:
    entries = grant.permissions
    held = {int(entry.permission): entry.role_revision for entry in entries}
    if not held.keys() <= _PERMISSIONS:
        raise _broken("a granted permission must be known")
    if min(held.values(), default=1) < 1:
        raise _broken("a role_revision must be at least 1")
    if len(held) != len(entries):
        raise _broken("a permission may be granted once on a resource")
    return held


def _broken(rule: str) -> AuthorityResponseInvalidError:
    return AuthorityResponseInvalidError(f"the owner's answer breaks a rule: {rule}")

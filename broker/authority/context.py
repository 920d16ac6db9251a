"""Reads the owner's statement about the caller, and holds it against the token."""

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
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
    _demand(answer.HasField("context"), "context must be set")
    said = answer.context
    _demand(said.contract_version == CONTRACT_VERSION, "contract_version must be 1")
    _demand(is_label(said.issuer, ISSUER_MAX), "issuer must be 1-512 printable characters")
    _demand(is_label(said.actor_id), "actor_id must be 1-256 printable characters")
    _demand(is_identifier(said.tenant_id), "tenant_id must be an identifier")
    _demand(said.membership_revision >= 1, "membership_revision must be at least 1")
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
    tenants = {caller.tenant_selector, caller.tenant_claim} - {None}
    agrees = {
        "issuer": context.issuer == caller.issuer,
        "actor_id": context.actor_id == caller.subject,
        "tenant_id": tenants <= {context.tenant_id},
        "bound_project_id": context.bound_project_id == caller.bound_project_id,
        "bound_run_id": context.bound_run_id == caller.bound_run_id,
        "token_purpose": context.purpose == caller.purpose,
    }
    return next((field for field, same in agrees.items() if not same), None)


def _grants(said: owners.AuthorizationContext) -> Grants:
    grants: dict[tuple[int, str], Mapping[int, int]] = {}
    for grant in said.grants:
        resource = (int(grant.resource_type), grant.resource_id)
        _demand(resource[0] in _RESOURCE_TYPES, "a grant's resource_type must be known")
        _demand(is_identifier(resource[1]), "a grant's resource_id must be an identifier")
        _demand(resource not in grants, "a resource may be granted once")
        grants[resource] = _permissions(grant)
    return grants


def _permissions(grant: owners.Grant) -> dict[int, int]:
    held: dict[int, int] = {}
    for entry in grant.permissions:
        permission = int(entry.permission)
        _demand(permission in _PERMISSIONS, "a granted permission must be known")
        _demand(entry.role_revision >= 1, "a role_revision must be at least 1")
        _demand(permission not in held, "a permission may be granted once on a resource")
        held[permission] = entry.role_revision
    return held


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise AuthorityResponseInvalidError(f"the owner's answer breaks a rule: {rule}")

"""Who may do what: the decisions of the owner, without input or output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from broker.devstack.owner import document as documents
from broker.devstack.owner.identity import Identity
from broker.devstack.owner.model import Document, Tenant
from broker.devstack.owner.refusal import denied
from broker.devstack.owner.roles import Permission, Place

PLATFORM_ID = "platform"


@dataclass(frozen=True, slots=True)
class Held:
    """What somebody may do with one resource, each with the revision of the role behind it."""

    place: Place
    resource_id: str
    permissions: Mapping[Permission, int]


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody in the tenant they act in."""

    identity: Identity
    tenant_id: str
    tenant: Tenant


def enter_tenant(document: Document, identity: Identity) -> Caller:
    """Returns the caller in their tenant, which is always one they are a member of.

    A member of several tenants has to name one, by ``x-tenant`` or by a claim of the token.

    Raises:
        RefusalError: No tenant, or not exactly one, fits.
    """
    named = {identity.tenant_selector, identity.tenant_claim} - {None}
    mine = [
        tenant_id
        for tenant_id, tenant in document.tenants.items()
        if _is_member(tenant, identity.subject) and named <= {tenant_id}
    ]
    if not mine:
        raise denied("the caller is not a member of that tenant")
    if len(mine) > 1:
        raise denied("the caller is a member of several tenants: x-tenant must name one")
    return Caller(identity, mine[0], document.tenants[mine[0]])


def grants(document: Document, caller: Caller, project_ids: Iterable[str]) -> list[Held]:
    """Returns what the caller may do with the platform, their tenant and some of its projects."""
    subject = caller.identity.subject
    places = [
        (Place.PLATFORM, PLATFORM_ID, document.platform.members),
        (Place.TENANT, caller.tenant_id, caller.tenant.members),
        *(
            (Place.PROJECT, project_id, caller.tenant.projects[project_id].members)
            for project_id in project_ids
            if project_id in caller.tenant.projects
        ),
    ]
    run_bound = caller.identity.bound_run_id is not None
    return [
        Held(place, resource_id, _permissions(document, members[subject], run_bound=run_bound))
        for place, resource_id, members in places
        if subject in members
    ]


def require_project(caller: Caller, held: list[Held], project_id: str) -> None:
    """Refuses a project that is absent, that the caller has no part in, or is not bound to.

    Raises:
        RefusalError: The same in all three cases, so that nobody learns which projects exist.
    """
    bound = caller.identity.bound_project_id
    known = any(grant.place is not Place.PLATFORM for grant in held)
    if not known or project_id not in caller.tenant.projects or bound not in {None, project_id}:
        raise denied("the caller does not know that project")


def may_read_selection(caller: Caller, held: list[Held], run_id: str) -> bool:
    """Whether the caller may read the selection of a run of the project they asked for.

    The owner takes a grant on the tenant too; what serves knowledge insists on the project.
    """
    if caller.identity.bound_run_id not in {None, run_id}:
        return False
    return any(
        Permission.READ_RUN_SELECTION in grant.permissions
        for grant in held
        if grant.place is not Place.PLATFORM
    )


def _is_member(tenant: Tenant, subject: str) -> bool:
    return subject in tenant.members or any(
        subject in project.members for project in tenant.projects.values()
    )


def _permissions(document: Document, name: str, *, run_bound: bool) -> dict[Permission, int]:
    role = documents.roles(document)[name]
    entry = document.roles.get(name)
    revision = entry.revision if entry is not None else 1
    return dict.fromkeys(sorted(role.permissions(run_bound=run_bound)), revision)

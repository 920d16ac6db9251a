"""Puts decisions into the messages of the contract."""

from __future__ import annotations

from broker.devstack.owner.model import CatalogEntry, Document, Project, Run, Selection
from broker.devstack.owner.roles import Place
from broker.devstack.owner.rules import Caller, Held
from broker.owners.v1 import projects_config_service_pb2 as pb

CONTRACT_VERSION = 1

_PLACES = {
    Place.PLATFORM: pb.RESOURCE_TYPE_PLATFORM,
    Place.TENANT: pb.RESOURCE_TYPE_TENANT,
    Place.PROJECT: pb.RESOURCE_TYPE_PROJECT,
}


def context(caller: Caller, held: list[Held]) -> pb.AuthorizationContext:
    """Returns who the caller is and what they may do."""
    identity = caller.identity
    return pb.AuthorizationContext(
        contract_version=CONTRACT_VERSION,
        issuer=identity.issuer,
        actor_id=identity.subject,
        tenant_id=caller.tenant_id,
        membership_revision=caller.tenant.membership_revision,
        bound_project_id=identity.bound_project_id,
        bound_run_id=identity.bound_run_id,
        token_purpose=identity.purpose,
        grants=[_grant(each) for each in held],
    )


def selection(
    document: Document, tenant_id: str, project_id: str, run_id: str
) -> pb.RunSelection | None:
    """Returns the accepted selection of a run; nothing where there is no such run."""
    project = document.tenants[tenant_id].projects[project_id]
    run = project.runs.get(run_id)
    if run is None:
        return None
    return pb.RunSelection(
        tenant_id=tenant_id,
        project_id=project_id,
        run_id=run_id,
        platform_runtime_revision=document.platform.runtime_revision,
        context_revision=run.context_revision,
        providers=[_providers(document, run.memory)],
        run_limits=pb.RunLimits(max_prompt_tokens=run.max_prompt_tokens),
        **_revisions(project, run),
    )


def _grant(held: Held) -> pb.Grant:
    return pb.Grant(
        resource_type=_PLACES[held.place],
        resource_id=held.resource_id,
        permissions=[
            pb.GrantedPermission(
                permission=pb.Permission.Value(f"PERMISSION_{permission.name}"),
                role_revision=revision,
            )
            for permission, revision in held.permissions.items()
        ],
    )


def _revisions(project: Project, run: Run) -> dict[str, int]:
    return {
        "project_revision": run.project_revision or project.revision,
        "project_configuration_revision": (
            run.configuration_revision or project.configuration_revision
        ),
    }


def _providers(document: Document, chosen: Selection) -> pb.SelectedProviders:
    provider_id = chosen.provider or next(iter(document.catalog))
    entry = document.catalog[provider_id]
    return pb.SelectedProviders(
        cardinality=pb.CARDINALITY_EXCLUSIVE,
        seam=entry.seam,
        candidates=[_candidate(provider_id, entry, chosen)],
    )


def _candidate(provider_id: str, entry: CatalogEntry, chosen: Selection) -> pb.Candidate:
    advertised = entry.capabilities if chosen.advertised is None else chosen.advertised
    return pb.Candidate(
        seam=entry.seam,
        provider_id=provider_id,
        adapter_version=chosen.adapter_version or entry.adapter_version,
        options_schema_version=chosen.options_schema_version or entry.options_schema_version,
        options_revision=chosen.options_revision or entry.options_revision,
        hosting=chosen.hosting or entry.hosting,
        advertised_capabilities=advertised,
        required_capabilities=chosen.required,
    )

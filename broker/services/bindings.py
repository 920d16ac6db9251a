"""The use cases of BindingService."""

from broker.domain.authority import KNOWLEDGE, SELECTIONS
from broker.domain.call import Call
from broker.domain.fields import Violations, check_identifier, refuse_if_any
from broker.domain.ports import CatalogPort, Pin, ProviderInfo
from broker.domain.requests import ScopeInput
from broker.services.access import AccessPath


class BindingReads:
    """Tells what a run is pinned to and what the catalog offers. Pins nothing."""

    def __init__(self, access: AccessPath, catalog: CatalogPort) -> None:
        """Take the path of checks and the catalog."""
        self._access = access
        self._catalog = catalog

    async def get_binding(self, call: Call, project_id: str, run_id: str) -> Pin:
        """Return the pin of a run (004-28, 004-30)."""
        violations: Violations = []
        check_identifier(violations, "project_id", project_id)
        check_identifier(violations, "run_id", run_id)
        refuse_if_any(violations)
        authorized = await self._access.authorize(call, ScopeInput(project_id, run_id, ""))
        access = await self._access.enter(authorized, None, create=False)
        await self._access.confirm(authorized, KNOWLEDGE)
        return access.bound.pin

    async def list_providers(self, call: Call, project_id: str) -> tuple[ProviderInfo, ...]:
        """Return the catalog to whoever may read run selections of a project (004-32)."""
        violations: Violations = []
        check_identifier(violations, "project_id", project_id)
        refuse_if_any(violations)
        authorized = await self._access.authorize_project(call, project_id, SELECTIONS)
        await self._access.confirm(authorized, SELECTIONS)
        return self._catalog.providers()

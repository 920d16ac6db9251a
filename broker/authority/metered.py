"""Counts and times what the owner is asked."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from broker.authority.checks import AuthoritySource
from broker.domain.call import Call, ProjectScope, RunScope
from broker.domain.errors import BrokerError
from broker.owners.v1 import projects_config_service_pb2 as owners

T = TypeVar("T")

Observe = Callable[[str, str, float], None]
"""Takes a method, ``ok`` or a reason, and seconds."""


class MeteredOwner:
    """A source of authority that tells of each round trip how it ended and how long it took."""

    def __init__(self, owner: AuthoritySource, observe: Observe) -> None:
        """Take the source and who is told."""
        self._owner = owner
        self._observe = observe

    async def run_authority(
        self, call: Call, scope: RunScope, permission: str
    ) -> owners.GetRunAuthorityResponse:
        """Ask once about a run; errors as there."""
        asking = self._owner.run_authority(call, scope, permission)
        return await self._told("GetRunAuthority", asking)

    async def project_authority(
        self, call: Call, scope: ProjectScope, permission: str
    ) -> owners.GetProjectAuthorityResponse:
        """Ask once about a project as a whole; errors as there."""
        asking = self._owner.project_authority(call, scope, permission)
        return await self._told("GetProjectAuthority", asking)

    async def caller_authority(
        self, call: Call, permission: str
    ) -> owners.GetCallerAuthorityResponse:
        """Ask once about the caller; errors as there."""
        asking = self._owner.caller_authority(call, permission)
        return await self._told("GetCallerAuthority", asking)

    async def _told(self, method: str, asking: Awaitable[T]) -> T:
        started = time.perf_counter()
        outcome = "cancelled"
        try:
            answer = await asking
            outcome = "ok"
        except BrokerError as error:
            outcome = error.reason.value
            raise
        finally:
            self._observe(method, outcome, time.perf_counter() - started)
        return answer

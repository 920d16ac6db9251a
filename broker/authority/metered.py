"""Counts and times what the owner is asked."""

import time
from collections.abc import Callable

from broker.authority.checks import RunAuthoritySource
from broker.domain.call import Call, RunScope
from broker.domain.errors import BrokerError
from broker.owners.v1 import projects_config_service_pb2 as owners

Observe = Callable[[str, str, float], None]
"""Takes a method, ``ok`` or a reason, and seconds."""


class MeteredOwner:
    """A source of authority that tells of each round trip how it ended and how long it took."""

    def __init__(self, owner: RunAuthoritySource, observe: Observe) -> None:
        """Take the source and who is told."""
        self._owner = owner
        self._observe = observe

    async def run_authority(
        self, call: Call, scope: RunScope, permission: str
    ) -> owners.GetRunAuthorityResponse:
        """Ask once; errors as there."""
        started = time.perf_counter()
        outcome = "cancelled"
        try:
            answer = await self._owner.run_authority(call, scope, permission)
            outcome = "ok"
        except BrokerError as error:
            outcome = error.reason.value
            raise
        finally:
            self._observe("GetRunAuthority", outcome, time.perf_counter() - started)
        return answer

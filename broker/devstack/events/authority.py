"""Whether the caller may write facts of the project now (004-80)."""

from __future__ import annotations

import asyncio

from broker.api.v1 import effect_pb2
from broker.authority.checks import OwnerAuthority
from broker.authority.client import OwnerClient
from broker.devstack.events.refusal import Refusal, RefusalError
from broker.domain.authority import Need, Permission
from broker.domain.call import Call, Caller, RunScope
from broker.domain.errors import (
    AuthorityResponseInvalidError,
    AuthorityUnavailableError,
    BrokerError,
    DeadlineExceededError,
    PermissionMissingError,
    TokenRejectedByOwnerError,
)
from broker.outbound import PeerSettings

_WRITE = Need(frozenset({Permission.WRITE_PROJECTS}))
_REFUSALS: dict[type[BrokerError], Refusal] = {
    TokenRejectedByOwnerError: Refusal.AUTHORITY_MISSING,
    PermissionMissingError: Refusal.WRITE_MISSING,
    AuthorityResponseInvalidError: Refusal.AUTHORITY_INVALID,
    AuthorityUnavailableError: Refusal.AUTHORITY_UNAVAILABLE,
    DeadlineExceededError: Refusal.AUTHORITY_UNAVAILABLE,
}


class CurrentAuthority:
    """Asks the Projects & Config owner, each time anew, with the token for the Events service."""

    def __init__(self, owner: PeerSettings) -> None:
        """Opens the way to the owner; needs a running event loop.

        Raises:
            OSError: A certificate file cannot be read.
        """
        self._client = OwnerClient(owner)
        self._authority = OwnerAuthority(self._client)

    async def require_write(
        self,
        caller: Caller,
        receipt: effect_pb2.EffectReceipt,
        *,
        request_id: str,
        seconds: float,
    ) -> None:
        """Refuses who does not hold WriteProjects on the project, or on the receipt's tenant, now.

        Raises:
            RefusalError: It is not held, or the owner cannot be asked or believed.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        call = Call(caller, request_id, deadline)
        scope = RunScope(receipt.project_id, receipt.run_id)
        try:
            held = await self._authority.check(call, scope, _WRITE)
        except BrokerError as error:
            raise RefusalError(_REFUSALS.get(type(error), Refusal.CALLER_INVALID)) from error
        if held.tenant_id != receipt.tenant_id:
            raise RefusalError(Refusal.CALLER_MISMATCH)

    async def close(self) -> None:
        """Closes the way."""
        await self._client.aclose()

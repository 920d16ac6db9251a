"""The use cases that take memories in."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.facets import claims_operator, require_operator
from broker.domain.fields import check_scope
from broker.domain.idempotency import fingerprint, receipt_for
from broker.domain.memories import (
    Arm,
    ArmReport,
    DedupMode,
    Gap,
    Remember,
    RememberedAll,
)
from broker.domain.ports import Clock
from broker.memory.intake import Intake, Item, Likeness, Rules, remembered
from broker.memory.decide import DUPLICATE_COSINE
from broker.memory.shelf import Shelf
from broker.services.access import Access, AccessPath, Settled, Write
from broker.services.head_writer import HeadWriter, heads_left
from broker.services.likeness import LikenessReads, between
from broker.services.memory_fields import Checked, checked_memories
from providers.capabilities import Capability
from providers.model import ReceiptKey, Record, WriteSet
from providers.requests import Loaded, LoadRequest

REMEMBER: Final = "Remember"
BATCH_REMEMBER: Final = "BatchRemember"
REINFORCING_ATTEMPTS: Final = 3
"""After so many lost attempts a telling is no longer counted: it is not worth a refusal."""


class Memories:
    """Takes memories in behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath, writer: HeadWriter, reads: LikenessReads) -> None:
        """Take the path of checks, what stamps writes, and what finds like memories."""
        self._access = access
        self._writer = writer
        self._reads = reads

    async def remember(self, call: Call, request: Remember) -> RememberedAll:
        """Take memories in, all of them or none (001-01, R15)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        checked = checked_memories(request)
        operator = any(claims_operator(each.facet) for each in request.memories)
        if operator:
            require_operator(authorized)
        access = await self._access.enter(authorized, Capability.WRITE)
        access.bound.require(Capability.RECALL)
        attempt = _Attempt(self, access, request, checked, operator=operator)
        settled = await self._access.write(access, attempt.write())
        return _reply(request, settled)


@dataclass(slots=True)
class _Attempt:
    """One request on its way through the attempts of a write."""

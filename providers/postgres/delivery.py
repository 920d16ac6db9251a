"""Delivery: each method is one statement. The store's clock alone says when a lease ends.

No time is made or compared here, and no lock is held between two statements.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import orjson

from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectFound,
    EffectRequest,
    LeaseRequest,
    PendingEffects,
    PendingEffectsRequest,
    UnscopedEffectFound,
    UnscopedEffectRequest,
)
from providers.documents import to_effect
from providers.errors import StoredDataInvalidError
from providers.model import ProjectKey, ResourceIdentity
from providers.postgres.connections import Connection, Connections
from providers.postgres.reader import BIGGEST, findable
from providers.postgres.sending import marked, send
from providers.postgres.statements import (
    ACKNOWLEDGE,
    ACQUIRE,
    EFFECT,
    PENDING,
    RELEASE,
    UNSCOPED,
)
from providers.rules import check_code

_MARKER_WIDTH = 2


@dataclass(frozen=True, slots=True)
class Writer:
    """Sends the statements that write, and tells what became of one without an answer."""

    connections: Connections
    resource: ResourceIdentity

    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        """See ``IMemoryProvider.acquire``."""
        row = await self._send(
            ACQUIRE,
            self._named(request.project, request.receipt_id, request.run_id),
            request.lease_ms,
            timeout=timeout,
        )
        found = to_effect_found(row[_MARKER_WIDTH + 1 :])
        return Acquired(row["token"], found.effect, found.delivered, found.acknowledgement)

    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        """See ``IMemoryProvider.acknowledge``."""
        row = await self._send(
            ACKNOWLEDGE,
            self._named(request.project, request.receipt_id, request.run_id),
            findable(request.token),
            acknowledgement.fact_id,
            acknowledgement.sequence,
            timeout=timeout,
        )
        return bool(row["done"])

    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        """See ``IMemoryProvider.release``."""
        self.connections.check_open()
        check_code(code)
        row = await self._send(
            RELEASE,
            self._named(request.project, request.receipt_id, request.run_id),
            findable(request.token),
            code,
            timeout=timeout,
        )
        return bool(row["done"])

    def _named(self, project: ProjectKey, receipt_id: str, run_id: str) -> tuple[object, ...]:
        """Return what every statement that writes begins with."""
        names = (project.tenant_id, project.project_id, receipt_id, run_id)
        return (*map(findable, names), self.resource.resource_id, self.resource.generation)

    async def _send(
        self, statement: str, named: tuple[object, ...], *given: object, timeout: float
    ) -> asyncpg.Record:
        return await send(
            self.connections, self.resource, statement, *named, *given, timeout=timeout
        )


# -------------------- reads


async def effect(
    link: Connection, resource: ResourceIdentity, request: EffectRequest
) -> EffectFound:
    """See ``IMemoryProvider.effect``."""
    project = request.project
    names = (project.tenant_id, project.project_id, request.receipt_id, request.run_id)
    row = marked(resource, await link.fetchrow(EFFECT, *map(findable, names)))
    return to_effect_found(row[_MARKER_WIDTH:])


async def pending_effects(
    link: Connection, resource: ResourceIdentity, request: PendingEffectsRequest
) -> PendingEffects:
    """See ``IMemoryProvider.pending_effects``."""
    project = request.project
    rows = await link.fetch(
        PENDING,
        *map(findable, (project.tenant_id, project.project_id, request.run_id)),
        min(request.after_sequence, BIGGEST),
        request.limit + 1,
    )
    marked(resource, rows[0] if rows else None)
    found = [to_effect_found(row[_MARKER_WIDTH:]) for row in rows]
    pending = [each for each in found if each.effect is not None]
    return PendingEffects(tuple(pending[: request.limit]), more=len(pending) > request.limit)


async def unscoped_effect(
    link: Connection, resource: ResourceIdentity, request: UnscopedEffectRequest
) -> UnscopedEffectFound:
    """See ``UnscopedEffects``."""
    names = (request.tenant_id, request.receipt_id, request.issuer, request.subject)
    row = marked(resource, await link.fetchrow(UNSCOPED, *map(findable, names)))
    return UnscopedEffectFound(row["project_id"], to_effect_found(row[_MARKER_WIDTH + 1 :]))


# -------------------- rows


def to_effect_found(row: Sequence[Any]) -> EffectFound:
    """Return the effect that the columns of a row hold, in the order of the statements.

    Raises:
        StoredDataInvalidError: They hold a damaged one. Not retryable.
    """
    run_id, sequence, receipt_id, receipt, accept_time, delivered, code, fact_id, fact = row
    if receipt_id is None:
        return EffectFound(None)
    try:
        values = (run_id, sequence, receipt_id, orjson.loads(receipt), accept_time)
        acknowledgement = None if fact_id is None else Acknowledgement(fact_id, fact)
    except (TypeError, ValueError) as error:
        raise StoredDataInvalidError("a stored effect is damaged") from error
    return EffectFound(to_effect(values), delivered, code, acknowledgement)

"""Keeps pins in schema ``knowledge``."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Text, and_, any_, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from broker.domain.errors import StorageUnavailableError
from broker.domain.ports import Pin, PinQuery
from broker.store.schema import pins
from providers.model import ResourceIdentity

TIMEOUT_SECONDS: Final = 5.0
_COLUMNS: Final = tuple(column.name for column in pins.columns)
_AT_ONCE: Final = 100
"""So many rows are read into pins before other calls get their turn."""


class PostgresPinStore:
    """Pins on PostgreSQL. Every failure is StorageUnavailableError; nothing is half-written."""

    def __init__(self, engine: AsyncEngine) -> None:
        """Take the engine; whoever made it disposes of it."""
        self._engine = engine

    async def find(self, tenant_id: str, project_id: str, run_id: str) -> Pin | None:
        """Return the committed pin of a run, or ``None``."""
        query = select(pins).where(
            and_(
                pins.c.tenant_id == tenant_id,
                pins.c.project_id == project_id,
                pins.c.run_id == run_id,
            )
        )
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._engine.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise _unavailable() from error
        return None if row is None else _pin(row, {})

    async def list(self, query: PinQuery) -> tuple[Pin, ...]:
        """Return the first committed pins that are wanted, by run id."""
        statement = (
            select(pins).where(and_(*_conditions(query))).order_by(pins.c.run_id).limit(query.limit)
        )
        found: list[Pin] = []
        shared: dict[Any, Any] = {}
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._engine.connect() as connection:
                rows = await connection.execute(statement)
                for some in rows.partitions(_AT_ONCE):
                    found += [_pin(row, shared) for row in some]
                    await asyncio.sleep(0)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise _unavailable() from error
        return tuple(found)

    async def count(self, query: PinQuery) -> int:
        """Return how many pins ``list`` would return, without reading them."""
        first = select(pins.c.run_id).where(and_(*_conditions(query))).limit(query.limit)
        statement = select(func.count()).select_from(first.subquery())
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._engine.connect() as connection:
                return (await connection.execute(statement)).scalar_one()
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise _unavailable() from error

    async def insert_if_absent(self, pin: Pin) -> Pin:
        """Insert a pin unless the run has one; return the one that is committed."""
        statement = insert(pins).values(_values(pin)).on_conflict_do_nothing()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._engine.begin() as connection:
                await connection.execute(statement)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise _unavailable() from error
        committed = await self.find(pin.tenant_id, pin.project_id, pin.run_id)
        if committed is None:
            raise _unavailable()
        return committed


def _conditions(query: PinQuery) -> Iterator[ColumnElement[bool]]:
    yield pins.c.tenant_id == query.tenant_id
    yield pins.c.project_id == query.project_id
    if query.run_ids:
        yield pins.c.run_id == any_(bindparam("run_ids", list(query.run_ids), ARRAY(Text)))
    if query.provider_id is not None:
        yield pins.c.provider_id == query.provider_id
    if query.committed_from is not None:
        yield pins.c.create_time >= query.committed_from
    if query.committed_before is not None:
        yield pins.c.create_time < query.committed_before


def _values(pin: Pin) -> dict[str, object]:
    return {
        "tenant_id": pin.tenant_id,
        "project_id": pin.project_id,
        "run_id": pin.run_id,
        "project_revision": pin.project_revision,
        "project_configuration_revision": pin.project_configuration_revision,
        "context_revision": pin.context_revision,
        "provider_id": pin.provider_id,
        "adapter_version": pin.adapter_version,
        "options_schema_version": pin.options_schema_version,
        "options_revision": pin.options_revision,
        "resource_id": pin.resource.resource_id,
        "resource_generation": pin.resource.generation,
        "capabilities": sorted(pin.capabilities),
        "create_time": func.now(),
    }


def _pin(row: Row[Any], shared: dict[Any, Any]) -> Pin:
    """Return a pin of a row; what equals a part of an earlier pin is that part (004-69)."""
    found: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    resource = ResourceIdentity(found.pop("resource_id"), found.pop("resource_generation"))
    found |= {"resource": resource, "capabilities": frozenset(found["capabilities"])}
    return Pin(**{name: shared.setdefault(part, part) for name, part in found.items()})


def _unavailable() -> StorageUnavailableError:
    return StorageUnavailableError("the broker's own store does not answer; retry")

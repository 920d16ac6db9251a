"""Keeps the log of compilations in schema ``knowledge``."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Row, Select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from broker.domain.compilations import (
    Compilation,
    CompilationPage,
    CompilationQuery,
    CompilationSummary,
)
from broker.domain.context import ContextItem, ContextKind, OmissionCause, OmittedItem
from broker.domain.errors import StorageUnavailableError
from broker.domain.fields import is_identifier
from broker.store.compilation_statements import appended, found_one, listed
from providers.errors import StoredDataInvalidError

TIMEOUT_SECONDS: Final = 5.0
_DAMAGED: Final = "a logged compilation has another shape"
_SILENT: Final = "the broker's own store does not answer; retry"


class PostgresCompilationLog:
    """The log on PostgreSQL. Every failure is StorageUnavailableError; nothing is half-written."""

    def __init__(self, engine: AsyncEngine) -> None:
        """Take the engine; whoever made it disposes of it."""
        # A statement is a transaction by itself: no trip for BEGIN, and none for COMMIT.
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def append(self, compilation: Compilation) -> Compilation:
        """Log a compilation and return it with its time."""
        [row] = await self._rows(appended(compilation))
        return replace(compilation, create_time=row.create_time)

    async def find(
        self, tenant_id: str, project_id: str, run_id: str, compilation_id: str
    ) -> Compilation | None:
        """Return a compilation of a run, or ``None``.

        Raises:
            StoredDataInvalidError: what was logged has another shape. Not retryable.
        """
        rows = await self._rows(found_one(tenant_id, project_id, run_id, compilation_id))
        return _compilation(rows[0]) if rows else None

    async def list(self, query: CompilationQuery) -> CompilationPage:
        """Return the newest that are wanted: by time, then by id, both descending."""
        rows = await self._rows(listed(query))
        found = tuple(CompilationSummary(**row._mapping) for row in rows[: query.limit])
        return CompilationPage(found, more=len(rows) > query.limit)

    async def _rows(self, statement: Select[Any]) -> Sequence[Row[Any]]:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._engine.connect() as connection:
                rows: Sequence[Row[Any]] = (await connection.execute(statement)).all()
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise StorageUnavailableError(_SILENT) from error
        return rows


def _compilation(row: Row[Any]) -> Compilation:
    found: dict[str, Any] = dict(row._mapping)
    items, left_out = found.pop("items"), found.pop("left_out")
    try:
        return Compilation(
            items=tuple(_item(*item) for item in items),
            left_out=tuple(_omitted(*left) for left in left_out),
            **found,
        )
    except (TypeError, ValueError) as error:
        raise StoredDataInvalidError(_DAMAGED) from error


def _item(kind: str, record_id: str, revision: int, revision_id: str) -> ContextItem:
    _check_reference(record_id, revision)
    if not isinstance(revision_id, str):
        raise TypeError("a revision id is text")
    return ContextItem(
        kind=ContextKind(kind), record_id=record_id, revision=revision, revision_id=revision_id
    )


def _omitted(kind: str, record_id: str, revision: int, cause: str) -> OmittedItem:
    _check_reference(record_id, revision)
    return OmittedItem(
        kind=ContextKind(kind), record_id=record_id, revision=revision, cause=OmissionCause(cause)
    )


def _check_reference(record_id: object, revision: object) -> None:
    if not isinstance(record_id, str) or not is_identifier(record_id):
        raise ValueError("a record id is an identifier")
    if type(revision) is not int or revision < 1:
        raise ValueError("a revision is a number above 0")

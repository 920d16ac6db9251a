"""Whether the broker's own schema can be served with: checked at start, never mended (004-101)."""

import asyncio
from typing import Final

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from broker.domain.errors import StorageUnavailableError

REVISION: Final = "0002"
"""The migration this code is written for. A test compares it with the newest migration."""

_LOOK: Final = text(
    """
    SELECT
        v.version_num AS revision,
        t.enough,
        t.too_much
            OR has_schema_privilege('knowledge', 'CREATE')
            OR EXISTS (
                SELECT FROM pg_auth_members WHERE member = to_regrole(quote_ident(current_user))
            ) AS too_much,
        t.kept
    FROM knowledge.alembic_version AS v
    CROSS JOIN (
        SELECT
            bool_and(coalesce(
                has_table_privilege(id, 'SELECT') AND has_table_privilege(id, 'INSERT'), false
            )) AS enough,
            bool_or(
                has_table_privilege(id, 'UPDATE, DELETE, TRUNCATE, TRIGGER')
                    OR has_any_column_privilege(id, 'UPDATE')
            ) AS too_much,
            bool_and((
                SELECT count(*)
                FROM pg_trigger
                WHERE tgrelid = id AND tgname IN (name || '_immutable', name || '_kept')
                    AND tgenabled IN ('O', 'A')
            ) = 2) AS kept
        FROM unnest(ARRAY['pins', 'compilations', 'compilation_items']) AS n (name)
        CROSS JOIN LATERAL CAST(to_regclass('knowledge.' || name) AS oid) AS r (id)
    ) AS t
    """
)
_MISSING_OBJECT_CLASS: Final = "42"


class SchemaUnfitError(Exception):
    """The schema or the role must not be served with. The message says what an operator must do."""


async def check_schema(engine: AsyncEngine, *, timeout: float) -> None:
    """Look at the live schema and role.

    Raises:
        SchemaUnfitError: not migrated, at another revision, or wrong rights. Not retryable.
        StorageUnavailableError: no answer within ``timeout`` seconds. Retryable.
    """
    try:
        async with asyncio.timeout(timeout), engine.connect() as connection:
            found = (await connection.execute(_LOOK)).one_or_none()
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        if _sqlstate(error).startswith(_MISSING_OBJECT_CLASS):
            raise SchemaUnfitError(
                "schema knowledge is not migrated, or the role may not read it: run broker migrate"
            ) from error
        raise StorageUnavailableError("the broker's own store does not answer; retry") from error
    if found is None or found.revision != REVISION:
        raise SchemaUnfitError(
            f"schema knowledge is not at revision {REVISION}: run broker migrate"
        )
    if not found.enough:
        raise SchemaUnfitError(
            "the role may not read and insert in schema knowledge: run broker migrate"
        )
    if found.too_much:
        raise SchemaUnfitError("the role has more rights on schema knowledge than it may have")
    if not found.kept:
        raise SchemaUnfitError("a trigger that keeps schema knowledge is gone or disabled")


def _sqlstate(error: Exception) -> str:
    return str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")

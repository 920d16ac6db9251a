"""The marker of a resource: written once, by the operator."""

import asyncpg

from providers.errors import NegotiationRefusedError

_INSERT = """
INSERT INTO memory.resource (resource_id, generation, create_time)
VALUES ($1, $2, statement_timestamp())
"""


async def init_resource(dsn: str, resource_id: str, generation: int) -> None:
    """Write the marker into a migrated database that has none.

    Args:
        dsn: ``postgresql://`` address of the database, of the identity that migrates.
        resource_id: The name this resource is to have.
        generation: Counts from 1; the operator raises it when a backup is restored.

    Raises:
        NegotiationRefusedError: There is a marker already; its ``fact`` is ``marker``. Nothing was
            written. Not retryable.
        NegotiationRefusedError: The database is not migrated; its ``fact`` is ``schema``. Nothing
            was written. Not retryable.
        asyncpg.PostgresError: The server refused. Nothing was written.
        OSError: The server cannot be reached. Retryable.
    """
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(_INSERT, resource_id, generation)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
        raise NegotiationRefusedError(
            "the database is not migrated: run broker migrate first", fact="schema"
        ) from error
    except asyncpg.UniqueViolationError as error:
        raise NegotiationRefusedError("the resource has a marker already", fact="marker") from error
    finally:
        await connection.close()

"""Statements of one row that begins with the marker, and those of them that write."""

import asyncpg

from providers.errors import ResourceMismatchError
from providers.marker import NO_MARKER, check_marker
from providers.model import ResourceIdentity
from providers.postgres import errors
from providers.postgres.connections import Connection, Connections


def marked(resource: ResourceIdentity, row: asyncpg.Record | None) -> asyncpg.Record:
    """Return the row, if the marker in it is the configured one.

    Raises:
        ResourceMismatchError: It is another, or there is no row. Not retryable.
    """
    if row is None:
        raise ResourceMismatchError(NO_MARKER)
    check_marker(resource, row[0], row[1])
    return row


async def send(
    connections: Connections,
    resource: ResourceIdentity,
    statement: str,
    *given: object,
    timeout: float,
) -> asyncpg.Record:
    """Run one statement that writes and return its row, the marker checked.

    Raises:
        OutcomeUnknownError: It was sent and no answer came. Retryable: see first what became of it.
    """
    in_doubt = False

    async def work(link: Connection) -> asyncpg.Record | None:
        nonlocal in_doubt
        try:
            in_doubt = True
            row = await link.fetchrow(statement, *given)
        except asyncpg.PostgresError as error:
            in_doubt = errors.ends_session(error)
            raise
        in_doubt = False
        return row

    try:
        row = await connections.run(work, timeout=timeout)
    except errors.DRIVER as error:
        raise errors.translate(error, in_doubt=in_doubt, writing=True) from error
    return marked(resource, row)

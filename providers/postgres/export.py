"""Histories on the move: whole chains of one snapshot, and the tombstones an import asks for."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any

import asyncpg

from providers.errors import StoredDataInvalidError
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound, Limit
from providers.marker import check_marker
from providers.model import Record, ResourceIdentity, Revision, Tombstone
from providers.postgres.connections import Connection
from providers.postgres.reader import all_findable, findable
from providers.postgres.rows import SNAPSHOT_WIDTH, to_record, to_revision
from providers.postgres.statements import EXPORT_AGENT, EXPORT_NAMED, TOMBSTONES

# More than any store holds in one project, and small enough to add one.
_LIMIT_MAX = 2**62
_HEAD, _IS_HEAD, _CREATE_TIME, _SNAPSHOT = 5, 6, 7, 8


async def export(link: Connection, resource: ResourceIdentity, request: ExportRequest) -> Export:
    """See ``IMemoryProvider.export``."""
    project = request.project
    given: list[object] = [
        *map(findable, (project.tenant_id, project.project_id, request.agent_id)),
        *(min(limit, _LIMIT_MAX) for limit in _limits(request)),
    ]
    statement = EXPORT_AGENT
    if request.record_ids:
        statement = EXPORT_NAMED
        given.append(all_findable(request.record_ids))
    rows = await link.fetch(statement, *given)
    if not rows:
        check_marker(resource, None, None)
    check_marker(resource, rows[0][0], rows[0][1])
    exceeded = _exceeded(rows[0], request)
    if exceeded is not None:
        return Export((), exceeded)
    found = [row for row in rows if row[_SNAPSHOT] is not None]
    chains = [_chain(list(group)) for _, group in groupby(found, key=lambda row: row[_SNAPSHOT])]
    if len(chains) != rows[0]["records"]:
        raise StoredDataInvalidError("a stored head has no history")
    return Export(tuple(chains))


async def tombstones(link: Connection, resource: ResourceIdentity, request: KeyQuery) -> KeysFound:
    """See ``IMemoryProvider.tombstones``."""
    project = request.project
    rows = await link.fetch(
        TOMBSTONES,
        findable(project.tenant_id),
        findable(project.project_id),
        all_findable(request.keys),
    )
    if not rows:
        check_marker(resource, None, None)
    check_marker(resource, rows[0][0], rows[0][1])
    return KeysFound(tuple(_to_tombstone(row[2:]) for row in rows if row[2] is not None))


def _limits(request: ExportRequest) -> tuple[int, int, int]:
    return request.records_max, request.revisions_max, request.bytes_max


def _exceeded(row: asyncpg.Record, request: ExportRequest) -> Limit | None:
    names: tuple[Limit, ...] = ("records", "revisions", "bytes")
    for name, most in zip(names, _limits(request), strict=True):
        if row[name] > most:
            return name
    return None


def _chain(rows: Sequence[asyncpg.Record]) -> tuple[Record, tuple[Revision, ...]]:
    """Return the chain that the rows of one record hold, oldest first, and its head.

    Raises:
        StoredDataInvalidError: It has a gap, a link that does not fit, or a head that is not its
            newest revision. Not retryable.
    """
    revisions = [to_revision(row[_SNAPSHOT : _SNAPSHOT + SNAPSHOT_WIDTH]) for row in rows]
    newest = rows[-1]
    numbers = list(map(attrgetter("revision"), revisions))
    if numbers != list(range(1, newest[_HEAD] + 1)):
        raise StoredDataInvalidError("a stored history has a gap")
    for earlier, later in pairwise(revisions):
        if later.previous_revision_id != earlier.revision_id:
            raise StoredDataInvalidError("a stored history has a link that does not fit")
    if newest[_IS_HEAD] is not True:
        raise StoredDataInvalidError("a stored head is not its newest revision")
    head = to_record(newest[_SNAPSHOT : _SNAPSHOT + SNAPSHOT_WIDTH], newest[_CREATE_TIME])
    return Record(revisions[-1], head.create_time), tuple(revisions)


def _to_tombstone(row: Sequence[Any]) -> Tombstone:
    key, kind, create_time = row
    if create_time.tzinfo is None:  # the driver's way to say that it is infinite
        raise StoredDataInvalidError("a stored tombstone's time is no time")
    return Tombstone(key, kind, create_time)

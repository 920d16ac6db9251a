"""Context candidates: chosen, measured and sent by one statement."""

from providers.marker import check_marker
from providers.model import ResourceIdentity
from providers.postgres.connections import Connection
from providers.postgres.rows import SNAPSHOT_WIDTH, to_record
from providers.postgres.statements import CANDIDATES, MARKER
from providers.requests import Candidates, CandidatesRequest
from providers.rules import is_storable

_TRUNCATED, _CREATE_TIME, _SNAPSHOT = 2, 3, 4


async def candidates(
    link: Connection, resource: ResourceIdentity, request: CandidatesRequest
) -> Candidates:
    """See ``IMemoryProvider.candidates``."""
    project = request.project
    named = (project.tenant_id, project.project_id, request.agent_id, request.run_id)
    if not all(map(is_storable, named)):
        marker = await link.fetchrow(MARKER)
        check_marker(resource, *(marker or (None, None)))
        return Candidates(())
    rows = await link.fetch(CANDIDATES, *named, request.limit, request.bytes_max)
    if not rows:
        check_marker(resource, None, None)
    check_marker(resource, rows[0][0], rows[0][1])
    records = tuple(
        to_record(row[_SNAPSHOT : _SNAPSHOT + SNAPSHOT_WIDTH], row[_CREATE_TIME])
        for row in rows
        if row[_SNAPSHOT] is not None
    )
    return Candidates(records, truncated_bytes=rows[0][_TRUNCATED])

"""Context candidates: chosen, measured and sent by one script."""

from providers.findable import findable_project
from providers.heads import memories, sessions
from providers.redis import keys
from providers.redis.calls import Calls, nothing, project_call
from providers.redis.scripts import Script
from providers.redis.search import to_records
from providers.requests import Candidates, CandidatesRequest
from providers.rules import is_storable


async def candidates(calls: Calls, request: CandidatesRequest, timeout: float) -> Candidates:
    """See ``IMemoryProvider.candidates``."""
    if not (is_storable(request.agent_id) and is_storable(request.run_id)):
        await calls.read(nothing(), timeout=timeout)
        return Candidates(())
    asked = {
        "memories": memories(request.agent_id),
        "sessions": sessions(request.agent_id, request.run_id),
        "limit": request.limit,
        "bytes": request.bytes_max,
    }
    call = project_call(Script.CANDIDATES, findable_project(request.project), asked)
    ended, found = await calls.read(call, timeout=timeout)
    records = tuple(to_records(keys.tag_of(call.digest), found))
    return Candidates(records, truncated_bytes=bool(ended))

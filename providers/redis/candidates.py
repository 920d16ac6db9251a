"""Context candidates: chosen, measured and sent by one script."""

from providers.redis import keys
from providers.redis.calls import Calls, project_call
from providers.redis.reader import findable, findable_project
from providers.redis.rows import memories, sessions
from providers.redis.scripts import Script
from providers.redis.search import to_records
from providers.requests import Candidates, CandidatesRequest


async def candidates(calls: Calls, request: CandidatesRequest, timeout: float) -> Candidates:
    """See ``IMemoryProvider.candidates``."""
    agent_id = findable(request.agent_id)
    asked = {
        "memories": memories(agent_id),
        "sessions": sessions(agent_id, findable(request.run_id)),
        "limit": request.limit,
        "bytes": request.bytes_max,
    }
    call = project_call(Script.CANDIDATES, findable_project(request.project), asked)
    ended, found = await calls.read(call, timeout=timeout)
    records = tuple(to_records(keys.tag_of(call.digest), found))
    return Candidates(records, truncated_bytes=bool(ended))

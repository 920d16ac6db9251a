"""Recall: an agent's memories are looked through on the server, a stretch in each script."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from providers.documents import DAMAGE, to_json
from providers.eligibility import is_eligible
from providers.errors import RecallScopeTooLargeError, StoredDataInvalidError
from providers.findable import findable, findable_project
from providers.folding import folded
from providers.heads import memories
from providers.model import Record
from providers.order import largest_first
from providers.recall import Eligible, Recalled, RecallRequest, Superseded, TaggedRequest
from providers.redis import keys
from providers.redis.calls import Calls, project_call
from providers.redis.entries import needle
from providers.redis.judging import to_judged
from providers.redis.scripts import Script
from providers.redis.search import to_records
from providers.redis.sets import recalled, replaced
from providers.requests import SearchPage
from providers.scanning import Scanned, scan

_ROOM = 20
"""How many heads more than are missing a script may give of those that may fit."""
_WIDTH = 5


@dataclass(slots=True)
class _Looked:
    """What was looked at: sums of those that are not found, and the others as scripts give them."""

    documents: int = 0
    length_total: int = 0
    unindexed: int = 0
    found: list[Any] = field(default_factory=list)


async def recall(calls: Calls, request: RecallRequest, most: int, timeout: float) -> Recalled:
    """See ``IMemoryProvider.recall``; ``most`` is what the resource negotiated."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    project, asked = findable_project(request.eligible.project), _asked(request, most)
    tag, looked = keys.tag_of(keys.project_digest(project)), _Looked()
    while asked["low"]:
        call = project_call(Script.RECALL, project, asked)
        total, *rest = await calls.read(call, timeout=deadline - clock())
        if not rest:
            raise RecallScopeTooLargeError(limit=most, observed=total)
        low, documents, length_total, unindexed, found = rest
        looked.documents += documents
        looked.length_total += length_total
        looked.unindexed += unindexed
        looked.found += found
        asked["low"] = _to_text(low)
    # Not here: what takes long would keep every other call waiting.
    return await asyncio.to_thread(_scan, request, tag, looked)


def _asked(request: RecallRequest, most: int) -> dict[str, Any]:
    agent, vector = findable(request.eligible.agent_id), request.vector
    live = memories(agent) if request.eligible.superseded is Superseded.NONE else None
    return {
        "set": recalled(agent),
        "live": live,
        "most": most,
        "low": "-",
        "needles": [needle(each) for each in sorted(request.terms)],
        "model": None if vector is None else findable(vector.model),
        "bytes": None if vector is None else len(vector.packed),
    }


def _to_text(value: bytes) -> str:
    try:
        return value.decode()
    except DAMAGE:
        raise StoredDataInvalidError("a stored index is damaged") from None


def _scan(request: RecallRequest, tag: str, looked: _Looked) -> Recalled:
    """Return what is found; those of which only sums are left hold nothing that is asked for."""
    each = zip(*[iter(looked.found)] * _WIDTH, strict=True)
    try:
        found = scan(request, [_scanned(request, tag, *values) for values in each])
    except DAMAGE:
        raise StoredDataInvalidError("a stored entry is damaged") from None
    return replace(
        found,
        documents=found.documents + looked.documents,
        length_total=found.length_total + looked.length_total,
        unindexed=looked.unindexed,
    )


def _scanned(
    request: RecallRequest,
    tag: str,
    record_id: bytes,
    length: int,
    lines: bytes,
    numbers: bytes | None,
    head: bytes,
) -> Scanned:
    name = record_id.decode()

    def judged() -> bool:
        return is_eligible(to_judged(tag, name, head), request.eligible)

    return Scanned(name, length, lines.decode(), numbers, judged)


# -------------------- by tags


def _places(eligible: Eligible) -> list[str]:
    """Name the sets in which the memories of Q-3 stand by their place."""
    agent = findable(eligible.agent_id)
    live = [memories(agent)]
    return live if eligible.superseded is Superseded.NONE else [*live, replaced(agent)]


async def tagged(calls: Calls, request: TaggedRequest, timeout: float) -> SearchPage:
    """See ``IMemoryProvider.tagged``."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    eligible = request.eligible
    project = findable_project(eligible.project)
    asked: dict[str, Any] = {
        "sets": _places(eligible),
        "low": "-",
        "high": f"({largest_first(eligible.importance_min)}g",
        "tags": [to_json(folded(findable(each))).decode() for each in eligible.tags],
    }
    found: list[Record] = []
    while asked["low"] and len(found) <= request.limit:
        asked["room"] = request.limit + 1 - len(found) + _ROOM
        call = project_call(Script.TAGGED, project, asked)
        low, page = await calls.read(call, timeout=deadline - clock())
        records = to_records(keys.tag_of(call.digest), page)
        found += [each for each in records if is_eligible(each, eligible)]
        asked["low"] = _to_text(low)
    return SearchPage(tuple(found[: request.limit]), more=len(found) > request.limit)

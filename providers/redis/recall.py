"""Recall: an agent's memories are looked through on the server, a stretch in each script."""

import asyncio
from collections.abc import Sequence
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
from providers.redis.sets import replaced
from providers.requests import SearchPage
from providers.scanning import Scanned, scan

_STRETCH = 500
"""How many names a script is given: it looks at no more."""
_ROOM = 20
"""How many heads more than are missing a script may give of those that may fit."""


async def recall(calls: Calls, request: RecallRequest, most: int, timeout: float) -> Recalled:
    """See ``IMemoryProvider.recall``; ``most`` is what the resource negotiated."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    project, asked = findable_project(request.eligible.project), _asked(request, most)
    call = project_call(Script.RECALL, project, asked)
    total, names, found = await calls.read(call, timeout=timeout)
    if total > most:
        raise RecallScopeTooLargeError(limit=most, observed=total)
    records = _names(names)
    while len(found) < len(records):
        rest = records[len(found) : len(found) + _STRETCH]
        call = project_call(Script.RECALL, project, {**asked, "sets": None, "records": rest})
        found += (await calls.read(call, timeout=deadline - clock()))[-1]
    # Not here: what takes long would keep every other call waiting.
    return await asyncio.to_thread(_scan, request, keys.tag_of(call.digest), records, found)


def _asked(request: RecallRequest, most: int) -> dict[str, Any]:
    vector = request.vector
    return {
        "sets": _sets(request.eligible),
        "records": None,
        "most": most,
        "needles": [needle(each) for each in sorted(request.terms)],
        "model": None if vector is None else findable(vector.model),
        "bytes": None if vector is None else len(vector.packed),
    }


def _sets(eligible: Eligible) -> list[str]:
    """Name the sets of the memories of Q-3."""
    agent = findable(eligible.agent_id)
    live = [memories(agent)]
    return live if eligible.superseded is Superseded.NONE else [*live, replaced(agent)]


def _names(found: Sequence[bytes]) -> list[str]:
    try:
        return [each.decode() for each in found]
    except DAMAGE:
        raise StoredDataInvalidError("a stored index is damaged") from None


def _scan(request: RecallRequest, tag: str, names: list[str], found: list[Any]) -> Recalled:
    heads = [_scanned(request, tag, *pair) for pair in zip(names, found, strict=True)]
    try:
        return scan(request, heads)
    except DAMAGE:
        raise StoredDataInvalidError("a stored entry is damaged") from None


def _scanned(request: RecallRequest, tag: str, record_id: str, found: Any) -> Scanned:
    if not isinstance(found, list):
        return Scanned(record_id, found, "", None, _never)
    length, lines, numbers, head = found

    def judged() -> bool:
        return is_eligible(to_judged(tag, record_id, head), request.eligible)

    return Scanned(record_id, length, lines.decode(), numbers, judged)


def _never() -> bool:
    return False


# -------------------- by tags


async def tagged(calls: Calls, request: TaggedRequest, timeout: float) -> SearchPage:
    """See ``IMemoryProvider.tagged``."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    eligible = request.eligible
    project = findable_project(eligible.project)
    asked: dict[str, Any] = {
        "sets": _sets(eligible),
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
        asked["low"] = _low(low)
    return SearchPage(tuple(found[: request.limit]), more=len(found) > request.limit)


def _low(low: bytes) -> str:
    return _names([low])[0]

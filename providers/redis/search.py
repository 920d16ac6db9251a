"""Search: a page is one script, and one more for each stretch of heads that it looks through."""

import asyncio
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from providers.findable import findable, findable_project
from providers.folding import folded
from providers.model import Record
from providers.order import newest_first
from providers.redis import keys
from providers.redis.calls import Calls, project_call
from providers.redis.rows import to_record
from providers.redis.scripts import Script
from providers.requests import SearchPage, SearchRequest
from providers.rules import is_storable

_OUTERMOST = sys.float_info.max


async def search(calls: Calls, request: SearchRequest, timeout: float) -> SearchPage:
    """See ``IMemoryProvider.search``."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    project, asked = findable_project(request.project), _asked(request)
    found: list[Record] = []
    more = False
    while asked["low"]:
        call = project_call(Script.SEARCH, project, asked)
        low, more, used, page = await calls.read(call, timeout=deadline - clock())
        found += to_records(keys.tag_of(call.digest), page, brief=request.brief)
        asked |= {"low": low.decode(), "used": used, "room": request.limit - len(found)}
    return SearchPage(tuple(found), more=bool(more))


def to_records(tag: str, found: Iterable[bytes], *, brief: bool = False) -> Iterator[Record]:
    """Give the records that heads, each followed by its newest revision, make."""
    pairs = iter(found)
    return (to_record(tag, head, now, brief=brief) for head, now in zip(pairs, pairs, strict=True))


def _asked(request: SearchRequest) -> dict[str, Any]:
    low, high = _range(request)
    nobody = not all(map(is_storable, request.tags)) or not is_storable(request.text or "")
    return {
        "agent": None if request.agent_id is None else findable(request.agent_id),
        "tags": ["\0"] if nobody else sorted({folded(each) for each in request.tags}),
        "text": folded(request.text) if request.text and not nobody else None,
        "kinds": _listed(request.kinds),
        "states": _listed(request.states),
        "trusts": _listed(request.trusts),
        "least": _bound(request.importance_min),
        "most": _bound(request.importance_max),
        "low": low,
        "high": high,
        "room": request.limit,
        "brief": request.brief,
        "bytes": request.bytes_max,
        "used": 0,
    }


def _range(request: SearchRequest) -> tuple[str, str]:
    """Return between which members of the order to look, as the server takes them."""
    low, high = "-", "+"
    if request.updated_before is not None:
        low = f"[{newest_first(request.updated_before, after=1)}"
    if request.after is not None:
        place = newest_first(request.after.update_time) + findable(request.after.record_id)
        if low == "-" or place >= low[1:]:
            low = f"({place}"
    if request.updated_from is not None:
        high = f"({newest_first(request.updated_from, after=1)}"
    return low, high


def _listed(values: Iterable[str]) -> dict[str, bool] | None:
    return {str(value): True for value in values} or None


def _bound(value: float | None) -> float | None:
    """Return a bound that JSON can hold: an infinite one becomes the outermost number."""
    return None if value is None else max(-_OUTERMOST, min(value, _OUTERMOST))

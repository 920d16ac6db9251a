"""Entries that are built later: which heads lack one, and putting it beside them."""

import asyncio
from collections.abc import Iterable, Iterator

from providers.findable import findable, findable_project
from providers.recall import EntryPut, IndexRequest, Unindexed, UnindexedRequest
from providers.redis import keys
from providers.redis.calls import Calls, project_call
from providers.redis.entries import entry_document
from providers.redis.scripts import Script
from providers.redis.search import to_records
from providers.rules import check_entry, is_storable

_BYTES = 1_048_576
"""How many bytes of entries one script writes, if more than one."""
_Written = tuple[EntryPut, bytes]


async def unindexed(calls: Calls, request: UnindexedRequest, timeout: float) -> Unindexed:
    """See ``IMemoryProvider.unindexed``."""
    model = request.vector_model
    asked = {
        "after": request.after or "",
        "model": None if model is None else findable(model),
        "limit": request.limit,
    }
    call = project_call(Script.UNINDEXED, findable_project(request.project), asked)
    (found,) = await calls.read(call, timeout=timeout)
    return Unindexed(tuple(to_records(keys.tag_of(call.digest), found)))


async def index(calls: Calls, request: IndexRequest, timeout: float) -> int:
    """See ``IMemoryProvider.index``."""
    calls.connections.lender.check_open()
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    for each in request.entries:
        check_entry(each.entry)
    project = findable_project(request.project)
    tag = keys.tag_of(keys.project_digest(project))
    put = 0
    for part in _parts(tag, request.entries):
        heads = [(each.record_id, each.revision_id) for each, _ in part]
        documents = [document for _, document in part]
        call = project_call(Script.INDEX, project, {"heads": heads}, documents)
        (count,) = await calls.write(call, timeout=deadline - clock())
        put += count
    return put


def _parts(tag: str, entries: Iterable[EntryPut]) -> Iterator[list[_Written]]:
    """Give the entries in parts that one script writes: one part at least, and none too large."""
    part: list[_Written] = []
    size = 0
    for each in entries:
        if not (is_storable(each.record_id) and is_storable(each.revision_id)):
            continue
        document = entry_document(tag, each.record_id, each.entry)
        if part and size + len(document) > _BYTES:
            yield part
            part, size = [], 0
        part.append((each, document))
        size += len(document)
    yield part

"""Search: a page is one query, every filter in it."""

from typing import Any

from providers.cosmos import keys, rows
from providers.cosmos.calls import Calls, Link, Query
from providers.cosmos.reader import listed, named, segments_of
from providers.findable import findable, findable_project
from providers.folding import folded
from providers.order import largest_first, newest_first
from providers.requests import SearchPage, SearchRequest

_ORDER = "c.newest, c.recordId"


async def search(calls: Calls, request: SearchRequest, timeout: float) -> SearchPage:
    """See ``IMemoryProvider.search``."""
    partition = keys.partition_of(findable_project(request.project))
    where, given = _asked(request)
    columns = rows.BRIEF if request.brief else rows.WHOLE
    query = Query(where, given, columns, _ORDER, request.limit + 1)

    async def work(link: Link) -> SearchPage:
        return await _page(link, request, query)

    return await calls.run(partition, work, timeout=timeout)


async def _page(link: Link, request: SearchRequest, query: Query) -> SearchPage:
    found: list[dict[str, Any]] = []
    left = request.bytes_max
    async for page in link.pages(query, items=request.limit + 1):
        for document in page:
            if left is not None:
                left -= rows.whole(document, "fullSize")
                if left < 0 and found:
                    return await _records(link, request, found, more=True)
            found.append(document)
    more = len(found) > request.limit
    return await _records(link, request, found[: request.limit], more=more)


async def _records(
    link: Link, request: SearchRequest, found: list[dict[str, Any]], *, more: bool
) -> SearchPage:
    segments = None if request.brief else await segments_of(link, found)
    records = tuple(rows.to_record(each, segments) for each in found)
    return SearchPage(records[: request.limit], more=more)


def _asked(request: SearchRequest) -> tuple[str, dict[str, object]]:
    where = ["c.doc = 'head'", "c.isLive"]
    given: dict[str, object] = {}
    if request.agent_id is not None:
        where.append("c.agentId = @agent")
        given["agent"] = findable(request.agent_id)
    for field, values in (
        ("kind", request.kinds),
        ("state", request.states),
        ("trust", request.trusts),
    ):
        if values:
            several = named(field, sorted(map(str, values)))
            where.append(f"c.{field} IN ({listed(several)})")
            given |= several
    tags = named("tag", sorted({folded(findable(each)) for each in request.tags}))
    where += [f"ARRAY_CONTAINS(c.tags, @{name})" for name in tags]
    given |= tags
    if request.text:
        where.append("CONTAINS(c.searchText, @text)")
        given["text"] = rows.searchable(folded(findable(request.text)))
    for text, name, value in _bounds(request):
        where.append(text)
        given[name] = value
    if request.after is not None:
        where.append("(c.newest > @after OR (c.newest = @after AND c.recordId > @last))")
        given["after"] = newest_first(request.after.update_time)
        given["last"] = findable(request.after.record_id)
    return " AND ".join(where), given


def _bounds(request: SearchRequest) -> list[tuple[str, str, str]]:
    """Return conditions on importance and time, both kept as text that sorts the other way."""
    bounds = []
    if request.importance_min is not None:
        bounds.append(("c.weight <= @least", "least", largest_first(request.importance_min)))
    if request.importance_max is not None:
        bounds.append(("c.weight >= @most", "most", largest_first(request.importance_max)))
    if request.updated_from is not None:
        bounds.append(("c.newest <= @since", "since", newest_first(request.updated_from)))
    if request.updated_before is not None:
        bounds.append(("c.newest > @until", "until", newest_first(request.updated_before)))
    return bounds

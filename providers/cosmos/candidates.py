"""Context candidates: one query in their order, read no further than they may be large."""

from typing import Any

from providers.cosmos import keys, rows
from providers.cosmos.calls import ATTEMPTS, PAGE_ITEMS, Calls, Link, Query
from providers.cosmos.reader import segments_of
from providers.errors import ProviderUnavailableError
from providers.findable import findable_project
from providers.heads import memories, sessions
from providers.requests import Candidates, CandidatesRequest
from providers.rules import is_storable

_ENTERS = ("decisions", "shared")
_NOBODY = "\0"


async def candidates(calls: Calls, request: CandidatesRequest, timeout: float) -> Candidates:
    """See ``IMemoryProvider.candidates``."""
    partition = keys.partition_of(findable_project(request.project))
    query = _query(request)

    async def work(link: Link) -> Candidates:
        return await _candidates(link, request, query)

    return await calls.run(partition, work, timeout=timeout)


def _query(request: CandidatesRequest) -> Query:
    own = memories(request.agent_id), sessions(request.agent_id, request.run_id)
    is_known = all(map(is_storable, own))
    given = dict(zip("abcd", (*_ENTERS, *own) if is_known else [_NOBODY] * 4, strict=True))
    held = " OR ".join(f"ARRAY_CONTAINS(c.enters, @{name})" for name in given)
    where = f"c.doc = 'head' AND ({held})"
    return Query(where, given, f"{rows.WHOLE}, c.size", "c.place, c.recordId", request.limit)


async def _candidates(link: Link, request: CandidatesRequest, query: Query) -> Candidates:
    for _ in range(ATTEMPTS):
        found, pages, truncated = await _read(link, request.bytes_max, query)
        if pages <= 1 or await link.is_unchanged(
            query, found, first=len(found) if truncated else None
        ):
            segments = await segments_of(link, found)
            records = tuple(rows.to_record(each, segments) for each in found)
            return Candidates(records, truncated_bytes=truncated)
    raise ProviderUnavailableError("others write faster than can be read")


async def _read(link: Link, bytes_max: int, query: Query) -> tuple[list[dict[str, Any]], int, bool]:
    """Return what fits, in how many pages it came, and whether something did not."""
    found: list[dict[str, Any]] = []
    left, pages = bytes_max, 0
    async for page in link.pages(query, items=PAGE_ITEMS):
        pages += 1
        for document in page:
            left -= rows.whole(document, "size")
            if left < 0 and found:
                return found, pages, True
            found.append(document)
    return found, pages, False

"""Recall: an agent's memories are read and looked through, since the store indexes no words."""

import asyncio
from typing import Any

from providers.cosmos import entries, keys, rows
from providers.cosmos.calls import ATTEMPTS, Calls, Link, Query
from providers.cosmos.reader import listed, named, segments_of
from providers.eligibility import TRUSTED, is_eligible, states_of
from providers.errors import (
    ProviderUnavailableError,
    RecallScopeTooLargeError,
    StoredDataInvalidError,
)
from providers.findable import findable, findable_project
from providers.folding import folded
from providers.order import largest_first
from providers.recall import Eligible, Recalled, RecallRequest, TaggedRequest
from providers.requests import SearchPage
from providers.scanning import Scanned, scan

_STRETCH = 200
"""Heads that one request looks at for ``tagged``."""
Document = dict[str, Any]


async def recall(calls: Calls, request: RecallRequest, most: int, timeout: float) -> Recalled:
    """See ``IMemoryProvider.recall``; ``most`` is what the resource negotiated."""
    partition = keys.partition_of(findable_project(request.eligible.project))
    where, given = _counted(request.eligible)
    columns = [rows.BRIEF, entries.WORDS if request.terms else entries.LENGTH]
    if request.vector is not None:
        columns.append(entries.VECTOR)
    # In an order, so that of too many the same come when they are read again.
    query = Query(" AND ".join(where), given, ", ".join(columns), "c.recordId", most + 1)

    async def work(link: Link) -> Recalled:
        found = await link.snapshot(query)
        if len(found) > most:
            raise RecallScopeTooLargeError(limit=most, observed=len(found))
        # Not here: what takes long would keep every other call waiting.
        return await asyncio.to_thread(_scan, request, found)

    return await calls.run(partition, work, timeout=timeout)


def _scan(request: RecallRequest, found: list[Document]) -> Recalled:
    heads = [_scanned(request, each) for each in found]
    try:
        return scan(request, heads)
    except ValueError:
        raise StoredDataInvalidError("a stored entry is damaged") from None


def _scanned(request: RecallRequest, document: Document) -> Scanned:
    record_id, length = document.get("recordId"), entries.length_of(document)
    if type(record_id) is not str:
        raise StoredDataInvalidError("a stored head is damaged")
    return Scanned(
        record_id=record_id,
        length=length,
        terms=entries.terms_of(document) if request.terms and length is not None else "",
        vector=entries.vector_of(document, request.vector),
        is_eligible=lambda: is_eligible(rows.to_record(document, None), request.eligible),
    )


def _counted(eligible: Eligible) -> tuple[list[str], dict[str, object]]:
    """Return the conditions that select the memories of Q-3, and their parameters."""
    trusts = named("trust", sorted(map(str, TRUSTED)))
    states = named("state", sorted(map(str, states_of(eligible.superseded))))
    where = [
        "c.doc = 'head' AND c.kind = 'memory' AND c.agentId = @agent",
        f"c.trust IN ({listed(trusts)})",
        f"c.state IN ({listed(states)})",
    ]
    return where, {"agent": findable(eligible.agent_id), **trusts, **states}


# -------------------- by tags


async def tagged(calls: Calls, request: TaggedRequest, timeout: float) -> SearchPage:
    """See ``IMemoryProvider.tagged``."""
    eligible = request.eligible
    partition = keys.partition_of(findable_project(eligible.project))
    where, given = _counted(eligible)
    tags = named("tag", sorted({folded(findable(each)) for each in eligible.tags}))
    where += [f"ARRAY_CONTAINS(c.tags, @{name})" for name in tags]
    where.append("c.weight <= @least")
    given |= {**tags, "least": largest_first(eligible.importance_min)}
    query = Query(" AND ".join(where), given, rows.WHOLE, "c.place, c.recordId")

    async def work(link: Link) -> SearchPage:
        found = await _walked(link, request, query)
        shown = found[: request.limit]
        segments = await segments_of(link, shown)
        records = tuple(rows.to_record(each, segments) for each in shown)
        return SearchPage(records, more=len(found) > request.limit)

    return await calls.run(partition, work, timeout=timeout)


async def _walked(link: Link, request: TaggedRequest, query: Query) -> list[Document]:
    """Return the first eligible heads of one moment, and one more than is asked for."""
    for _ in range(ATTEMPTS):
        seen: list[Document] = []
        found: list[Document] = []
        pages = 0
        async for page in link.pages(query, items=_STRETCH):
            pages += 1
            seen += page
            found += [each for each in page if _is_eligible(each, request.eligible)]
            if len(found) > request.limit:
                break
        if pages <= 1 or await link.is_unchanged(query, seen, first=len(seen)):
            return found
    raise ProviderUnavailableError("others write faster than can be read")


def _is_eligible(document: Document, eligible: Eligible) -> bool:
    return is_eligible(rows.to_record(document, None), eligible)

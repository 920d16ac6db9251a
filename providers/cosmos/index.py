"""Entries that are built later: which heads lack one, and putting it into their documents."""

from collections.abc import Iterable, Mapping
from typing import Any

from providers.cosmos import entries, keys, rows
from providers.cosmos.batch import Batch
from providers.cosmos.calls import ATTEMPTS, Calls, Link, Query
from providers.cosmos.commit import revision_at
from providers.cosmos.reader import listed, named, segments_of
from providers.errors import ProviderUnavailableError
from providers.findable import findable, findable_project
from providers.model import Kind
from providers.recall import EntryPut, IndexRequest, Unindexed, UnindexedRequest
from providers.rules import check_entry

_SERVICE = "_"
"""What names of fields begin with that the service gives."""
Document = dict[str, Any]


async def unindexed(calls: Calls, request: UnindexedRequest, timeout: float) -> Unindexed:
    """See ``IMemoryProvider.unindexed``."""
    partition = keys.partition_of(findable_project(request.project))
    lacks = "NOT IS_DEFINED(c.termsLength)"
    given: dict[str, object] = {}
    if request.vector_model is not None:
        lacks = f"({lacks} OR NOT IS_DEFINED(c.model) OR c.model != @model)"
        given["model"] = findable(request.vector_model)
    where = f"c.doc = 'head' AND c.kind = 'memory' AND c.isLive AND {lacks}"
    if request.after is not None:
        where += " AND c.recordId > @after"
        given["after"] = findable(request.after)
    query = Query(where, given, rows.WHOLE, "c.recordId", request.limit)

    async def work(link: Link) -> Unindexed:
        found = await link.all(query)
        segments = await segments_of(link, found)
        return Unindexed(tuple(rows.to_record(each, segments) for each in found))

    return await calls.run(partition, work, timeout=timeout)


async def index(calls: Calls, request: IndexRequest, timeout: float) -> int:
    """See ``IMemoryProvider.index``."""
    calls.connections.check_open()
    for each in request.entries:
        check_entry(each.entry)
    puts = {keys.head_id(findable(each.record_id)): each for each in request.entries}
    given = named("i", puts or [keys.SEGMENTS])
    query = Query(f"c.id IN ({listed(given)})", given, "*")

    async def work(link: Link) -> int:
        for _ in range(ATTEMPTS):
            fresh = [each for each in await link.all(query) if _is_fresh(each, puts)]
            if await _put(link, _batches(link.partition, fresh, puts)):
                return len(fresh)
        raise ProviderUnavailableError("others write faster than can be written")

    partition = keys.partition_of(findable_project(request.project))
    return await calls.run(partition, work, timeout=timeout)


def _is_fresh(head: Document, puts: Mapping[str, EntryPut]) -> bool:
    put = puts.get(head["id"])
    if put is None or head.get("kind") != Kind.MEMORY:
        return False
    return revision_at(head, put.record_id)[1] == put.revision_id


def _batches(
    partition: str, heads: Iterable[Document], puts: Mapping[str, EntryPut]
) -> list[Batch]:
    """Return as few batches as the heads fit in.

    Raises:
        WriteSetTooLargeError: One of them is too large for a batch with its entry. Not retryable.
    """
    batches: list[Batch] = []
    for head in heads:
        one = Batch(partition)
        one.replace(_with(head, puts[head["id"]]), head["_etag"])
        one.check()
        if not batches or not batches[-1].join(one):
            batches.append(one)
    return batches


def _with(head: Document, put: EntryPut) -> Document:
    kept = {
        name: value
        for name, value in head.items()
        if not name.startswith(_SERVICE) and name not in entries.NAMES
    }
    return kept | entries.written(put.entry)


async def _put(link: Link, batches: Iterable[Batch]) -> bool:
    """Apply batches, and tell whether nothing was in the way of any."""
    for batch in batches:
        if not await link.commit(batch):
            return False
    return True

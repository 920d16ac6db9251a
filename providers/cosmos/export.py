"""Histories on the move: whole chains of one moment, and the tombstones an import asks for.

What heads were at one moment is read first. Their revisions never change, so that what they were
then can be read afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from providers.chain import check_chain
from providers.cosmos import keys, rows
from providers.cosmos.calls import ATTEMPTS, Calls, Link, Query
from providers.cosmos.reader import listed, named, segments_of
from providers.documents import DAMAGE
from providers.errors import ProviderUnavailableError, StoredDataInvalidError
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound, Limit
from providers.findable import all_findable, findable, findable_project
from providers.heads import is_moved
from providers.model import Record, Revision

_HEADS = f"{rows.BRIEF}, c.revisionId, c.allSizes, c.links"
_MOVED = "c.doc = 'head' AND c.isMoved AND c.agentId = @agent"
_HISTORY = f"{rows.WHOLE}, c.history"
Document = dict[str, Any]
Chain = tuple[Record, tuple[Revision, ...]]


async def export(calls: Calls, request: ExportRequest, timeout: float) -> Export:
    """See ``IMemoryProvider.export``."""
    partition = keys.partition_of(findable_project(request.project))

    async def work(link: Link) -> Export:
        heads = await _named(link, request) if request.record_ids else await _all(link, request)
        exceeded = _exceeded(request, heads)
        return Export((), exceeded) if exceeded else await _chains(link, heads)

    return await calls.run(partition, work, timeout=timeout)


async def tombstones(calls: Calls, request: KeyQuery, timeout: float) -> KeysFound:
    """See ``IMemoryProvider.tombstones``."""
    names = sorted(set(all_findable(request.keys)), key=str.encode)
    by_id = {keys.key_id(name): name for name in names}
    given = named("i", by_id or [keys.SEGMENTS])
    query = Query(f"c.id IN ({listed(given)})", given, "c.name, c.holder, c.body")

    async def work(link: Link) -> KeysFound:
        found = {each["id"]: each for each in await link.all(query)}
        there = [(found[item_id], name) for item_id, name in by_id.items() if item_id in found]
        return KeysFound(
            tuple(
                rows.to_tombstone(document, name)
                for document, name in there
                if rows.to_holder(document, name).record_id is None
            )
        )

    partition = keys.partition_of(findable_project(request.project))
    return await calls.run(partition, work, timeout=timeout)


# -------------------- which heads


async def _all(link: Link, request: ExportRequest) -> list[Document]:
    given = {"agent": findable(request.agent_id)}
    return await _heads(link, Query(_MOVED, given, _HEADS, top=request.records_max + 1))


async def _named(link: Link, request: ExportRequest) -> list[Document]:
    """Return heads that are named and those that they link to, all of one moment."""
    for _ in range(ATTEMPTS):
        heads, asked = await _linked(link, request)
        if len(asked) == 1:
            return heads
        # Asked for in turn: whether they were so at one moment shows when they are asked again.
        given = named("i", sorted({each for ids in asked for each in ids}))
        if await link.is_unchanged(_among(request, given), heads):
            return heads
    raise ProviderUnavailableError("others write faster than can be read")


async def _linked(link: Link, request: ExportRequest) -> tuple[list[Document], list[list[str]]]:
    """Return heads, and the ids that were asked for in each step."""
    heads: dict[str, Document] = {}
    asked: list[list[str]] = []
    wanted = {keys.head_id(findable(each)) for each in request.record_ids}
    while wanted and len(heads) <= request.records_max:
        asked.append(sorted(wanted))
        found = await _heads(link, _among(request, named("i", asked[-1])))
        heads |= {each["id"]: each for each in found}
        linked = {keys.head_id(str(name)) for each in found for name in each["links"]}
        wanted = linked - {each for ids in asked for each in ids}
    return list(heads.values()), asked


async def _heads(link: Link, query: Query) -> list[Document]:
    found = await link.snapshot(query)
    if not all(
        isinstance(each.get("recordId"), str) and isinstance(each.get("links"), list)
        for each in found
    ):
        raise StoredDataInvalidError("a stored head is damaged")
    return found


def _among(request: ExportRequest, given: Mapping[str, object]) -> Query:
    where = f"{_MOVED} AND c.id IN ({listed(given)})"
    return Query(where, {"agent": findable(request.agent_id), **given}, _HEADS)


def _exceeded(request: ExportRequest, heads: Sequence[Document]) -> Limit | None:
    try:
        if len(heads) > request.records_max:
            return "records"
        if sum(each["revision"] for each in heads) > request.revisions_max:
            return "revisions"
        return "bytes" if sum(each["allSizes"] for each in heads) > request.bytes_max else None
    except DAMAGE:
        raise StoredDataInvalidError("a stored head is damaged") from None


# -------------------- their chains


async def _chains(link: Link, heads: Sequence[Document]) -> Export:
    if not heads:
        return Export(())
    given = named("r", [each["recordId"] for each in heads])
    where = f"c.recordId IN ({listed(given)}) AND (c.doc = 'revision' OR c.doc = 'segment')"
    found = await link.all(Query(where, given, _HISTORY))
    segments = await segments_of(link, found, [each for each in found if each["doc"] == "segment"])
    revisions = _by_record(found, segments)
    chains = [_chain(head, revisions.get(head["recordId"], {})) for head in heads]
    return Export(tuple(sorted(chains, key=_place)))


def _by_record(
    found: Iterable[Document], segments: rows.Segments
) -> dict[str, dict[int, Revision]]:
    revisions: dict[str, dict[int, Revision]] = {}
    for document in found:
        if document["doc"] == "revision":
            several = [rows.to_revision(document, segments)]
        else:
            several = [each for each, _ in segments.all(document["id"], brief=False)]
        for each in several:
            revisions.setdefault(each.record_id, {})[each.revision] = each
    return revisions


def _chain(head: Document, revisions: Mapping[int, Revision]) -> Chain:
    """Return the chain of a head as it was read: what came afterwards is left out."""
    shown = rows.to_record(head, None)
    number = shown.current.revision
    chain = [revisions[each] for each in sorted(revisions) if each <= number]
    check_chain(chain, shown.current.record_id, number)
    if len(chain) != number or not is_moved(shown.current):
        raise StoredDataInvalidError("a stored history has a gap")
    if rows.brief_of(chain[-1]) != shown.current:
        raise StoredDataInvalidError("a stored head is not its newest revision")
    return Record(chain[-1], shown.create_time), tuple(chain)


def _place(chain: Chain) -> tuple[str, bytes]:
    now = chain[0].current
    return now.kind.value, now.record_id.encode()

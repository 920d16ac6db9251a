"""Reads: each is one statement, and so one round trip and one snapshot."""

from collections.abc import Iterable, Sequence
from typing import Any

import asyncpg

from providers.counters import GRAPH, TRANSFER, stream
from providers.errors import StoredDataInvalidError
from providers.marker import check_marker
from providers.model import ReceiptKey, Record, ResourceIdentity, Revision, RevisionRef
from providers.postgres.connections import Connection
from providers.postgres.rows import (
    SNAPSHOT_WIDTH,
    to_chain,
    to_counters,
    to_holders,
    to_receipt,
    to_record,
    to_revision,
)
from providers.postgres.statements import LOAD, LOAD_HEADS, LOAD_KEPT, MARKER, REVISIONS
from providers.requests import Loaded, LoadRequest, RevisionsPage, RevisionsRequest
from providers.rules import is_storable

BIGGEST = 2**63 - 1
"""The biggest number that the statements take."""
_ONCE_WIDTH = 8
_PAGE_WIDTH = 5


async def ready(link: Connection, resource: ResourceIdentity) -> None:
    """See ``IMemoryProvider.ready``."""
    row = await link.fetchrow(MARKER)
    found = (None, None) if row is None else (row["resource_id"], row["generation"])
    check_marker(resource, *found)


async def load(link: Connection, resource: ResourceIdentity, request: LoadRequest) -> Loaded:
    """See ``IMemoryProvider.load``."""
    rows = await link.fetch(*_asked(request))
    if not rows:
        check_marker(resource, None, None)
    once = rows[0]
    check_marker(resource, once[1], once[2])
    return _loaded(request, once, rows[1:])


def _asked(request: LoadRequest) -> Sequence[Any]:
    """Return the least statement that loads all of a request, and its arguments."""
    heads = (
        findable(request.project.tenant_id),
        findable(request.project.project_id),
        all_findable(request.record_ids),
    )
    counters = _counters(request)
    is_linked = bool(request.revisions) or request.chain_from is not None
    if not (is_linked or request.receipt or request.keys or counters):
        return LOAD_HEADS, *heads
    receipt = request.receipt or ReceiptKey("", "")
    kept = (
        findable(receipt.actor_fingerprint) if request.receipt else None,
        findable(receipt.idempotency_key),
        all_findable(request.keys),
        counters,
    )
    if not is_linked:
        return LOAD_KEPT, *heads, *kept
    return (
        LOAD,
        *heads,
        *kept,
        all_findable(ref.record_id for ref in request.revisions),
        [min(ref.revision, BIGGEST) for ref in request.revisions],
        None if request.chain_from is None else findable(request.chain_from),
    )


async def revisions(
    link: Connection, resource: ResourceIdentity, request: RevisionsRequest
) -> RevisionsPage:
    """See ``IMemoryProvider.revisions``."""
    rows = await link.fetch(
        REVISIONS,
        findable(request.project.tenant_id),
        findable(request.project.project_id),
        findable(request.agent_id),
        findable(request.record_id),
        BIGGEST if request.before is None else min(request.before, BIGGEST),
        request.limit + 1,
        request.brief,
        request.bytes_max,
    )
    if not rows:
        check_marker(resource, None, None)
    resource_id, generation, head = rows[0][:3]
    check_marker(resource, resource_id, generation)
    if head is None:
        return RevisionsPage(found=False)
    page = [row for row in rows if row[_PAGE_WIDTH] is not None]
    newest = head if request.before is None else min(head, request.before - 1)
    found = tuple(to_revision(row[_PAGE_WIDTH:], brief=request.brief) for row in page)
    _check_page(found, [(row[3], row[4]) for row in page], newest)
    return RevisionsPage(found=True, revisions=found, more=rows[-1][3] is not None)


def _check_page(
    page: Sequence[Revision], earlier: Sequence[tuple[int | None, str | None]], newest: int
) -> None:
    """Refuse a history with a gap, a link that does not fit, or an end before revision 1.

    ``earlier`` holds number and id of what is stored before each of the page.
    """
    numbers = [revision.revision for revision in page]
    wanted = list(range(newest, newest - len(page), -1))
    follows = [number or 0 for number, _ in earlier] == [number - 1 for number in numbers]
    if numbers != wanted or not follows or (newest > 0 and not page):
        raise StoredDataInvalidError("a stored history has a gap")
    if any(
        revision.previous_revision_id != revision_id
        for revision, (_, revision_id) in zip(page, earlier, strict=True)
    ):
        raise StoredDataInvalidError("a stored history has a link that does not fit")


def findable(text: str) -> str | None:
    """Return what to look for; text that nothing can be stored under becomes null (G-1)."""
    return text if is_storable(text) else None


def all_findable(texts: Iterable[str]) -> list[str | None]:
    """Return what to look for among several; see ``findable``."""
    return [findable(text) for text in texts]


def _counters(request: LoadRequest) -> list[str | None]:
    names = [GRAPH] if request.graph else []
    if request.transfer:
        names.append(TRANSFER)
    if request.stream_run_id is not None:
        names.append(stream(request.stream_run_id))
    return all_findable(names)


def _loaded(request: LoadRequest, once: asyncpg.Record, rows: list[asyncpg.Record]) -> Loaded:
    heads: dict[str, Record] = {}
    revisions: dict[RevisionRef, Revision] = {}
    for row in rows:
        values = row[_ONCE_WIDTH : _ONCE_WIDTH + SNAPSHOT_WIDTH]
        if row[0] == "head":
            heads[values[0]] = to_record(values, row[7])
        else:
            revisions[RevisionRef(values[0], values[1])] = to_revision(values)
    counters = to_counters(once[5])
    return Loaded(
        heads=heads,
        revisions=revisions,
        receipt=to_receipt(once[3], request.receipt) if request.receipt else None,
        keys=to_holders(once[4]),
        chain=to_chain(once[6]),
        graph=counters.get(GRAPH, 0),
        transfer=counters.get(TRANSFER, 0),
        stream=counters.get(stream(request.stream_run_id or ""), 0),
    )

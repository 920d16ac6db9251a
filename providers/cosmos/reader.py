"""Reads: a query each, another for each link of a chain, and one for what stands in segments."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from providers.cosmos import keys, rows
from providers.cosmos.calls import Calls, Link, Query
from providers.counters import GRAPH, TRANSFER, stream
from providers.findable import findable, findable_project
from providers.model import (
    IdempotencyReceipt,
    ReceiptKey,
    Record,
    Revision,
    RevisionRef,
)
from providers.requests import (
    ChainLink,
    KeyHolder,
    Loaded,
    LoadRequest,
)

CHAIN_LINKS_MAX = 66
_LOADED = f"{rows.WHOLE}, c.name, c.holder, c.body, c.history, c.total, c.first, c.last"
Document = dict[str, Any]
Documents = Mapping[str, Document]


async def load(calls: Calls, request: LoadRequest, timeout: float) -> Loaded:
    """See ``IMemoryProvider.load``."""
    partition = keys.partition_of(findable_project(request.project))

    async def work(link: Link) -> Loaded:
        return await _load(link, request)

    return await calls.run(partition, work, timeout=timeout)


async def segments_of(
    link: Link, found: Iterable[Document], known: Iterable[Document] = ()
) -> rows.Segments:
    """Return the segments that hold the rest of heads and revisions; most have none."""
    here = list(known)
    wanted = {str(each["packed"]) for each in found if each.get("packed") is not None}
    wanted -= {each["id"] for each in here}
    if wanted:
        given = named("i", sorted(wanted))
        where = f"c.id IN ({listed(given)})"
        here += await link.all(Query(where, given, "c.recordId, c.history"))
    return rows.Segments(here)


def named(letter: str, values: Iterable[object]) -> dict[str, object]:
    """Return parameters of a query, one for each value."""
    return {f"{letter}{place}": value for place, value in enumerate(values)}


def listed(given: Iterable[str]) -> str:
    """Return the names of parameters as a list in a query."""
    return ", ".join(f"@{name}" for name in given)


def history_of(refs: Sequence[RevisionRef]) -> tuple[list[str], dict[str, object]]:
    """Return conditions, and their parameters, that select these revisions and their segments."""
    if not refs:
        return [], {}
    numbers = [max(0, min(ref.revision, rows.LAST_MAX)) for ref in refs]
    given = named("r", sorted({_ref(each) for each in refs}))
    records = named("m", sorted({findable(ref.record_id) for ref in refs}))
    where = [
        f"c.ref IN ({listed(given)})",
        f"(c.doc = 'segment' AND c.first <= @most AND c.last >= @least"
        f" AND c.recordId IN ({listed(records)}))",
    ]
    return where, {**given, **records, "least": min(numbers), "most": max(numbers)}


def _ref(ref: RevisionRef) -> str:
    return keys.revision_ref(findable(ref.record_id), ref.revision)


# -------------------- load


async def _load(link: Link, request: LoadRequest) -> Loaded:
    receipt, names = request.receipt, _counters(request)
    where, given = history_of(request.revisions)
    ids = named("i", _ids(request) or [keys.SEGMENTS])
    where.append(f"c.id IN ({listed(ids)})")
    found = await link.snapshot(Query(" OR ".join(where), given | ids, _LOADED))
    by_id = {each["id"]: each for each in found}
    segments = await segments_of(link, found, [each for each in found if each["doc"] == "segment"])
    stands = {name: rows.to_count(by_id.get(keys.counter_id(name)), name) for name in names}
    return Loaded(
        heads=_heads(request, by_id, segments),
        revisions=_revisions(request.revisions, found, segments),
        receipt=_receipt(receipt, by_id),
        keys=_holders(request.keys, by_id),
        chain=tuple(await _chain(link, request.chain_from, by_id)),
        graph=stands.get(GRAPH, 0),
        transfer=stands.get(TRANSFER, 0),
        stream=stands.get(_stream(request), 0),
    )


def _ids(request: LoadRequest) -> list[str]:
    heads = [*request.record_ids, *([] if request.chain_from is None else [request.chain_from])]
    ids = [keys.head_id(findable(each)) for each in heads]
    ids += [keys.key_id(findable(each)) for each in request.keys]
    ids += [keys.counter_id(each) for each in _counters(request)]
    if request.receipt is not None:
        ids.append(_receipt_id(request.receipt))
    return list(dict.fromkeys(ids))


def _receipt_id(key: ReceiptKey) -> str:
    actor, name = findable(key.actor_fingerprint), findable(key.idempotency_key)
    return keys.receipt_id(ReceiptKey(actor, name))


def _counters(request: LoadRequest) -> list[str]:
    names = [GRAPH] if request.graph else []
    if request.transfer:
        names.append(TRANSFER)
    if request.stream_run_id is not None:
        names.append(_stream(request))
    return names


def _stream(request: LoadRequest) -> str:
    return stream(findable(request.stream_run_id or ""))


def _heads(request: LoadRequest, by_id: Documents, segments: rows.Segments) -> dict[str, Record]:
    heads = {}
    for record_id in request.record_ids:
        found = by_id.get(keys.head_id(findable(record_id)))
        if found is not None:
            heads[record_id] = rows.to_record(found, segments)
    return heads


def _revisions(
    asked: Sequence[RevisionRef], found: Iterable[Document], segments: rows.Segments
) -> dict[RevisionRef, Revision]:
    wanted, made = set(asked), {}
    for document in found:
        several = []
        if document["doc"] == "revision":
            several = [rows.to_revision(document, segments)]
        elif document["doc"] == "segment":
            several = [each for each, _ in segments.all(document["id"], brief=False)]
        for each in several:
            ref = RevisionRef(each.record_id, each.revision)
            if ref in wanted:
                made[ref] = each
    return made


def _receipt(key: ReceiptKey | None, by_id: Documents) -> IdempotencyReceipt | None:
    if key is None:
        return None
    found = by_id.get(_receipt_id(key))
    return None if found is None else rows.to_receipt(found, key)


def _holders(asked: Iterable[str], by_id: Documents) -> dict[str, KeyHolder]:
    found = {name: by_id.get(keys.key_id(findable(name))) for name in asked}
    return {name: rows.to_holder(each, name) for name, each in found.items() if each is not None}


async def _chain(link: Link, start: str | None, by_id: Documents) -> list[ChainLink]:
    """Walk from record to record, a query each: the store cannot."""
    walked: list[ChainLink] = []
    seen: set[str] = set()
    following = None if start is None else findable(start)
    while following is not None and len(walked) < CHAIN_LINKS_MAX:
        item_id = keys.head_id(following)
        found = by_id.get(item_id)
        if found is None and walked:
            found = next(
                iter(await link.all(Query("c.id = @id", {"id": item_id}, rows.BRIEF))), None
            )
        if found is None:
            break
        walked.append(rows.to_link(found))
        if following in seen:
            break
        seen.add(following)
        following = walked[-1].superseded_by_record_id
    return walked

"""Writes: a query for what stands in the way, and one batch under the etags that it found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from providers.cosmos import entries, keys, rows
from providers.cosmos.batch import BYTES_MAX, Batch
from providers.cosmos.calls import ATTEMPTS, Calls, Link, Query
from providers.cosmos.encoding import Encoded, encode, packed, without_entries
from providers.cosmos.reader import listed, named
from providers.counters import expected_counters
from providers.documents import DAMAGE
from providers.errors import StoredDataInvalidError
from providers.model import Kind, WriteSet
from providers.refusal import Facts, judge
from providers.requests import CommitOutcome, Committed, Contended, KeyHolder

_FREE = KeyHolder(None, None)
_MET = (
    "c.recordId, c.revision, c.revisionId, c.allSizes, c.links, c.name, c.holder,"
    " c.body, c.total, c.ids"
)
_ASKED_AT_ONCE = 100
"""Revision ids that are looked for in segments by one query."""
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Met:
    """What was found: documents by id, and revision ids that segments hold."""

    documents: Mapping[str, Document]
    in_segments: frozenset[str]

    def etag(self, item_id: str) -> str | None:
        """Return the etag to write over; ``None``: there was no document."""
        found = self.documents.get(item_id)
        return None if found is None else str(found["_etag"])


async def commit(calls: Calls, write_set: WriteSet, timeout: float) -> CommitOutcome:
    """See ``IMemoryProvider.commit``."""
    calls.connections.check_open()
    encoded = encode(write_set)
    partition = keys.partition_of(write_set.project)

    async def work(link: Link) -> CommitOutcome:
        return await _commit(link, write_set, encoded)

    return await calls.run(partition, work, timeout=timeout)


async def _commit(link: Link, write_set: WriteSet, encoded: Encoded) -> CommitOutcome:
    for _ in range(ATTEMPTS):
        met = await _look(link, write_set)
        refused = judge(write_set, _facts(write_set, met))
        if refused is not None:
            return refused
        batch = _smallest(link.partition, write_set, encoded, met)
        batch.check()
        if await link.commit(batch):
            return Committed()
    return Contended()


# -------------------- what is there


async def _look(link: Link, write_set: WriteSet) -> _Met:
    asked = _revision_ids(write_set)
    query = _query(named("i", _ids(write_set)), asked[:_ASKED_AT_ONCE])
    if _keeps_entries(write_set):
        query = replace(query, select=f"{_MET}, {entries.COLUMNS}")
    found = await link.snapshot(query)
    for start in range(_ASKED_AT_ONCE, len(asked), _ASKED_AT_ONCE):
        found += await link.all(_query({}, asked[start : start + _ASKED_AT_ONCE]))
    held = [_held(each) for each in found if each["doc"] == "segment"]
    return _Met({each["id"]: each for each in found}, frozenset(asked) & frozenset().union(*held))


def _keeps_entries(write_set: WriteSet) -> bool:
    """Tell whether a head is put without an entry, and keeps the one that it may have (Q-10)."""
    return any(
        put.entry is None
        and put.expected_revision is not None
        and put.record.current.kind is Kind.MEMORY
        for put in write_set.heads
    )


def _held(segment: Document) -> frozenset[str]:
    try:
        return frozenset(segment["ids"])
    except DAMAGE:
        raise StoredDataInvalidError("a stored history is damaged") from None


def _query(ids: dict[str, object], revision_ids: Sequence[str]) -> Query:
    """Return the query for documents of these ids, and for segments with these revision ids."""
    held = named("s", revision_ids)
    where = [f"c.id IN ({listed(ids)})"] if ids else []
    if held:
        several = " OR ".join(f"ARRAY_CONTAINS(c.ids, @{name})" for name in held)
        where.append(f"(c.doc = 'segment' AND ({several}))")
    return Query(" OR ".join(where), ids | held, _MET)


def _ids(write_set: WriteSet) -> list[str]:
    ids = [keys.receipt_id(write_set.receipt.key)]
    ids += [keys.head_id(put.record.current.record_id) for put in write_set.heads]
    ids += [keys.revision_id(each) for each in _revision_ids(write_set)]
    ids += [keys.key_id(each) for each in _keys(write_set)]
    ids += _fences(write_set)
    ids += [keys.counter_id(each) for each in expected_counters(write_set)]
    if write_set.effect is not None:
        ids.append(keys.effect_id(write_set.effect.receipt_id))
    if write_set.history:
        ids.append(keys.SEGMENTS)
    return list(dict.fromkeys(ids))


def _revision_ids(write_set: WriteSet) -> list[str]:
    heads = [put.record.current for put in write_set.heads]
    return [each.revision_id for each in (*write_set.history, *heads)]


def _keys(write_set: WriteSet) -> list[str]:
    return [
        *(claim.key for claim in write_set.claims),
        *(release.key for release in write_set.releases),
        *(tombstone.key for tombstone in write_set.tombstones),
        *write_set.must_be_absent,
    ]


def _fences(write_set: WriteSet) -> list[str]:
    """Return the ids of what comes between a tombstone and the proof that there is none (C-11)."""
    buried = (tombstone.key for tombstone in write_set.tombstones)
    return sorted({keys.fence_id(each) for each in (*write_set.must_be_absent, *buried)})


def _facts(write_set: WriteSet, met: _Met) -> Facts:
    there = met.documents
    receipt = there.get(keys.receipt_id(write_set.receipt.key))
    heads, revision_ids = {}, set(met.in_segments)
    for put in write_set.heads:
        record_id = put.record.current.record_id
        head = there.get(keys.head_id(record_id))
        if head is not None:
            heads[record_id] = revision_at(head, record_id)
    for each in _revision_ids(write_set):
        if keys.revision_id(each) in there:
            revision_ids.add(each)
    effect = write_set.effect
    return Facts(
        receipt=None if receipt is None else rows.to_receipt(receipt, write_set.receipt.key),
        holders={name: _holder(met, name) for name in _keys(write_set)},
        counters={name: _stands(met, name) for name in expected_counters(write_set)},
        heads=heads,
        revision_ids=frozenset(revision_ids),
        has_effect=effect is not None and keys.effect_id(effect.receipt_id) in there,
    )


def revision_at(head: Document, record_id: str) -> tuple[int, str]:
    """Return number and id of the revision that a head is.

    Raises:
        StoredDataInvalidError: It is none, or the head of another record. Not retryable.
    """
    number, revision_id = head.get("revision"), head.get("revisionId")
    if head.get("recordId") != record_id or type(number) is not int or type(revision_id) is not str:
        raise StoredDataInvalidError("a stored head is damaged")
    return number, revision_id


def _holder(met: _Met, name: str) -> KeyHolder:
    found = met.documents.get(keys.key_id(name))
    return _FREE if found is None else rows.to_holder(found, name)


def _stands(met: _Met, name: str) -> int:
    return rows.to_count(met.documents.get(keys.counter_id(name)), name)


# -------------------- what is written


def _smallest(partition: str, write_set: WriteSet, encoded: Encoded, met: _Met) -> Batch:
    """Return the first batch that fits: as it is, or packed closer, or also without new entries."""
    batch = _batch(partition, write_set, encoded, met)
    if batch.size > BYTES_MAX:
        batch = _batch(partition, write_set, packed(write_set), met)
    if batch.size > BYTES_MAX:
        batch = _batch(partition, write_set, packed(without_entries(write_set)), met)
    return batch


def _batch(partition: str, write_set: WriteSet, encoded: Encoded, met: _Met) -> Batch:
    batch = Batch(partition)
    batch.create(encoded.receipt)
    for put in write_set.heads:
        document = encoded.heads[put.record.current.record_id]
        before = met.documents.get(document["id"])
        kept = {} if before is None or put.entry is not None else entries.carried(before)
        batch.put(_grown(document | kept, before), met.etag(document["id"]))
    for document in (*encoded.revisions, *encoded.segments):
        batch.create(document)
    if encoded.effect is not None:
        batch.create(encoded.effect)
    _put_keys(batch, write_set, met)
    _put_counters(batch, write_set, met)
    if write_set.history:
        batch.put({"id": keys.SEGMENTS, "doc": "fence"}, met.etag(keys.SEGMENTS))
    return batch


def _grown(document: Document, before: Document | None) -> Document:
    """Return a head with what its earlier revisions add to it."""
    if before is None:
        return document
    try:
        size = before["allSizes"] + document["allSizes"]
        return document | {
            "allSizes": size,
            "links": sorted({*before["links"], *document["links"]}),
        }
    except DAMAGE:
        raise StoredDataInvalidError("a stored head is damaged") from None


def _put_keys(batch: Batch, write_set: WriteSet, met: _Met) -> None:
    for claim in write_set.claims:
        batch.put(rows.claimed(claim.key, claim.record_id), met.etag(keys.key_id(claim.key)))
    for tombstone in write_set.tombstones:
        batch.put(rows.buried(tombstone), met.etag(keys.key_id(tombstone.key)))
    for release in write_set.releases:
        item_id = keys.key_id(release.key)
        etag = met.etag(item_id)
        if etag is not None and _holder(met, release.key).record_id == release.record_id:
            batch.delete(item_id, etag)
    for item_id in _fences(write_set):
        # While its etag stands no tombstone is new that it guards.
        batch.put({"id": item_id, "doc": "fence"}, met.etag(item_id))


def _put_counters(batch: Batch, write_set: WriteSet, met: _Met) -> None:
    for name in expected_counters(write_set):
        item_id = keys.counter_id(name)
        batch.put(rows.counter(name, _stands(met, name) + 1), met.etag(item_id))

"""Between the vocabulary's dataclasses and the documents that the store keeps.

What queries look at stands in fields of its own. What is read back, and nothing looks at, is JSON
packed into text: numbers come back as they were, and no character takes more room than another.
The revision of a head is in two halves, ``brief`` and ``rest``. Where a write would be too large,
and in imported history, the rest stands in a segment with the revisions before, and ``packed``
names it.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from providers import documents
from providers.cosmos import keys
from providers.documents import DAMAGE, to_json
from providers.errors import StoredDataInvalidError
from providers.folding import folded, search_text
from providers.halves import halves, joined
from providers.heads import entered, is_moved, size_of
from providers.model import (
    AcceptedEffect,
    IdempotencyReceipt,
    Kind,
    ReceiptKey,
    Record,
    Revision,
    State,
    Tombstone,
)
from providers.order import largest_first, newest_first
from providers.requests import ChainLink, KeyHolder

Document = dict[str, Any]

LAST_MAX = 2**31
"""What a head stands at: above all its revisions."""
_PARTS = {Kind.DECISION: "0", Kind.MEMORY: "1", Kind.SESSION_CONTEXT: "2", Kind.PROPOSAL: "3"}
# JSON escapes these with two to six characters. Folded text has no capital letter.
_ESCAPE = re.compile(rb"\\(u00[01][0-9a-f]|.)")
_ESCAPED = '"\\' + "".join(map(chr, range(1, 32)))
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "".join(map(chr, range(0xC0, 0xC7)))
_SHORT = str.maketrans(_ESCAPED, _CAPITALS)

BRIEF = "c.recordId, c.revision, c.createTime, c.brief"
"""What is selected of a head or a revision for a brief page."""
WHOLE = f"{BRIEF}, c.rest, c.packed, c.fullSize"
"""What is selected of one that is to be whole."""

# -------------------- to the store


def pack(value: object) -> str:
    """Return a value as text that is the same length in JSON."""
    raw = _ESCAPE.sub(_unescaped, to_json(value))
    return base64.b64encode(zlib.compress(raw)).decode()


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """Return a control character as it is: six characters for each would not pack well."""
    return bytes([int(escape[1][1:], 16)]) if escape[1][:1] == b"u" else escape[0]


def unpack(text: Any) -> Any:
    """Return the value that text holds.

    Raises:
        StoredDataInvalidError: It holds none. Not retryable.
    """
    try:
        raw = zlib.decompress(base64.b64decode(text, validate=True))
        return json.loads(raw, strict=False)
    except (*DAMAGE, zlib.error):
        raise StoredDataInvalidError("a stored document is damaged") from None


def searchable(text: str) -> str:
    """Return folded text as it is searched: what JSON escapes stands as single letters."""
    return text.translate(_SHORT)


def head(
    record: Record, chain: Sequence[Revision], *, links: Iterable[str], packed: str | None
) -> Document:
    """Return the document of a head.

    Args:
        record: The head.
        chain: The revisions that come with it, itself the last.
        links: What any of them names as superseded-by.
        packed: The segment that holds the rest of it, or ``None``.
    """
    now, both = record.current, halves(record.current)
    order = newest_first(now.create_time)
    weight = largest_first(now.content.importance)
    is_live = now.state is not State.FORGOTTEN
    return {
        "id": keys.head_id(now.record_id),
        "doc": "head",
        "recordId": now.record_id,
        "last": LAST_MAX,
        "revision": now.revision,
        "revisionId": now.revision_id,
        "agentId": now.agent_id,
        "kind": now.kind,
        "state": now.state,
        "trust": now.trust,
        "supersededBy": now.superseded_by_record_id,
        "weight": weight,
        "newest": order,
        "place": _PARTS[now.kind] + weight + order,
        "enters": entered(now),
        "tags": sorted({folded(each) for each in now.content.tags}),
        "searchText": searchable(search_text(now.content)) if is_live else "",
        "isLive": is_live,
        "isMoved": is_moved(now),
        "size": both.size,
        "fullSize": both.full_size,
        "allSizes": sum(map(size_of, chain)),
        "links": sorted(set(links)),
        "createTime": pack(record.create_time),
        "brief": pack(both.brief),
        "rest": None if packed or both.rest is None else pack(both.rest),
        "packed": packed,
    }


def revision(given: Revision, *, packed: str | None) -> Document:
    """Return the document of one revision; ``packed``: as in ``head``."""
    both = halves(given)
    return {
        "id": keys.revision_id(given.revision_id),
        "doc": "revision",
        "recordId": given.record_id,
        "last": given.revision,
        "revision": given.revision,
        "ref": keys.revision_ref(given.record_id, given.revision),
        "fullSize": both.full_size,
        "brief": pack(both.brief),
        "rest": None if packed or both.rest is None else pack(both.rest),
        "packed": packed,
    }


def segment(revisions: Sequence[Revision], *, named: Sequence[Revision]) -> Document:
    """Return the document of a piece of history, oldest first.

    Args:
        revisions: All that it holds.
        named: Those of them that have no document of their own.
    """
    both = [halves(each) for each in revisions]
    texts = list(dict.fromkeys(to_json(each.rest) for each in both))
    places = {text: place for place, text in enumerate(texts)}
    entries = [(each.full_size, each.brief, places[to_json(each.rest)]) for each in both]
    first, last = revisions[0], revisions[-1]
    return {
        "id": keys.segment_id(last.record_id, last.revision),
        "doc": "segment",
        "recordId": last.record_id,
        "first": first.revision,
        "last": last.revision,
        "ids": [each.revision_id for each in named],
        "history": pack((entries, [orjson.loads(each) for each in texts])),
    }


def receipt(given: IdempotencyReceipt) -> Document:
    """Return the document of a receipt."""
    key = given.key
    named = (key.actor_fingerprint, key.idempotency_key)
    body = pack((*named, *documents.receipt_document(given)))
    return {"id": keys.receipt_id(key), "doc": "receipt", "body": body}


def claimed(name: str, record_id: str) -> Document:
    """Return the document of a key that a record holds."""
    return {"id": keys.key_id(name), "doc": "key", "name": name, "holder": record_id}


def buried(tombstone: Tombstone) -> Document:
    """Return the document of a key that holds a tombstone."""
    body = pack((tombstone.kind, tombstone.create_time))
    named = {"doc": "key", "name": tombstone.key, "holder": None, "body": body}
    return {"id": keys.key_id(tombstone.key), **named}


def counter(name: str, value: int) -> Document:
    """Return the document of a counter."""
    return {"id": keys.counter_id(name), "doc": "counter", "name": name, "total": value}


def effect(given: AcceptedEffect) -> Document:
    """Return the document of an effect that nobody has delivered or leased."""
    values = (given.run_id, given.sequence, given.receipt_id, given.receipt, given.accept_time)
    return {
        "id": keys.effect_id(given.receipt_id),
        "doc": "effect",
        "runId": given.run_id,
        "sequence": given.sequence,
        "body": pack(values),
        "delivered": False,
        "token": None,
        "until": 0,
        "code": None,
        "fact": None,
    }


def delivered(run_id: str, sequence: int) -> Document:
    """Return the document that says up to where the effects of a run are delivered."""
    return {"id": keys.stream_id(run_id), "doc": "stream", "runId": run_id, "total": sequence}


# -------------------- from the store


def whole(found: Mapping[str, Any], name: str) -> int:
    """Return a whole number that a document holds, such as a size.

    Raises:
        StoredDataInvalidError: It does not. Not retryable.
    """
    number = found.get(name)
    if type(number) is not int:
        raise StoredDataInvalidError("a stored document is damaged")
    return number


class Segments:
    """Pieces of history by id, each taken apart once."""

    def __init__(self, found: Iterable[Document]) -> None:
        """Keep segments as they were read."""
        self._found = {each["id"]: each for each in found}
        self._bodies: dict[str, dict[int, tuple[int, list[Any], list[Any] | None]]] = {}

    def rest(self, segment_id: str, number: int) -> list[Any] | None:
        """Return the rest of a revision."""
        return self._entry(segment_id, number)[2]

    def all(self, segment_id: str, *, brief: bool) -> list[tuple[Revision, int]]:
        """Return the revisions of a piece, oldest first, each with its size."""
        record_id = self._found[segment_id]["recordId"]
        made = []
        for number, (size, first, rest) in sorted(self._body(segment_id).items()):
            each = joined(first, None if brief else rest)
            if (each.record_id, each.revision) != (record_id, number):
                raise StoredDataInvalidError("a stored history is of another record")
            made.append((each, size))
        return made

    def _entry(self, segment_id: str, number: int) -> tuple[int, list[Any], list[Any] | None]:
        entry = self._body(segment_id).get(number)
        if entry is None:
            raise StoredDataInvalidError("a stored history lacks a revision")
        return entry

    def _body(self, segment_id: str) -> dict[int, tuple[int, list[Any], list[Any] | None]]:
        if segment_id not in self._bodies:
            if segment_id not in self._found:
                raise StoredDataInvalidError("a stored history is not there")
            try:
                entries, texts = unpack(self._found[segment_id]["history"])
                self._bodies[segment_id] = {
                    brief[1]: (documents.taken(int)(size), brief, texts[place])
                    for size, brief, place in entries
                }
            except DAMAGE:
                raise StoredDataInvalidError("a stored history is damaged") from None
        return self._bodies[segment_id]


def to_revision(found: Mapping[str, Any], segments: Segments | None) -> Revision:
    """Return the revision of a head or a revision; without ``segments`` it is brief.

    Raises:
        StoredDataInvalidError: It holds none, or another than it is found by. Not retryable.
    """
    rest = None
    try:
        if segments is not None and found["packed"] is not None:
            rest = segments.rest(found["packed"], found["revision"])
        elif segments is not None and found["rest"] is not None:
            rest = unpack(found["rest"])
        made = joined(unpack(found["brief"]), rest)
        named = (found["recordId"], found["revision"])
        own = keys.head_id if found["doc"] == "head" else None
        item_id = keys.revision_id(made.revision_id) if own is None else own(made.record_id)
    except DAMAGE:
        raise StoredDataInvalidError("a stored revision is damaged") from None
    if named != (made.record_id, made.revision) or item_id != found["id"]:
        raise StoredDataInvalidError("a stored revision is another")
    return made


def to_record(found: Mapping[str, Any], segments: Segments | None) -> Record:
    """Return the record of a head; see ``to_revision``."""
    current = to_revision(found, segments)
    try:
        return Record(current, documents.to_time(unpack(found["createTime"])))
    except DAMAGE:
        raise StoredDataInvalidError("a stored head is damaged") from None


def to_receipt(found: Mapping[str, Any], key: ReceiptKey) -> IdempotencyReceipt:
    """Return the receipt of a document.

    Raises:
        StoredDataInvalidError: It holds none, or one of another key. Not retryable.
    """
    try:
        actor, name, *values = unpack(found["body"])
    except DAMAGE:
        raise StoredDataInvalidError("a stored receipt is damaged") from None
    if (actor, name) != (key.actor_fingerprint, key.idempotency_key):
        raise StoredDataInvalidError("a stored receipt is of another key")
    return documents.to_receipt(values, key)


def to_holder(found: Mapping[str, Any], name: str) -> KeyHolder:
    """Return what a key holds.

    Raises:
        StoredDataInvalidError: It holds neither a record nor a tombstone, or is another key. Not
            retryable.
    """
    holder = found.get("holder")
    if holder is None:
        return KeyHolder(None, to_tombstone(found, name).kind)
    if type(holder) is not str or found.get("name") != name:
        raise StoredDataInvalidError("what a stored key holds is damaged")
    return KeyHolder(holder, None)


def to_tombstone(found: Mapping[str, Any], name: str) -> Tombstone:
    """Return the tombstone of a key; see ``to_holder``."""
    try:
        if found["name"] != name:
            raise TypeError
        kind, create_time = unpack(found["body"])
        return Tombstone(name, documents.taken(str)(kind), documents.to_time(create_time))
    except DAMAGE:
        raise StoredDataInvalidError("what a stored key holds is damaged") from None


def to_count(found: Mapping[str, Any] | None, name: str) -> int:
    """Return where a counter stands; one that is not there is at 0.

    Raises:
        StoredDataInvalidError: It stands nowhere, or is another. Not retryable.
    """
    if found is None:
        return 0
    value = found.get("total")
    if type(value) is not int or found.get("name") != name:
        raise StoredDataInvalidError("a stored counter is damaged")
    return value


def to_effect(found: Mapping[str, Any]) -> AcceptedEffect:
    """Return the effect of a document.

    Raises:
        StoredDataInvalidError: It holds none, or another. Not retryable.
    """
    try:
        *values, accept_time = unpack(found["body"])
        made = documents.to_effect((*values, documents.to_time(accept_time)))
        if found["id"] != keys.effect_id(made.receipt_id) or found["runId"] != made.run_id:
            raise TypeError
    except DAMAGE:
        raise StoredDataInvalidError("a stored effect is damaged") from None
    return made


def brief_of(given: Revision) -> Revision:
    """Return a revision as a brief page holds it."""
    return joined(orjson.loads(to_json(halves(given).brief)), None)


def to_link(found: Mapping[str, Any]) -> ChainLink:
    """Return the link of a supersession chain that a head is.

    Raises:
        StoredDataInvalidError: It is none. Not retryable.
    """
    now = to_revision(found, None)
    return ChainLink(now.record_id, now.agent_id, now.kind, now.state, now.superseded_by_record_id)

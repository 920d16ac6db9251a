"""Between the vocabulary's dataclasses and the documents that the store keeps.

A revision is three lines: its sizes in bytes without and with its facet; a JSON list of what a
brief page holds; and a JSON list of the rest, empty where there is none. A head is a JSON list of
what scripts look at: they never read a revision but to send it, or its first two lines.
"""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from providers import documents
from providers.documents import to_json
from providers.errors import StoredDataInvalidError
from providers.folding import folded
from providers.model import Kind, Record, Revision, State, Tombstone, Trust
from providers.requests import BRIEF_LENGTH, ChainLink, KeyHolder

_CONTENT, _RATIONALE, _FACET, _TIME = 8, 9, 12, 22
_WIDTH = 23
_TEXTS = (0, 2, 4, 5, 6, 8, 13, 14)
_TEXTS_OR_NONE = (3, 7, 9, 15, 16, 17, 18, 19, 20, 21)
_TEXT_OR_NONE = (str, type(None))
_NUMBER = (int, float)

_EPOCH = datetime.min.replace(tzinfo=UTC)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_SHARED = "cross-team"
DAMAGE = (LookupError, TypeError, ValueError, OverflowError, AttributeError)
"""What it is to take apart something that was stored and is damaged. Never chained: the text of
one would hold stored values."""

_text = documents.taken(str)

# -------------------- order


def newest_first(time: datetime, *, after: int = 0) -> str:
    """Return 16 hex digits that sort as times descending; ``after``: so many microseconds later."""
    micros = (time - _EPOCH) // timedelta(microseconds=1)
    return f"{max(_LAST - micros + after, 0):016x}"


def largest_first(number: float) -> str:
    """Return 16 hex digits that sort as numbers descending."""
    (bits,) = struct.unpack("!Q", struct.pack("!d", number + 0.0))
    ascending = bits ^ (_ALL if bits & _SIGN else _SIGN)
    return f"{ascending ^ _ALL:016x}"


# -------------------- to the store


def revision_document(tag: str, revision: Revision) -> bytes:
    """Return a revision as it is kept."""
    columns = documents.revision_columns(revision)
    values = list(columns.values())
    size = size_of(revision)
    facet = columns["facet"]
    full_size = size + (0 if facet is None else len(to_json(facet)))
    rest = b""
    content, rationale = revision.content.content, revision.content.rationale
    metadata = None if revision.facet is None else revision.facet.metadata
    if len(content) > BRIEF_LENGTH or rationale is not None or metadata is not None:
        rest = to_json((content, rationale, metadata))
        values[_CONTENT], values[_RATIONALE] = content[:BRIEF_LENGTH], None
        if isinstance(facet, dict):
            facet.pop("metadata", None)
    return b"%d %d\n%b\n%b" % (size, full_size, to_json((tag, *values)), rest)


def head_document(tag: str, record: Record) -> bytes:
    """Return what is kept of a head beside its newest revision."""
    now = record.current
    order = newest_first(now.create_time)
    return to_json(
        (
            tag,
            now.record_id,
            now.revision,
            now.revision_id,
            now.agent_id,
            now.kind,
            now.state,
            now.trust,
            now.superseded_by_record_id,
            now.content.importance,
            size_of(now),
            order,
            largest_first(now.content.importance) + order,
            _entered(now),
            sorted({folded(each) for each in now.content.tags}),
            now.state is not State.FORGOTTEN,
            is_moved(now),
            record.create_time,
        )
    )


def size_of(revision: Revision) -> int:
    """Return the bytes of UTF-8 that count for a revision without its facet (K-5, X-2)."""
    said = revision.content
    texts = (said.type, said.title, said.content, said.rationale, revision.reason, *said.tags)
    return sum(len(text.encode()) for text in texts if text is not None)


def is_moved(now: Revision) -> bool:
    """Tell whether a record goes with its agent's export (X-1)."""
    return now.kind in (Kind.MEMORY, Kind.DECISION) and now.state is not State.FORGOTTEN


def _entered(now: Revision) -> list[str]:
    """Return the sets of context candidates that a head is in (K-1 to K-3)."""
    if now.state is not State.ACTIVE or now.trust not in (Trust.PENDING, Trust.APPROVED):
        return []
    approved = now.trust is Trust.APPROVED
    if now.kind is Kind.MEMORY:
        shared = approved and any(
            each.lower() == _SHARED for each in now.content.tags if each.isascii()
        )
        return [memories(now.agent_id), *(["shared"] if shared else [])]
    if approved and now.kind is Kind.DECISION:
        return ["decisions"]
    if approved and now.kind is Kind.SESSION_CONTEXT and now.source_run_id is not None:
        return [sessions(now.agent_id, now.source_run_id)]
    return []


def memories(agent_id: str) -> str:
    """Name the set of an agent's memories that may enter its contexts."""
    return f"memories/{agent_id}"


def sessions(agent_id: str, run_id: str) -> str:
    """Name the set of session contexts of an agent's run."""
    return f"sessions/{len(agent_id.encode())}/{agent_id}/{run_id}"


# -------------------- from the store


def to_revision(tag: str, document: bytes, *, brief: bool = False) -> Revision:
    """Return the revision that a document holds; without its third line where it is ``brief``.

    Raises:
        StoredDataInvalidError: It holds none, or one of another project. Not retryable.
    """
    try:
        sizes, first, *rest = document.split(b"\n")
        size, full_size = map(int, sizes.split(b" "))
        kept, *values = orjson.loads(first)
        if len(rest) != (0 if brief else 1):
            raise TypeError
        if rest and rest[0]:
            values[_CONTENT], values[_RATIONALE], metadata = orjson.loads(rest[0])
            if metadata is not None:
                values[_FACET]["metadata"] = metadata
        _check_types(values)
        values[_TIME] = documents.to_time(values[_TIME])
        facet = None if values[_FACET] is None else documents.to_facet(values[_FACET])
    except DAMAGE:
        raise StoredDataInvalidError("a stored revision is damaged") from None
    if kept != tag:
        raise StoredDataInvalidError("a stored revision is of another project")
    revision = documents.make_revision(values, facet)
    read = size_of(revision)
    if not read <= size <= full_size or (read < size and not brief):
        raise StoredDataInvalidError("a stored revision is not whole")
    return revision


def _check_types(values: Sequence[Any]) -> None:
    if (
        len(values) != _WIDTH
        or any(type(values[each]) is not str for each in _TEXTS)
        or any(type(values[each]) not in _TEXT_OR_NONE for each in _TEXTS_OR_NONE)
        or type(values[1]) is not int
        or type(values[10]) not in _NUMBER
        or type(values[11]) is not list
    ):
        raise TypeError


def to_record(tag: str, head: bytes, document: bytes, *, brief: bool = False) -> Record:
    """Return the record that a head and its newest revision make; see ``to_revision``.

    Raises:
        StoredDataInvalidError: They make none, or do not fit each other. Not retryable.
    """
    current = to_revision(tag, document, brief=brief)
    try:
        values = orjson.loads(head)
        create_time = documents.to_time(values[-1])
    except DAMAGE:
        raise StoredDataInvalidError("a stored head is damaged") from None
    record = Record(current, create_time)
    if values[:10] != _looked_at(tag, current):
        raise StoredDataInvalidError("a stored head is not its newest revision")
    return record


def _looked_at(tag: str, now: Revision) -> list[object]:
    return [
        tag,
        now.record_id,
        now.revision,
        now.revision_id,
        now.agent_id,
        now.kind.value,
        now.state.value,
        now.trust.value,
        now.superseded_by_record_id,
        now.content.importance,
    ]


def to_list(tag: str, document: bytes) -> list[Any]:
    """Return the values of a document that is a JSON list, without the tag it begins with.

    Raises:
        StoredDataInvalidError: It is none, or one of another project. Not retryable.
    """
    try:
        values: list[Any]
        kept, *values = orjson.loads(document)
    except DAMAGE:
        raise StoredDataInvalidError("a stored document is damaged") from None
    if kept != tag:
        raise StoredDataInvalidError("a stored document is of another project")
    return values


def to_holder(value: bytes | None) -> KeyHolder | None:
    """Return what a claim key holds, or ``None`` where it is free.

    Raises:
        StoredDataInvalidError: It holds neither a record nor a tombstone. Not retryable.
    """
    if value is None:
        return None
    if value[:1] != b"r":
        return KeyHolder(None, to_tombstone("", value).kind)
    try:
        return KeyHolder(value[1:].decode(), None)
    except DAMAGE:
        raise StoredDataInvalidError("what a stored key holds is damaged") from None


def to_tombstone(key: str, value: bytes) -> Tombstone:
    """Return the tombstone that a claim key holds.

    Raises:
        StoredDataInvalidError: It holds none. Not retryable.
    """
    try:
        if value[:1] != b"t":
            raise TypeError
        kind, create_time = orjson.loads(value[1:])
        return Tombstone(key, _text(kind), documents.to_time(create_time))
    except DAMAGE:
        raise StoredDataInvalidError("what a stored key holds is damaged") from None


def to_link(tag: str, head: bytes) -> ChainLink:
    """Return the link of a supersession chain that a head is.

    Raises:
        StoredDataInvalidError: It is none. Not retryable.
    """
    try:
        record_id, _, _, agent_id, kind, state, _, superseded_by, *_ = to_list(tag, head)
        if superseded_by is not None:
            _text(superseded_by)
        return ChainLink(_text(record_id), _text(agent_id), Kind(kind), State(state), superseded_by)
    except DAMAGE:
        raise StoredDataInvalidError("a stored head is damaged") from None

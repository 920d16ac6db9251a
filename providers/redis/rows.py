"""Between the vocabulary's dataclasses and the documents that the store keeps.

A revision is three lines: its sizes in bytes without and with its facet; a JSON list of what a
brief page holds; and a JSON list of the rest, empty where there is none. A head is a JSON list of
what scripts look at: they never read a revision but to send it, or its first two lines.
"""

from typing import Any

import orjson

from providers import documents
from providers.documents import DAMAGE, to_json
from providers.errors import StoredDataInvalidError
from providers.halves import halves, joined
from providers.heads import size_of
from providers.model import Kind, Record, Revision, State, Tombstone
from providers.redis.judging import FILTERED, filtered
from providers.redis.sets import Standing
from providers.requests import ChainLink, KeyHolder

_text = documents.taken(str)

# -------------------- to the store


def revision_document(tag: str, revision: Revision) -> bytes:
    """Return a revision as it is kept."""
    both = halves(revision)
    rest = b"" if both.rest is None else to_json(both.rest)
    return b"%d %d\n%b\n%b" % (both.size, both.full_size, to_json((tag, *both.brief)), rest)


def head_document(tag: str, record: Record, stands: Standing) -> bytes:
    """Return what is kept of a head beside its newest revision."""
    now = record.current
    return to_json(
        (
            *_looked_at(tag, now),
            size_of(now),
            stands.order,
            stands.place,
            stands.entered,
            stands.tags,
            stands.is_listed,
            stands.is_moved,
            stands.recalled,
            filtered(now),
            record.create_time,
        )
    )


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
        left_out = orjson.loads(rest[0]) if rest and rest[0] else None
    except DAMAGE:
        raise StoredDataInvalidError("a stored revision is damaged") from None
    if kept != tag:
        raise StoredDataInvalidError("a stored revision is of another project")
    revision = joined(values, left_out)
    read = size_of(revision)
    if not read <= size <= full_size or (read < size and not brief):
        raise StoredDataInvalidError("a stored revision is not whole")
    return revision


def to_record(tag: str, head: bytes, document: bytes, *, brief: bool = False) -> Record:
    """Return the record that a head and its newest revision make; see ``to_revision``.

    Raises:
        StoredDataInvalidError: They make none, or do not fit each other. Not retryable.
    """
    current = to_revision(tag, document, brief=brief)
    try:
        values = orjson.loads(head)
        create_time, facet = documents.to_time(values[-1]), values[FILTERED]
    except DAMAGE:
        raise StoredDataInvalidError("a stored head is damaged") from None
    record = Record(current, create_time)
    if values[:10] != _looked_at(tag, current) or facet != filtered(current):
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
    if value[:1] != b"r" or value == b"r":
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

"""The rules that a write set must keep by itself, for every adapter: clauses C-15 and G-10.

Nothing here needs a store. An adapter calls ``check`` before it sends anything.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from math import isfinite
from typing import Any

import orjson

from providers.entries import (
    DIMENSION_MAX,
    FLOAT_BYTES,
    LENGTH_MAX,
    MODEL_LENGTH_MAX,
    RECORD_TERMS_MAX,
    TERM_LENGTH_MAX,
    RecallEntry,
    Vector,
)
from providers.errors import WriteSetInvalidError, WriteSetTooLargeError
from providers.model import HeadPut, IdempotencyReceipt, MemoryFacet, Revision, WriteSet

HEADS_MAX = 100
REVISIONS_MAX = 500
KEYS_MAX = 100
TEXT_BYTES_MAX = 4 * 1024 * 1024
OUTCOME_BYTES_MAX = 1024
PAIR = 2
"""Heads that a write set without history may put whatever their size; more are bounded together."""
TOGETHER_BYTES_MAX = 384 * 1024
"""Of their revisions as JSON: twelve records of 32 KiB each."""
TOGETHER_TAGS_MAX = 192
"""Of theirs together: twelve records with 16 each."""
CODE_LENGTH_MAX = 256

_FINGERPRINT = re.compile("[0-9a-f]{64}")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Tell whether a store can hold a text: no NUL, no surrogate (G-10)."""
    return _UNSTORABLE.search(text) is None


def check(write_set: WriteSet) -> None:
    """Refuse a write set that breaks a rule or a limit other than those of text.

    Raises:
        WriteSetInvalidError: It does. Not retryable.
        WriteSetTooLargeError: It has no history and puts more than is written at once. Not
            retryable: less may fit.
    """
    _check_counts(write_set)
    _check_receipt(write_set.receipt)
    _check_keys(write_set)
    _check_heads(write_set)
    if len(write_set.heads) > PAIR and not write_set.history:
        _check_together([put.record.current for put in write_set.heads])
    if write_set.effect is not None:
        _require(write_set.effect.sequence >= 1, "an effect's sequence counts from 1")
        _check_time(write_set.effect.accept_time)


def check_text(write_set: WriteSet) -> None:
    """Refuse text that no store can hold, and more than 4 MiB of it, by looking at every string.

    An adapter that can tell in a cheaper way that all is well need not call it.

    Raises:
        WriteSetInvalidError: There is such text. Not retryable.
    """
    size = 0
    for text in _texts(write_set):
        _require(is_storable(text), "text holds NUL or a surrogate")
        size += len(text.encode())
    _require(size <= TEXT_BYTES_MAX, f"{size} bytes of text, at most {TEXT_BYTES_MAX}")


def check_code(code: str) -> None:
    """Refuse a delivery code that no store can hold, or that says nothing (D-5, G-10).

    Raises:
        WriteSetInvalidError: It is one. Not retryable.
    """
    _require(1 <= len(code) <= CODE_LENGTH_MAX, f"a code is 1-{CODE_LENGTH_MAX} characters")
    _require(is_storable(code), "a code holds NUL or a surrogate")


def check_entry(entry: RecallEntry) -> None:
    """Refuse an entry that breaks a limit of ``entries`` (C-15).

    Raises:
        WriteSetInvalidError: It does. Not retryable.
    """
    counts = entry.terms.counts
    _require(len(counts) <= RECORD_TERMS_MAX, f"at most {RECORD_TERMS_MAX} terms")
    sound = "" not in counts and max(map(len, counts), default=1) <= TERM_LENGTH_MAX
    sound = sound and _UNSEEN.search("".join(counts)) is None
    _require(sound, f"a term is 1-{TERM_LENGTH_MAX} plain characters")
    _require(min(counts.values(), default=1) >= 1, "a term occurs at least once")
    _require(entry.terms.length >= sum(counts.values()), "a length is below its counts")
    _require(entry.terms.length <= LENGTH_MAX, f"a length is at most {LENGTH_MAX}")
    if entry.vector is not None:
        _check_vector(entry.vector)


def _check_vector(vector: Vector) -> None:
    _require(1 <= len(vector.model) <= MODEL_LENGTH_MAX, "a model has 1-128 characters")
    _require(is_storable(vector.model), "a model holds NUL or a surrogate")
    _require(1 <= vector.dimension <= DIMENSION_MAX, f"a vector has 1-{DIMENSION_MAX} numbers")
    _require(len(vector.packed) % FLOAT_BYTES == 0, "a vector is no row of float32")
    numbers = memoryview(vector.packed).cast("f")
    _require(all(map(isfinite, numbers)), "a vector's number is not finite")


def check_document(value: object) -> None:
    """Refuse what is no JSON value with finite numbers, such as facet metadata may hold.

    Raises:
        WriteSetInvalidError: It is not. Not retryable.
    """
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        _require(isfinite(value), "a number is not finite")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            _require(isinstance(key, str), "a key of a document is not text")
            check_document(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            check_document(inner)
    else:
        raise WriteSetInvalidError("a document holds something that is not JSON")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise WriteSetInvalidError(otherwise)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Enum):
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _texts(inner)
    elif is_dataclass(value):
        for each in fields(value):
            yield from _texts(getattr(value, each.name))


def _check_counts(write_set: WriteSet) -> None:
    keys = (
        len(write_set.claims)
        + len(write_set.releases)
        + len(write_set.must_be_absent)
        + len(write_set.tombstones)
    )
    _require(len(write_set.heads) <= HEADS_MAX, f"at most {HEADS_MAX} heads")
    _require(len(write_set.history) <= REVISIONS_MAX, f"at most {REVISIONS_MAX} revisions")
    _require(keys <= KEYS_MAX, f"at most {KEYS_MAX} keys")


def _check_together(revisions: Sequence[Revision]) -> None:
    """Refuse what would hold up everybody else; an import may, and only an import has history."""
    tags = sum(len(each.content.tags) for each in revisions)
    if tags > TOGETHER_TAGS_MAX:
        raise WriteSetTooLargeError(f"heads: {tags} tags, at most {TOGETHER_TAGS_MAX}")
    try:
        size = sum(map(_json_size, revisions))
    except TypeError:
        raise WriteSetInvalidError("a revision holds something that is not JSON") from None
    if size > TOGETHER_BYTES_MAX:
        raise WriteSetTooLargeError(f"heads: {size} bytes as JSON, at most {TOGETHER_BYTES_MAX}")


def _json_size(revision: Revision) -> int:
    """Return the bytes that a revision's texts, tags and facet take as JSON."""
    said = revision.content
    texts = (said.type, said.title, said.content, said.rationale, revision.reason, *said.tags)
    given = (each for each in (*texts, revision.facet) if each is not None)
    return sum(len(orjson.dumps(each, default=dict)) for each in given)


def _check_receipt(receipt: IdempotencyReceipt) -> None:
    _check_fingerprint(receipt.fingerprint)
    _check_fingerprint(receipt.key.actor_fingerprint)
    _check_time(receipt.create_time)
    check_document(receipt.outcome)


def _check_fingerprint(fingerprint: str) -> None:
    if _FINGERPRINT.fullmatch(fingerprint) is None:
        raise WriteSetInvalidError("a fingerprint is not 64 lower-case hex digits")


def _check_time(time: datetime) -> None:
    if time.tzinfo is None:
        raise WriteSetInvalidError("a time has no zone")
    try:
        time.astimezone(UTC)
    except OverflowError:
        raise WriteSetInvalidError("a time has no equal in UTC") from None


def _check_keys(write_set: WriteSet) -> None:
    if not (write_set.claims or write_set.releases or write_set.tombstones):
        return
    keys = [claim.key for claim in write_set.claims]
    keys += [release.key for release in write_set.releases]
    keys += [tombstone.key for tombstone in write_set.tombstones]
    _require(
        len(set(keys)) == len(keys), "a key occurs twice among claims, releases and tombstones"
    )
    for tombstone in write_set.tombstones:
        _check_time(tombstone.create_time)


def _check_heads(write_set: WriteSet) -> None:
    chains = {put.record.current.record_id: [put.record.current] for put in write_set.heads}
    _require(len(chains) == len(write_set.heads), "a record is put twice")
    for revision in write_set.history:
        _require(revision.record_id in chains, "history of a record that is not put")
        chains[revision.record_id].append(revision)
    for put in write_set.heads:
        _check_time(put.record.create_time)
        if put.entry is not None:
            check_entry(put.entry)
        _check_chain(put, chains[put.record.current.record_id])
    ids = {revision.revision_id for chain in chains.values() for revision in chain}
    _require(
        len(ids) == len(write_set.heads) + len(write_set.history), "a revision id occurs twice"
    )


def _check_chain(put: HeadPut, chain: list[Revision]) -> None:
    if len(chain) > 1:
        chain.sort(key=lambda revision: revision.revision)
    number = put.expected_revision or 0
    link = chain[0].previous_revision_id
    _require((link is None) == (number == 0), "the first revision, and only it, has no link")
    for revision in chain:
        number += 1
        if revision.revision != number:
            raise WriteSetInvalidError("revisions do not follow the expected one without a gap")
        if revision.previous_revision_id != link:
            raise WriteSetInvalidError("a revision does not link to the one before")
        link = revision.revision_id
        _check_revision(revision)
    if chain[-1] is not put.record.current:
        raise WriteSetInvalidError("a head is not its newest revision")


def _check_revision(revision: Revision) -> None:
    _check_time(revision.create_time)
    if revision.actor_fingerprint is not None:
        _check_fingerprint(revision.actor_fingerprint)
    if not isfinite(revision.content.importance):
        raise WriteSetInvalidError("a number is not finite")
    if revision.facet is not None:
        _check_facet(revision.facet)


def _check_facet(facet: MemoryFacet) -> None:
    for time in (facet.expire_time, facet.last_reinforce_time, facet.invalidate_time):
        if time is not None:
            _check_time(time)
    if facet.confidence is not None:
        _require(isfinite(facet.confidence), "a number is not finite")
    if facet.metadata is not None:
        check_document(facet.metadata)

"""A write set as documents, made before anything is read or sent."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from providers.cosmos import entries, rows
from providers.documents import to_json
from providers.errors import WriteSetInvalidError
from providers.model import HeadPut, Kind, Revision, WriteSet
from providers.rules import OUTCOME_BYTES_MAX, check, check_text

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Documents of a write set. Of a head that exists, sizes and links are yet to be added.

    Attributes:
        receipt: The receipt.
        heads: Heads by record id.
        revisions: The current revision of each head.
        segments: What comes with them of their past.
        effect: The effect, or nothing.
    """

    receipt: Document
    heads: dict[str, Document]
    revisions: list[Document]
    segments: list[Document]
    effect: Document | None


def encode(write_set: WriteSet) -> Encoded:
    """Return the documents of a write set.

    Raises:
        WriteSetInvalidError: The write set breaks a rule or a limit. Not retryable.
    """
    try:
        check(write_set)
        check_text(write_set)
        if len(to_json(write_set.receipt.outcome)) > OUTCOME_BYTES_MAX:
            raise WriteSetInvalidError("the receipt's outcome is too large")
        return _encoded(write_set, is_packed=False)
    except (TypeError, ValueError) as error:
        raise WriteSetInvalidError("the write set holds something that is not JSON") from error


def packed(write_set: WriteSet) -> Encoded:
    """Return the documents again, each long text in one of them only: for what is large."""
    return _encoded(write_set, is_packed=True)


def without_entries(write_set: WriteSet) -> WriteSet:
    """Return a write set without the entries of its heads, which can be built later (Q-10)."""
    heads = tuple(replace(put, entry=None) for put in write_set.heads)
    return replace(write_set, heads=heads)


def _encoded(write_set: WriteSet, *, is_packed: bool) -> Encoded:
    heads, revisions, segments = {}, [], []
    for put, past in _chains(write_set):
        now = put.record.current
        held = [*past, now] if is_packed else past
        name = None
        if held:
            segments.append(rows.segment(held, named=past))
            name = segments[-1]["id"] if is_packed else None
        chain = [*past, now]
        links = {each.superseded_by_record_id for each in chain} - {None}
        made = rows.head(put.record, chain, links=map(str, links), packed=name)
        # What is no memory has no entry.
        entry = put.entry if now.kind is Kind.MEMORY else None
        heads[now.record_id] = made | entries.written(entry)
        revisions.append(rows.revision(now, packed=name))
    effect = write_set.effect
    return Encoded(
        receipt=rows.receipt(write_set.receipt),
        heads=heads,
        revisions=revisions,
        segments=segments,
        effect=None if effect is None else rows.effect(effect),
    )


def _chains(write_set: WriteSet) -> Iterator[tuple[HeadPut, list[Revision]]]:
    """Give each head and the revisions that come below it, oldest first."""
    past: dict[str, list[Revision]] = {}
    for each in write_set.history:
        past.setdefault(each.record_id, []).append(each)
    for put in write_set.heads:
        below = past.get(put.record.current.record_id, [])
        yield put, sorted(below, key=lambda each: each.revision)

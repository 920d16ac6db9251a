"""Documents of the Cosmos adapter: what comes back, and what does not pass its check (G-7)."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from providers.conformance import specimens
from providers.conformance.reference_pages import brief
from providers.cosmos import rows
from providers.errors import StoredDataInvalidError
from providers.folding import folded
from providers.model import Record, Revision

LONG = "知識 \x01\U0001f600" * 200
RECORD = specimens.memory(
    "r1", content=specimens.content(LONG, rationale="why"), facet=specimens.facet()
)
NOTHING = rows.Segments(())


def stored(document: dict[str, Any]) -> dict[str, Any]:
    """What the service gives back: JSON, and an etag."""
    return {**json.loads(json.dumps(document)), "_etag": '"1"'}


def head(record: Record = RECORD, *, packed: str | None = None) -> dict[str, Any]:
    return stored(rows.head(record, [record.current], links=(), packed=packed))


def chain(length: int) -> list[Revision]:
    return [each.current for each in specimens.history("r1", length, facet=specimens.facet())]


def test_a_head_comes_back_as_it_was() -> None:
    """G-10: every code point and number, whole and brief."""
    assert rows.to_record(head(), NOTHING) == RECORD
    short = replace(RECORD, current=brief(RECORD.current))
    assert rows.to_record(head(), None) == short


def test_a_revision_comes_back_as_it_was() -> None:
    document = stored(rows.revision(RECORD.current, packed=None))
    assert rows.to_revision(document, NOTHING) == RECORD.current
    assert rows.to_revision(document, None) == brief(RECORD.current)


def test_a_segment_holds_a_history() -> None:
    """004-88: verbatim, each revision with its size, whole and brief."""
    revisions = chain(5)
    document = stored(rows.segment(revisions, named=revisions[:4]))
    segments = rows.Segments([document])
    assert [each for each, _ in segments.all(document["id"], brief=False)] == revisions
    assert [each for each, _ in segments.all(document["id"], brief=True)] == [
        *map(brief, revisions)
    ]
    assert document["ids"] == [each.revision_id for each in revisions[:4]]


def test_the_rest_of_a_head_may_stand_in_a_segment() -> None:
    """004-83: the text is there once."""
    segment = stored(rows.segment([RECORD.current], named=()))
    document = head(packed=segment["id"])
    assert document["rest"] is None
    assert rows.to_record(document, rows.Segments([segment])) == RECORD
    with pytest.raises(StoredDataInvalidError):
        rows.to_record(document, NOTHING)


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no brief": lambda each: each.pop("brief"),
    "no rest": lambda each: each.pop("rest"),
    "brief that is no text": lambda each: each.update(brief=7),
    "brief that is not packed": lambda each: each.update(brief="e30="),
    "brief of too few values": lambda each: each.update(brief=rows.pack([1, 2])),
    "another record id": lambda each: each.update(recordId="r2"),
    "another number": lambda each: each.update(revision=2),
    "another document id": lambda each: each.update(
        id=rows.head(other(), [], links=(), packed=None)["id"]
    ),
    "no time": lambda each: each.update(createTime=rows.pack("yesterday")),
}


def other() -> Record:
    return specimens.memory("r2")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_head_is_told(damage: Callable[[dict[str, Any]], object]) -> None:
    """G-7, 004-44."""
    document = head()
    damage(document)
    with pytest.raises(StoredDataInvalidError):
        rows.to_record(document, NOTHING)


@pytest.mark.parametrize("history", [None, "", rows.pack([]), rows.pack([[], [], []])], ids=str)
def test_a_damaged_segment_is_told(history: object) -> None:
    document = {**stored(rows.segment(chain(2), named=())), "history": history}
    with pytest.raises(StoredDataInvalidError):
        rows.Segments([document]).all(document["id"], brief=False)


def test_a_receipt_of_another_key_is_told() -> None:
    receipt = specimens.receipt(key="k")
    document = stored(rows.receipt(receipt))
    assert rows.to_receipt(document, receipt.key) == receipt
    with pytest.raises(StoredDataInvalidError):
        rows.to_receipt(document, replace(receipt.key, idempotency_key="l"))


def test_keys_counters_and_effects_of_another_name_are_told() -> None:
    grave, effect = specimens.tombstone("k"), specimens.effect(2**31)
    assert rows.to_tombstone(stored(rows.buried(grave)), "k") == grave
    assert rows.to_effect(stored(rows.effect(effect))) == effect
    assert rows.to_count(stored(rows.counter("graph", 3)), "graph") == 3
    with pytest.raises(StoredDataInvalidError):
        rows.to_tombstone(stored(rows.buried(grave)), "l")
    with pytest.raises(StoredDataInvalidError):
        rows.to_holder(stored(rows.claimed("k", "r1")), "l")
    with pytest.raises(StoredDataInvalidError):
        rows.to_count(stored(rows.counter("graph", 3)), "transfer")
    with pytest.raises(StoredDataInvalidError):
        rows.to_effect({**stored(rows.effect(effect)), "runId": "another"})


def test_what_json_escapes_is_searched_as_single_letters() -> None:
    """S-3: no two characters of folded text become one, and none is escaped in JSON."""
    text = folded("".join(map(chr, range(1, 0x3000))))
    shortened = rows.searchable(text)
    assert len(set(shortened)) == len(set(text))
    assert json.dumps(shortened, ensure_ascii=False) == f'"{shortened}"'

"""What is kept sorts as it must, comes back as it was, and is refused when it is damaged."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from providers.conformance import specimens
from providers.documents import receipt_document, to_json, to_receipt
from providers.errors import StoredDataInvalidError
from providers.model import IdempotencyReceipt, Record, Revision
from providers.order import largest_first, newest_first
from providers.redis.delivery import to_found
from providers.redis.rows import (
    head_document,
    revision_document,
    to_holder,
    to_link,
    to_list,
    to_record,
    to_revision,
    to_tombstone,
)
from providers.redis.sets import standing
from providers.requests import BRIEF_LENGTH
from tests.property.drawing import CONTENT, FACET

TAG, OTHER_TAG = "0123456789abcdef", "fedcba9876543210"
CANARY = "qxqx"
LONG = "\u77e5" * (BRIEF_LENGTH + 1)
RECORDS = {
    "plain": specimens.memory("r1"),
    "brief": specimens.memory("r1", content=specimens.content("x" * BRIEF_LENGTH)),
    "long": specimens.memory("r1", content=specimens.content(LONG), facet=specimens.facet()),
    "rationale": specimens.decision("r1", content=specimens.content(rationale="\u2028\n\\")),
    "linked": specimens.superseded(specimens.decision("r1"), "r2"),
    "empty facet": specimens.memory("r1", facet=specimens.empty_facet()),
}
RECEIPT = specimens.receipt(
    key="k1", refs=[specimens.ref(RECORDS["plain"])], outcome={"a": [1, None]}, effect_id="e1"
)
EFFECT = specimens.effect(1)
DELIVERED = b'["token","1",true,null,null,null]'
EARLY = "0001-01-01T00:00:00+14:00"
OTHERS = [None, True, 7, -7, 1.5, 2**63, CANARY, "", EARLY, [CANARY], {CANARY: 1}]

MOMENTS = [
    datetime.min.replace(tzinfo=UTC),
    datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    specimens.START,
    specimens.START + timedelta(microseconds=1),
    datetime.max.replace(tzinfo=UTC),
]
LARGEST = 1.7976931348623157e308
SMALLEST = 5e-324
NUMBERS = [-LARGEST, -1.0, -0.5, -2.2e-308, -SMALLEST, 0.0, SMALLEST, 2.2e-308, 0.1, 1.0, LARGEST]
ZONES = st.integers(-24 * 60 + 1, 24 * 60 - 1).map(lambda n: timezone(timedelta(minutes=n)))
HEX = set("0123456789abcdef")

# -------------------- order


def test_extreme_times_sort_newest_first() -> None:
    """004-38: from year 1 to 9999, to the microsecond."""
    places = [newest_first(each) for each in MOMENTS]
    assert places == sorted(places, reverse=True)
    assert len(set(places)) == len(places)
    assert all(len(place) == 16 and set(place) <= HEX for place in places)


@given(st.datetimes(timezones=ZONES), st.datetimes(timezones=ZONES))
@example(datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), MOMENTS[0])
def test_times_of_any_zone_sort_as_moments(one: datetime, other: datetime) -> None:
    places = newest_first(one), newest_first(other)
    assert [len(place) for place in places] == [16, 16]
    assert (one < other) == (places[0] > places[1])
    assert (one == other) == (places[0] == places[1])


@example(datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))))
@given(st.datetimes(timezones=ZONES))
def test_a_bound_lies_between_two_moments(time: datetime) -> None:
    """A time and the microsecond before: nothing sorts between them, even beyond year 9999."""
    bound = newest_first(time, after=1)
    assert len(bound) == 16
    assert set(bound) <= HEX
    if MOMENTS[0] < time <= MOMENTS[-1]:
        assert bound == newest_first(time.astimezone(UTC) - timedelta(microseconds=1))


def test_extreme_numbers_sort_largest_first() -> None:
    """004-38: negative, subnormal and largest; the two zeros are one."""
    places = [largest_first(each) for each in NUMBERS]
    assert places == sorted(places, reverse=True)
    assert len(set(places)) == len(places)
    assert largest_first(-0.0) == largest_first(0.0) == largest_first(0)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_numbers_sort_as_numbers(one: float, other: float) -> None:
    places = largest_first(one), largest_first(other)
    assert [len(place) for place in places] == [16, 16]
    assert (one < other) == (places[0] > places[1])
    assert (one == other) == (places[0] == places[1])


# -------------------- round trip


def whole(record: Record) -> tuple[bytes, bytes]:
    now = record.current
    return head_document(TAG, record, standing(now)), revision_document(TAG, now)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_comes_back(name: str) -> None:
    """004-44: what was put is what comes back, and its link too."""
    record = RECORDS[name]
    head, document = whole(record)
    assert to_record(TAG, head, document) == record
    link = to_link(TAG, head)
    assert (link.record_id, link.superseded_by_record_id) == (
        record.current.record_id,
        record.current.superseded_by_record_id,
    )


@given(CONTENT, FACET)
def test_any_content_comes_back(content: Any, facet: Any) -> None:
    """004-44: so it is with odd characters and facets of every sort."""
    record = specimens.memory("r1", content=content, facet=facet)
    assert to_record(TAG, *whole(record)) == record


@pytest.mark.parametrize("name", RECORDS)
def test_the_first_two_lines_are_brief(name: str) -> None:
    """004-44: without the rest of content, rationale and metadata; they pass for nothing else."""
    head, document = whole(RECORDS[name])
    said = RECORDS[name].current.content
    cut = document.rpartition(b"\n")[0]
    found = to_record(TAG, head, cut, brief=True).current
    assert found.content == replace(said, content=said.content[:BRIEF_LENGTH], rationale=None)
    assert found.facet is None or found.facet.metadata is None
    for read in (partial_of(to_revision, cut), lambda: to_revision(TAG, document, brief=True)):
        assert is_refused(read)


def test_other_documents_come_back() -> None:
    stored = to_json((TAG, *receipt_document(RECEIPT)))
    assert to_receipt(to_list(TAG, stored), RECEIPT.key) == RECEIPT
    found = to_found(TAG, EFFECT.receipt_id, effect_document(), DELIVERED)
    assert (found.effect, found.delivered) == (EFFECT, True)
    holder = to_holder("r\u77e5".encode())
    assert holder is not None
    assert holder.record_id == "\u77e5"


# -------------------- damage


def effect_document(tag: str = TAG) -> bytes:
    return to_json(
        (tag, EFFECT.run_id, EFFECT.sequence, EFFECT.receipt_id, EFFECT.receipt, EFFECT.accept_time)
    )


def partial_of(read: Callable[[str, bytes], Any], document: bytes) -> Callable[[], Any]:
    return lambda: read(TAG, document)


def is_refused(read: Callable[[], Any]) -> bool:
    """Tell whether the one error comes, which tells no value; any other is raised."""
    try:
        read()
    except StoredDataInvalidError as error:
        shown = "".join(traceback.format_exception(error)) + repr(error)
        assert CANARY not in shown
        return True
    return False


def read_revision(tag: str, document: bytes) -> Revision:
    found = to_revision(tag, document)
    assert to_revision(tag, revision_document(tag, found)) == found
    return found


def read_brief(tag: str, document: bytes) -> Revision:
    return to_revision(tag, document, brief=True)


def read_record(tag: str, head: bytes) -> Record:
    found = to_record(tag, head, revision_document(tag, RECORDS["linked"].current))
    assert found.current == RECORDS["linked"].current
    assert found.create_time.tzinfo is UTC
    return found


def read_link(tag: str, head: bytes) -> None:
    link = to_link(tag, head)
    assert type(link.record_id) is type(link.agent_id) is str
    assert type(link.superseded_by_record_id) in {str, type(None)}


def read_receipt(tag: str, document: bytes) -> IdempotencyReceipt:
    found = to_receipt(to_list(tag, document), RECEIPT.key)
    assert type(found.method) is type(found.fingerprint) is str
    stored = to_json((tag, *receipt_document(found)))
    assert to_receipt(to_list(tag, stored), RECEIPT.key) == found
    return found


def read_effect(tag: str, document: bytes) -> None:
    found = to_found(tag, EFFECT.receipt_id, document, DELIVERED)
    assert found.effect is not None
    assert found.effect.receipt_id == EFFECT.receipt_id


def read_delivery(tag: str, document: bytes) -> None:
    found = to_found(tag, EFFECT.receipt_id, effect_document(tag), document)
    assert type(found.delivered) is bool
    assert type(found.last_code) in {str, type(None)}


def read_tombstone(_: str, document: bytes) -> None:
    assert type(to_tombstone("k", document).kind) is str


HEAD = head_document(TAG, RECORDS["linked"], standing(RECORDS["linked"].current))
STORED: dict[str, tuple[Callable[[str, bytes], Any], bytes]] = {
    **{
        f"revision, {name}": (read_revision, revision_document(TAG, record.current))
        for name, record in RECORDS.items()
    },
    "brief": (read_brief, revision_document(TAG, RECORDS["plain"].current).rpartition(b"\n")[0]),
    "head": (read_record, HEAD),
    "link": (read_link, HEAD),
    "receipt": (read_receipt, to_json((TAG, *receipt_document(RECEIPT)))),
    "effect": (read_effect, effect_document()),
    "delivery": (read_delivery, DELIVERED),
    "tombstone": (read_tombstone, b't["forgotten","2026-03-14T15:09:26Z"]'),
}
TAGGED = sorted(STORED.keys() - {"delivery", "tombstone"})


@pytest.mark.parametrize("name", STORED)
def test_what_is_whole_is_read(name: str) -> None:
    read, document = STORED[name]
    assert not is_refused(partial_of(read, document))


@pytest.mark.parametrize("name", TAGGED)
def test_documents_of_another_project(name: str) -> None:
    """004-44: one that belongs to another project is refused."""
    read, document = STORED[name]
    assert is_refused(lambda: read(OTHER_TAG, document))


@pytest.mark.parametrize("name", STORED)
def test_documents_cut_short(name: str) -> None:
    """004-44: cut short at any byte, at either end."""
    read, document = STORED[name]
    for at in range(len(document)):
        assert is_refused(partial_of(read, document[:at])), at
        assert is_refused(partial_of(read, document[at + 1 :])), at


@pytest.mark.parametrize("extra", [b"\n", b"\n[]", b"\n0 0", b"x", b"]", b"\0"])
@pytest.mark.parametrize("name", STORED)
def test_documents_with_more_behind_them(name: str, extra: bytes) -> None:
    """004-44: something follows that was never written."""
    read, document = STORED[name]
    assert is_refused(partial_of(read, document + extra)) or extra == b"\n"
    assert is_refused(partial_of(read, extra.strip() + document)) or not extra.strip()


@pytest.mark.parametrize("name", STORED)
def test_values_of_another_type(name: str) -> None:
    """004-44: each value in turn becomes another, is gone, or is doubled; no other error leaves."""
    read, document = STORED[name]
    lines = document.removeprefix(b"t").split(b"\n")
    begin = document[: document.startswith(b"t")]
    refused = 0
    for number, line in enumerate(lines):
        for wrong in spoiled(line):
            damaged = begin + b"\n".join([*lines[:number], wrong, *lines[number + 1 :]])
            refused += is_refused(partial_of(read, damaged))
    assert refused > 20


def spoiled(line: bytes) -> list[bytes]:
    """Return a JSON line with each value of its list replaced, removed, or doubled."""
    if not line.startswith(b"["):
        return [b"", b"1", b"1 2 3", b"x y", b"-1 -1", CANARY.encode()]
    values = orjson.loads(line)
    made = [to_json(each) for each in OTHERS]
    for at, value in enumerate(values):
        made += [to_json([*values[:at], each, *values[at + 1 :]]) for each in OTHERS]
        made += [to_json([*values[:at], *values[at + 1 :]]), to_json([*values[: at + 1], *values])]
        if isinstance(value, dict):
            for name in value:
                made += [
                    to_json([*values[:at], value | {name: each}, *values[at + 1 :]])
                    for each in OTHERS
                ]
    return made


@given(st.data())
@pytest.mark.parametrize("name", STORED)
def test_bytes_that_rot(name: str, data: st.DataObject) -> None:
    """004-44: any bytes in the place of any others are refused, or are a value of their own."""
    read, document = STORED[name]
    begin = data.draw(st.integers(0, len(document)))
    end = data.draw(st.integers(begin, min(len(document), begin + 12)))
    pieces = st.binary(max_size=6) | st.sampled_from([b"null", b'""', b"[]", b"{}", b"1e999", b","])
    rotten = document[:begin] + data.draw(pieces) + document[end:]
    is_refused(partial_of(read, rotten))


@pytest.mark.parametrize("at", range(1, 10))
def test_a_head_that_is_not_its_newest_revision(at: int) -> None:
    """004-44: whatever a head and its newest revision both say must be the same."""
    record = RECORDS["linked"]
    values = orjson.loads(HEAD)
    values[at] = 0.25 if at == 9 else 7 if at == 2 else "r9"
    document = revision_document(TAG, record.current)
    assert is_refused(lambda: to_record(TAG, to_json(values), document))


@pytest.mark.parametrize("value", [b"", b"x", b"r", b"r\xff", b"t", b"t\xff", b't{"a":1,"b":2}'])
def test_holders_that_are_none(value: bytes) -> None:
    """004-44: a key that holds neither a record nor a tombstone."""
    assert is_refused(lambda: to_holder(value))

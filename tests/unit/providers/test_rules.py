"""Rules of a write set that no law of the conformance kit can provoke on every store."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import orjson
import pytest

from broker.domain import facets, fields
from providers.conformance import specimens
from providers.errors import WriteSetInvalidError, WriteSetTooLargeError
from providers.model import Content, MemoryFacet, ProjectKey, Record, WriteSet
from providers.rules import PLAIN_BYTES_MAX, PLAIN_TAGS_MAX, check

PROJECT = ProjectKey("t1", "p1")
EAST, WEST = (timezone(timedelta(hours=hours)) for hours in (14, -14))


def at(time: datetime) -> WriteSet:
    return specimens.create(PROJECT, specimens.memory("r1", create_time=time))


@pytest.mark.parametrize(
    "time", [datetime.min.replace(tzinfo=EAST), datetime.max.replace(tzinfo=WEST)]
)
def test_a_time_without_an_equal_in_utc(time: datetime) -> None:
    """004-44: such a time could be kept and never be read again, so it is not kept."""
    with pytest.raises(WriteSetInvalidError, match="no equal in UTC"):
        check(at(time))


@pytest.mark.parametrize(
    "time", [datetime.min.replace(tzinfo=WEST), datetime.max.replace(tzinfo=EAST)]
)
def test_the_first_and_the_last_time(time: datetime) -> None:
    """004-44: those that have one are kept."""
    check(at(time))


# -------------------- without history

RAINBOW, CONTROL, LARGEST_TAG = "\U0001f308", "\u0001", "\U0001f308" * (fields.TAG_MAX - 1)


def bare(text: str, *, tags: int = 0) -> Content:
    """Say a text that takes its own length, two quotes and two more for the type."""
    return Content(
        type="",
        title=None,
        content=text,
        rationale=None,
        importance=0.5,
        tags=tuple(f"{n}" for n in range(tags)),
    )


def heads(*contents: Content, facet: MemoryFacet | None = None) -> WriteSet:
    made = (
        specimens.memory(f"r{n}", content=each, facet=facet, reason=None)
        for n, each in enumerate(contents)
    )
    return specimens.create(PROJECT, *made)


def with_history(write: WriteSet) -> WriteSet:
    """Put the same heads, and one more that has a past."""
    past, now = specimens.history("of old", 2)
    return replace(write, heads=(*write.heads, specimens.put(now)), history=(past.current,))


@pytest.mark.parametrize("count", [1, 2, 12])
@pytest.mark.parametrize(
    ("character", "size"), [("x", 1), (RAINBOW, 4), ('"', 2), ("\n", 2), (CONTROL, 6)]
)
def test_bytes_without_history(count: int, character: str, size: int) -> None:
    """004-48: up to 640 KiB as JSON, in however many heads; what JSON escapes counts as escaped."""
    room = PLAIN_BYTES_MAX - 4 * count
    share = room // count // size
    rest = [bare(character * share)] * (count - 1)
    first = character * (share - 1)
    first += "x" * (room - size * (count * share - 1))
    for text in (first[:-1], first):
        check(heads(bare(text), *rest))
    over = heads(bare(f"{first}x"), *rest)
    with pytest.raises(WriteSetTooLargeError, match=f"^heads: {PLAIN_BYTES_MAX + 1} bytes as JSON"):
        check(over)
    check(with_history(over))


@pytest.mark.parametrize("count", [1, 2, 12])
def test_tags_without_history(count: int) -> None:
    """004-48: up to 192 tags, in however many heads."""
    share = PLAIN_TAGS_MAX // count
    rest = [bare("x", tags=share)] * (count - 1)
    for tags in (share - 1, share):
        check(heads(bare("x", tags=tags), *rest))
    over = heads(bare("x", tags=share + 1), *rest)
    with pytest.raises(WriteSetTooLargeError, match=f"^heads: {PLAIN_TAGS_MAX + 1} tags, at most"):
        check(over)
    check(with_history(over))


def test_every_field_counts() -> None:
    """004-48: title, rationale, reason, tags and what the facet holds."""
    room = "x" * (PLAIN_BYTES_MAX - 4)
    plain = bare(room)
    check(heads(plain))
    more = (
        heads(replace(plain, title="")),
        heads(replace(plain, rationale="")),
        heads(replace(plain, type="x")),
        heads(replace(plain, tags=("",))),
        heads(plain, facet=MemoryFacet()),
        specimens.create(PROJECT, specimens.memory("r1", content=plain, facet=None, reason="")),
    )
    for write in more:
        with pytest.raises(WriteSetTooLargeError, match="bytes as JSON"):
            check(write)


@pytest.mark.parametrize("character", [RAINBOW, CONTROL])
def test_any_two_records_of_the_broker_fit(character: str) -> None:
    """004-71: a promotion writes two, each with every field as long as the broker takes it."""
    long = MemoryFacet(
        namespace=RAINBOW * facets.NAMESPACE_MAX,
        subject=RAINBOW * facets.SUBJECT_MAX,
        source=RAINBOW * facets.SOURCE_MAX,
        epoch=RAINBOW * facets.EPOCH_MAX,
        metadata={"note": "x" * (facets.METADATA_BYTES_MAX - len(orjson.dumps({"note": ""})))},
        invalidation_reason=RAINBOW * fields.REASON_MAX,
        **{name: getattr(specimens.facet(), name) for name in ("expire_time", "confidence")},
    )
    said = Content(
        type=RAINBOW * fields.TYPE_MAX,
        title=character * fields.TITLE_MAX,
        content=character * fields.CONTENT_MAX,
        rationale=character * fields.RATIONALE_MAX,
        importance=0.1 + 0.2,
        tags=tuple(f"{chr(0x1F300 + n)}{LARGEST_TAG}" for n in range(fields.TAGS_MAX)),
    )

    def largest(name: str) -> Record:
        reason = RAINBOW * fields.REASON_MAX
        return specimens.memory(name, content=said, facet=long, reason=reason)

    check(specimens.create(PROJECT, largest("r1"), largest("r2")))


@pytest.mark.parametrize("facet", [None, MemoryFacet(metadata={"n": 2**64})])
def test_what_is_not_json(facet: MemoryFacet | None) -> None:
    """004-48: a surrogate, or a number of more than 64 bits, is refused as what it is."""
    text = "x" if facet else "\ud800"
    with pytest.raises(WriteSetInvalidError, match="not JSON"):
        check(heads(bare(text), facet=facet))

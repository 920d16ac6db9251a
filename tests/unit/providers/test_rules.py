"""Rules of a write set that no law of the conformance kit can provoke on every store."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from providers.conformance import specimens
from providers.errors import WriteSetInvalidError, WriteSetTooLargeError
from providers.model import Content, MemoryFacet, ProjectKey, WriteSet
from providers.rules import TOGETHER_BYTES_MAX, TOGETHER_TAGS_MAX, check

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


# -------------------- several heads without history

RAINBOW, CONTROL = "\U0001f308", "\u0001"


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


@pytest.mark.parametrize("count", [3, 12])
@pytest.mark.parametrize(
    ("character", "size"), [("x", 1), (RAINBOW, 4), ('"', 2), ("\n", 2), (CONTROL, 6)]
)
def test_bytes_of_several(count: int, character: str, size: int) -> None:
    """004-48: up to 384 KiB as JSON; what JSON escapes counts as escaped."""
    room = TOGETHER_BYTES_MAX - 4 * count
    share = room // count // size
    rest = [bare(character * share)] * (count - 1)
    first = character * (share - 1)
    first += "x" * (room - size * (count * share - 1))
    for text in (first[:-1], first):
        check(heads(bare(text), *rest))
    over = heads(bare(f"{first}x"), *rest)
    told = f"^heads: {TOGETHER_BYTES_MAX + 1} bytes as JSON, at most {TOGETHER_BYTES_MAX}$"
    with pytest.raises(WriteSetTooLargeError, match=told):
        check(over)
    check(with_history(over))


@pytest.mark.parametrize("count", [3, 12])
def test_tags_of_several(count: int) -> None:
    """004-48: up to 192 tags."""
    share = TOGETHER_TAGS_MAX // count
    rest = [bare("x", tags=share)] * (count - 1)
    for tags in (share - 1, share):
        check(heads(bare("x", tags=tags), *rest))
    over = heads(bare("x", tags=share + 1), *rest)
    told = f"^heads: {TOGETHER_TAGS_MAX + 1} tags, at most {TOGETHER_TAGS_MAX}$"
    with pytest.raises(WriteSetTooLargeError, match=told):
        check(over)
    check(with_history(over))


def test_every_field_counts() -> None:
    """004-48: title, rationale, reason, tags and what the facet holds."""
    rest = [bare("")] * 2
    full = bare("x" * (TOGETHER_BYTES_MAX - 12))
    check(heads(full, *rest))
    changed = heads(full, *rest)
    first, *others = changed.heads
    said = replace(first.record.current, reason="")
    for write in (
        heads(replace(full, title=""), *rest),
        heads(replace(full, rationale=""), *rest),
        heads(replace(full, type="x"), *rest),
        heads(replace(full, tags=("",)), *rest),
        heads(full, *rest, facet=MemoryFacet()),
        specimens.write(PROJECT, specimens.put(replace(first.record, current=said)), *others),
    ):
        with pytest.raises(WriteSetTooLargeError, match="bytes as JSON"):
            check(write)


@pytest.mark.parametrize("count", [1, 2])
def test_two_heads_are_as_large_as_they_are(count: int) -> None:
    """004-71: a promotion writes two; what each may be is the broker's to say."""
    check(heads(*[bare("x" * TOGETHER_BYTES_MAX, tags=TOGETHER_TAGS_MAX + 1)] * count))


@pytest.mark.parametrize("facet", [None, MemoryFacet(metadata={"n": 2**64})])
def test_what_is_not_json(facet: MemoryFacet | None) -> None:
    """004-48: a surrogate, or a number of more than 64 bits, is refused as what it is."""
    text = "x" if facet else "\ud800"
    with pytest.raises(WriteSetInvalidError, match="not JSON"):
        check(heads(*map(bare, (text, "", "")), facet=facet))

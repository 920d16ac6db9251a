"""What a head's document says of a memory is what recall would judge of the memory itself."""

from datetime import UTC, datetime, timedelta, timezone

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.conformance import specimens
from providers.eligibility import is_eligible
from providers.errors import StoredDataInvalidError
from providers.folding import folded
from providers.model import (
    Kind,
    MemoryFacet,
    MemoryKind,
    OriginTier,
    ProjectKey,
    Record,
    Sensitivity,
    State,
    Trust,
)
from providers.recall import Eligible, Superseded
from providers.redis.judging import to_judged
from providers.redis.rows import head_document
from providers.redis.sets import standing

TAG, CANARY = "0123456789abcdef", "qxqx"
TEXT = st.sampled_from(("", "a", "A", "\u00df", "ss", "\U0001f600", '"', "null"))
MOMENTS = st.sampled_from(
    [specimens.START + timedelta(microseconds=n) for n in (-1, 0, 1)]
    + [specimens.START.astimezone(timezone(timedelta(hours=9))), datetime.max.replace(tzinfo=UTC)]
)


def _any(values: type) -> st.SearchStrategy[object]:
    return st.none() | st.sampled_from(list(values))  # type: ignore[call-overload]


FACETS = st.none() | st.builds(
    MemoryFacet,
    memory_kind=_any(MemoryKind),
    namespace=st.none() | TEXT,
    subject=st.none() | TEXT,
    epoch=st.none() | TEXT,
    origin_tier=_any(OriginTier),
    sensitivity=_any(Sensitivity),
    expire_time=st.none() | MOMENTS,
    invalidate_time=st.none() | MOMENTS,
)
ASKED = st.builds(
    Eligible,
    project=st.just(ProjectKey("t1", "p1")),
    agent_id=st.sampled_from(("a1", "a2")),
    at=MOMENTS,
    superseded=st.sampled_from(Superseded),
    namespaces=st.frozensets(TEXT, max_size=2),
    memory_kinds=st.frozensets(st.sampled_from(MemoryKind), max_size=2),
    subject=st.none() | TEXT,
    epoch=st.none() | TEXT,
    tags=st.lists(TEXT, max_size=1).map(tuple),
    patterns=st.sampled_from(((), ("*",), ("?",), ("s?",))),
    importance_min=st.sampled_from((0.0, 0.5, 1.0)),
    ceiling=st.sampled_from(Sensitivity),
    lowest_tier=st.sampled_from(OriginTier),
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    tags = tuple(draw(st.sets(TEXT, max_size=2)))
    return specimens.memory(
        "r1",
        kind=draw(st.sampled_from(Kind)),
        state=draw(st.sampled_from(State)),
        trust=draw(st.sampled_from(Trust)),
        facet=draw(FACETS),
        content=specimens.content(importance=draw(st.sampled_from((0.25, 0.5, 1))), tags=tags),
        create_time=draw(MOMENTS),
    )


def _document(record: Record) -> bytes:
    return head_document(TAG, record, standing(record.current))


@given(record=records(), asked=ASKED)
def test_a_head_is_judged_as_its_memory(record: Record, asked: Eligible) -> None:
    """000-42, 002-20: whatever is filtered."""
    judged = to_judged(TAG, "r1", _document(record))
    assert is_eligible(judged, asked) == is_eligible(record, asked)
    assert set(judged.current.content.tags) == {folded(tag) for tag in record.current.content.tags}


FULL = specimens.memory("r1", facet=specimens.facet(expire_time=specimens.START))
LOOKED_AT = {0, 1, 3, 4, 5, 6, 7, 9, 14, 18, 19}
"""The tag, the names, kind, state, trust, importance, tags, what is filtered, and the time."""


@pytest.mark.parametrize("at", sorted(LOOKED_AT))
@pytest.mark.parametrize("other", [True, 7.5, CANARY, [CANARY], [7], {}], ids=repr)
def test_other_heads_are_refused(at: int, other: object) -> None:
    """004-44: by an error that says nothing of what is stored."""
    values = orjson.loads(_document(FULL))
    fits = {(3, CANARY), (4, CANARY), (9, 7.5)}
    is_fit = (
        (at, other) in fits if isinstance(other, str | float) else (at, other) == (14, [CANARY])
    )
    values[at] = other
    if is_fit:
        to_judged(TAG, "r1", orjson.dumps(values))
        return
    with pytest.raises(StoredDataInvalidError) as refused:
        to_judged(TAG, "r1", orjson.dumps(values))
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("document", [b"", b"[]", b"null", b"7", b"[[[", b"\xff", b"{}"])
def test_what_is_no_head_is_refused(document: bytes) -> None:
    """004-44."""
    with pytest.raises(StoredDataInvalidError):
        to_judged(TAG, "r1", document)

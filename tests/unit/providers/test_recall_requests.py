"""Requests of recall that no adapter could answer cannot be made."""

from datetime import UTC, datetime
from typing import Any

import pytest

from providers.conformance import specimens
from providers.model import ProjectKey
from providers.recall import (
    Eligible,
    EntryPut,
    IndexRequest,
    Match,
    Matches,
    RecallRequest,
    TaggedRequest,
    UnindexedRequest,
)

PROJECT = ProjectKey("t1", "p1")
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - a time without a zone is the point
MANY = tuple(f"t{n}" for n in range(33))


def _eligible(**asked: Any) -> Eligible:
    return Eligible(**{"project": PROJECT, "agent_id": "a1", "at": datetime.now(UTC), **asked})


@pytest.mark.parametrize("asked", [{"at": NAIVE}, {"tags": MANY}, {"patterns": MANY}])
def test_what_is_eligible_has_bounds(asked: dict[str, Any]) -> None:
    """002-20, 001-27: a time has a zone, and there are at most 32 tags or patterns."""
    with pytest.raises(ValueError, match=r"zone|32"):
        _eligible(**asked)
    assert len(_eligible(tags=MANY[:32], patterns=MANY[:32]).patterns) == 32


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"terms": ("a", "a")},
        {"terms": tuple(f"t{n}" for n in range(65))},
        {"terms": ("a",), "nearest_max": 0},
        {"terms": ("a",), "nearest_max": 1_001},
    ],
)
def test_a_recall_out_of_bounds_is_refused(asked: dict[str, Any]) -> None:
    """000-02: words or a vector, at most 64 different words, 1-1,000 nearest."""
    with pytest.raises(ValueError, match=r"term|nearest_max"):
        RecallRequest(eligible=_eligible(), **asked)


@pytest.mark.parametrize("limit", [0, 101])
def test_pages_out_of_bounds_are_refused(limit: int) -> None:
    """003-04: 1-100 at a time."""
    with pytest.raises(ValueError, match="limit"):
        TaggedRequest(eligible=_eligible(), limit=limit)
    with pytest.raises(ValueError, match="limit"):
        UnindexedRequest(project=PROJECT, limit=limit)


def test_an_index_request_has_each_record_once() -> None:
    """001-11: at most 100 entries, one for a record."""
    puts = tuple(
        EntryPut(record_id=f"r{n}", revision_id="x", entry=specimens.entry()) for n in range(101)
    )
    assert len(IndexRequest(project=PROJECT, entries=puts[:100]).entries) == 100
    for wrong in (puts, (puts[0], puts[0])):
        with pytest.raises(ValueError, match="entries"):
            IndexRequest(project=PROJECT, entries=wrong)


def test_matches_are_read_one_by_one() -> None:
    """000-02: as they were put into columns, and of nothing there is nothing."""
    rows = [Match("a", (2, 0), 5), Match("b", (0, 1), 7)]
    found = Matches.of(iter(rows))
    assert (found.record_ids, found.counts, found.lengths) == (("a", "b"), ((2, 0), (0, 1)), (5, 7))
    assert (list(found), len(found)) == (rows, 2)
    assert (list(Matches.of([])), len(Matches()), Matches.of([])) == ([], 0, Matches())


@pytest.mark.parametrize(
    "columns",
    [(("a",), ((1,),), ()), (("a",), ((1,), (1, 2)), (1,)), ((), ((1,),), (1,))],
    ids=["lengths", "counts", "names"],
)
def test_columns_are_equally_long(columns: Any) -> None:
    """000-02: what is told of one match is not told of another."""
    with pytest.raises(ValueError, match="equally long"):
        Matches(*columns)

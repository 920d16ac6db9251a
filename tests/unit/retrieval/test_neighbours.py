"""What memories lend those that were told next to them."""

from datetime import timedelta

import pytest

from broker.retrieval.neighbours import APART_MAX, LENT_SHARE, REACH, lent
from providers.model import Record
from tests.unit.retrieval.memories import record

SECOND = timedelta(seconds=1)


def row(*ids: str, source: str | None = "s") -> list[Record]:
    """Return memories of one source, stored a second after each other."""
    return [record(each, after=n * SECOND, source=source) for n, each in enumerate(ids)]


def lent_to(
    scores: dict[str, float], records: list[Record], floor: float = 0.0
) -> dict[str, float]:
    """Return what each memory has more than before."""
    found = lent(scores, records, floor)
    return {each: found[each] - scores[each] for each in scores if found[each] != scores[each]}


def test_the_next_get_half_of_it() -> None:
    """An answer lies beside its question, on either side: half for the next, a quarter beyond."""
    ids = ("a", "b", "hit", "c", "d", "e")
    scores = dict.fromkeys(ids, 0.0) | {"hit": 1.0}
    assert lent_to(scores, row(*ids)) == {"a": 0.25, "b": 0.5, "c": 0.5, "d": 0.25}
    assert (LENT_SHARE, REACH) == (0.5, 2)


def test_only_the_best_neighbour_lends() -> None:
    """Many memories of a source do not carry each other to the top."""
    scores = {"a": 1.0, "b": 0.25, "c": 0.75}
    assert lent_to(scores, row("a", "b", "c"))["b"] == 0.5


def test_what_is_not_better_than_the_rest_lends_nothing() -> None:
    """Only what a score is above the best that is not on the shortlist is lent."""
    scores = {"hit": 0.5, "next": 0.25}
    assert lent_to(scores, row("hit", "next"), floor=0.5) == {}
    assert lent_to(scores, row("hit", "next"), floor=0.25) == {"next": 0.125}


@pytest.mark.parametrize("source", [None, ""])
def test_without_a_source_there_is_no_neighbour(source: str | None) -> None:
    """003-09: the source is provenance; nobody knows what was told beside such memories."""
    assert lent_to({"hit": 1.0, "next": 0.0}, row("hit", "next", source=source)) == {}


def test_other_sources_lend_nothing() -> None:
    """Two sessions at one time are two conversations."""
    records = [record("hit", source="s"), record("next", after=SECOND, source="t")]
    assert lent_to({"hit": 1.0, "next": 0.0}, records) == {}


@pytest.mark.parametrize(
    ("apart", "share"), [(APART_MAX, 0.5), (APART_MAX + timedelta(microseconds=1), 0.0)]
)
def test_an_hour_parts_neighbours(apart: timedelta, share: float) -> None:
    """A source that goes on for months is no one conversation."""
    records = [record("hit", source="s"), record("next", after=apart, source="s")]
    assert lent_to({"hit": 1.0, "next": 0.0}, records).get("next", 0.0) == share


def test_the_order_is_that_of_storing() -> None:
    """Whatever order the heads come in; of one moment, that of the ids."""
    records = [record(each, source="s") for each in ("d", "a", "c", "b")]
    scores = {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}
    assert lent_to(scores, records) == {"b": 0.5, "c": 0.25}

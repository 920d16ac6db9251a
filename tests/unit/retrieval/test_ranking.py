"""Scores of both arms, and the order of what is given back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from broker.retrieval.ranking import HEADS_MAX, Shortlist, ranked, shortlist
from broker.retrieval.scoring import bm25, fused, ranks
from providers.model import MemoryFacet, OriginTier, Record
from providers.recall import Match, Near, Recalled
from tests.unit.domain.test_records import NOW, head


def record(record_id: str, text: str = "", after: int = 0, **facet: object) -> Record:
    """Return a memory that says something of its own, stored so many seconds after the first."""
    made = head(facet=MemoryFacet(**facet))  # type: ignore[arg-type]
    content = replace(made.current.content, content=text or f"text {record_id}", importance=0.0)
    current = replace(made.current, record_id=record_id, content=content)
    return Record(current, NOW + timedelta(seconds=after))


def order(
    scores: dict[str, float], *records: Record, asked: str = "", limit: int = 10, floor: float = 0.0
) -> list[str]:
    """Return the ids in the order in which they are given back."""
    found = Shortlist(scores, floor, {}, ranks(scores), {})
    results = ranked(found, records, asked=frozenset(asked.split()), limit=limit)
    return [each.record.current.record_id for each in results]


def test_bm25_is_as_the_formula_says() -> None:
    """k1 1.2 and b 0.75, by hand: a rare term and a short text weigh more."""
    recalled = Recalled(
        documents=4,
        length_total=40,
        frequencies=(1, 4),
        matches=(Match("a", (2, 1), 10), Match("b", (0, 1), 5)),
    )
    scores = bm25(recalled)
    assert scores["a"] == pytest.approx(1.2040 * 2 * 2.2 / 3.2 + 0.1054 * 1.0, abs=1e-4)
    assert scores["b"] == pytest.approx(0.1054 * 2.2 / (1 + 1.2 * 0.625), abs=1e-4)


def test_words_alone() -> None:
    """001-26: without vectors the words decide."""
    assert fused({"a": 4.0, "b": 1.0}, {}) == {"a": 1.0, "b": 0.25}


def test_both_arms_count_for_half() -> None:
    """000-40: each by its best; what the vectors did not find is at most as near as their last."""
    scores = fused({"a": 4.0, "c": 2.0}, {"a": 0.5, "b": 1.0})
    assert scores == {"a": 0.75, "b": 0.5, "c": pytest.approx(0.25 + 0.25)}


def test_a_far_vector_is_no_good() -> None:
    """A cosine below 0 counts as 0."""
    assert fused({"a": 1.0}, {"b": -0.5}) == {"a": 0.5, "b": 0.0}


def test_ranks_count_from_one() -> None:
    """R10: by score, then by id."""
    assert ranks({"b": 1.0, "a": 1.0, "c": 2.0}) == {"c": 1, "a": 2, "b": 3}


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_shortlist_has_bounds(more: int) -> None:
    """100 heads are read; the best of the rest is the floor."""
    count = HEADS_MAX + more
    near = tuple(Near(f"{n:03}", 1.0 - n / 1_000) for n in range(count))
    listed = shortlist(Recalled(nearest=near))
    assert len(listed.scores) == min(count, HEADS_MAX)
    assert (listed.floor > 0.0) is (more > 0)


def test_neighbours_of_a_source_lend() -> None:
    """What was said next to what fits comes before what stands alone; only its source lends."""
    scores = {"hit": 1.0, "next": 0.2, "alone": 0.3}
    records = [
        record("hit", after=1, source="s"),
        record("next", after=2, source="s"),
        record("alone", after=3, source="t"),
    ]
    assert order(scores, *records) == ["hit", "next", "alone"]
    apart = [record(each, after=n, source=each) for n, each in enumerate(scores)]
    assert order(scores, *apart) == ["hit", "alone", "next"]


def test_what_is_not_better_than_the_rest_lends_nothing() -> None:
    """Only what a score is above the floor is lent."""
    scores = {"hit": 0.5, "next": 0.5, "alone": 0.55}
    records = [
        record("hit", after=1, source="s"),
        record("next", after=2, source="s"),
        record("alone", after=3),
    ]
    assert order(scores, *records, floor=0.5)[0] == "alone"
    assert order(scores, *records, floor=0.0)[0] == "hit"


def test_a_named_subject_fits_better() -> None:
    """002-22: the query names what a memory is about."""
    scores = {"a": 1.0, "b": 0.9}
    records = [record("a", subject="Bo"), record("b", subject="Mira")]
    assert order(scores, *records, asked="mira tea") == ["b", "a"]
    assert order(scores, *records, asked="tea") == ["a", "b"]


def test_importance_decides_between_equals() -> None:
    """003-03: importance affects the order, and little."""
    one, other = record("a"), record("b")
    content = replace(other.current.content, importance=1.0)
    other = replace(other, current=replace(other.current, content=content))
    assert order({"a": 1.0, "b": 1.0}, one, other) == ["b", "a"]
    assert order({"a": 1.0, "b": 0.9}, one, other) == ["a", "b"]


def test_few_about_one_subject() -> None:
    """002-26: three, however well they fit."""
    scores = {f"{n}": 1.0 - n / 10 for n in range(6)}
    records = [record(each, subject="tea" if each != "5" else "") for each in scores]
    assert order(scores, *records) == ["0", "1", "2", "5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a b c d e", ["0", "2", "1"]), ("a b c d x y", ["0", "1", "2"])],
    ids=["0.8", "below"],
)
def test_near_duplicates_stand_behind(text: str, expected: list[str]) -> None:
    """002-26: from 0.8 of common terms on, what is new comes first."""
    records = [record("0", "a b c d"), record("1", text), record("2", "other")]
    assert order({"0": 1.0, "1": 0.9, "2": 0.8}, *records) == expected


def test_the_limit_cuts_near_duplicates_first() -> None:
    """A place goes to what says something new."""
    records = [record("0", "a b c d"), record("1", "a b c d e"), record("2", "other")]
    assert order({"0": 1.0, "1": 0.9, "2": 0.8}, *records, limit=2) == ["0", "2"]


def test_higher_origin_first() -> None:
    """000-32: what was chosen is sorted by tier, else its order stays; a place is not won by it."""
    records = [
        record("web", origin_tier=OriginTier.EXTERNAL),
        record("agent", origin_tier=OriginTier.AGENT),
        record("operator", origin_tier=OriginTier.OPERATOR),
    ]
    scores = {"web": 1.0, "agent": 0.9, "operator": 0.8}
    assert order(scores, *records) == ["operator", "agent", "web"]
    assert order(scores, *records, limit=2) == ["agent", "web"]


def test_what_is_gone_meanwhile_is_left_out() -> None:
    """Between the two trips a memory may be forgotten."""
    assert order({"a": 1.0, "b": 0.5}, record("b")) == ["b"]

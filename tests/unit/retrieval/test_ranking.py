"""Scores of both arms, and the order of what is given back."""

from dataclasses import replace

import pytest

from broker.retrieval import repeats
from broker.retrieval.fitness import Weights
from broker.retrieval.ranking import (
    HEADS_MAX,
    PER_SUBJECT_MAX,
    Choice,
    Shortlist,
    in_order,
    recollections,
    shortlist,
)
from broker.retrieval.scoring import bm25, fused, ordered, places
from providers.folding import folded
from providers.model import OriginTier, Record
from providers.recall import Match, Matches, Near, Recalled
from tests.unit.domain.test_records import NOW
from tests.unit.retrieval.memories import record


def order(
    scores: dict[str, float],
    *records: Record,
    asked: str = "",
    limit: int = 10,
    per_subject: int | None = PER_SUBJECT_MAX,
    floor: float = 0.0,
) -> list[str]:
    """Return the ids in the order in which they are given back."""
    found = Shortlist(scores, floor, {}, places(ordered(scores)), {})
    given = in_order(found, records, asked=frozenset(asked.split()), at=NOW, weights=Weights())
    choice = Choice(limit, per_subject)
    for each in given.records:
        choice.take([each])
    results = recollections(found, given, choice.chosen())
    return [each.record.current.record_id for each in results]


def test_bm25_is_as_the_formula_says() -> None:
    """k1 1.2 and b 0.75, by hand: a rare term and a short text weigh more."""
    recalled = Recalled(
        documents=4,
        length_total=40,
        frequencies=(1, 4),
        matches=Matches.of([Match("a", (2, 1), 10), Match("b", (0, 1), 5)]),
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
    """R10, 002-25: by score, then by id."""
    scores = {"b": 1.0, "a": 1.0, "c": 2.0}
    assert ordered(scores) == ["c", "a", "b"]
    assert places(ordered(scores)) == {"c": 1, "a": 2, "b": 3}


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
def test_the_best_are_the_first_of_all(most: int) -> None:
    """R10, 002-25: of equals at the cut the first by id."""
    scores = {"d": 1.0, "b": 1.0, "a": 0.5, "c": 1.0}
    assert ordered(scores, most) == ["b", "c", "d", "a"][:most]
    assert ordered({"d": 4.0, "a": 3.0, "c": 2.0, "b": 1.0}, most) == ["d", "a", "c", "b"][:most]


def test_words_alone_shortlist_as_words_beside_a_vector() -> None:
    """000-40: what is left out of the order is what nobody reads, its floor included."""
    counts = [(n % 7, n * 7919 % 5) for n in range(3 * HEADS_MAX)]
    matches = Matches.of(Match(f"{n:03}", each, 31 + n % 3) for n, each in enumerate(counts))
    recalled = Recalled(documents=900, length_total=9_000, frequencies=(90, 300), matches=matches)
    words = bm25(recalled)
    every = ordered(words)
    listed = shortlist(recalled)
    best = {each: words[each] / words[every[0]] for each in every[: HEADS_MAX + 1]}
    assert list(listed.scores) == every[:HEADS_MAX]
    assert {**listed.scores, every[HEADS_MAX]: listed.floor} == best
    assert [listed.keyword_ranks[each] for each in listed.scores] == [*range(1, HEADS_MAX + 1)]
    beside = shortlist(replace(recalled, nearest=(Near("000", 0.5),)))
    assert beside.keyword_ranks == places(every)


def test_equals_score_equally_wherever_they_stand() -> None:
    """R10: the same counts give the same score to the last bit, so that ids decide."""
    counts = [(1, 0, 3), (0, 2, 1), (1, 0, 3)] * 7
    matches = Matches.of(Match(f"{n:02}", each, 31) for n, each in enumerate(counts))
    recalled = Recalled(documents=50, length_total=999, frequencies=(3, 17, 40), matches=matches)
    assert len(set(bm25(recalled).values())) == 2


@pytest.mark.parametrize("documents", [0, 3])
def test_statistics_of_nothing(documents: int) -> None:
    """What only history holds has a score, too; without matches there is none."""
    recalled = Recalled(
        documents=documents,
        frequencies=(0,),
        length_total=documents,
        matches=Matches.of([Match("a", (1,), 3)]),
    )
    assert bm25(recalled)["a"] > 0.0
    assert bm25(Recalled(frequencies=(0, 0))) == {}


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_shortlist_has_bounds(more: int) -> None:
    """100 heads are read; the best of the rest is the floor."""
    count = HEADS_MAX + more
    near = tuple(Near(f"{n:03}", 1.0 - n / 1_000) for n in range(count))
    listed = shortlist(Recalled(nearest=near))
    assert len(listed.scores) == min(count, HEADS_MAX)
    assert (listed.floor > 0.0) is (more > 0)


def test_few_about_one_subject() -> None:
    """002-26: three, however well they fit."""
    scores = {f"{n}": 1.0 - n / 10 for n in range(6)}
    subjects = ["tea", "Tea", "tea", "TEA", "tea", None]
    records = [record(each, subject=subjects[n]) for n, each in enumerate(scores)]
    assert order(scores, *records) == ["0", "1", "2", "5"]
    assert order(scores, *records[1:]) == ["1", "2", "3", "5"]


def test_without_a_subject_there_is_no_limit() -> None:
    """002-26: memories about nothing in particular are not about one thing."""
    scores = {f"{n}": 1.0 - n / 10 for n in range(6)}
    assert order(scores, *map(record, scores)) == list(scores)


def test_what_is_told_again_is_left_out() -> None:
    """002-26, 000-43: the same text in other case, composition or white space comes once."""
    records = [
        record("0", "The caf\u00e9 opens"),
        record("1", "the  cafe\u0301 OPENS\n"),
        record("2", "other"),
    ]
    assert order({"0": 1.0, "1": 0.9, "2": 0.8}, *records) == ["0", "2"]


def test_a_title_tells_texts_apart() -> None:
    """What is told under another title is no repetition."""
    records = [record("0", "on", title="lamp"), record("1", "on", title="heater")]
    assert order({"0": 1.0, "1": 0.9}, *records) == ["0", "1"]


def test_a_repetition_takes_its_subject_no_place() -> None:
    """002-26: three different memories of a subject are given back."""
    texts = ["one", "one", "two", "three", "four"]
    scores = {f"{n}": 1.0 - n / 10 for n in range(5)}
    records = [record(f"{n}", text, subject="tea") for n, text in enumerate(texts)]
    assert order(scores, *records) == ["0", "2", "3"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a b c d e", ["0", "2", "1"]), ("a b c d x y", ["0", "1", "2"])],
    ids=["0.8", "below"],
)
def test_near_duplicates_stand_behind(text: str, expected: list[str]) -> None:
    """002-26: from 0.8 of common terms on, what is new comes first."""
    records = [record("0", "a b c d"), record("1", text), record("2", "other")]
    assert order({"0": 1.0, "1": 0.9, "2": 0.8}, *records) == expected


def test_signs_alone_are_told_once() -> None:
    """Texts without a term are the same where they are the same."""
    records = [record("0", "?!"), record("1", "?!"), record("2", "!")]
    assert order({"0": 1.0, "1": 0.9, "2": 0.8}, *records) == ["0", "2"]


def test_what_is_not_given_back_was_not_told() -> None:
    """002-26: what repeats a memory that its subject left out is new."""
    records = [record(f"{n}", text, subject="tea") for n, text in enumerate("abcd")]
    records.append(record("4", "d"))
    assert order({f"{n}": 1.0 - n / 10 for n in range(5)}, *records) == ["0", "1", "2", "4"]


def test_the_limit_cuts_near_duplicates_first() -> None:
    """A place goes to what says something new."""
    records = [record("0", "a b c d"), record("1", "a b c d e"), record("2", "other")]
    assert order({"0": 1.0, "1": 0.9, "2": 0.8}, *records, limit=2) == ["0", "2"]


@pytest.mark.parametrize(
    ("per_subject", "limit", "expected"),
    [(3, 10, ["0", "5", "1"]), (None, 3, ["0", "5", "1"]), (1, 10, ["0"])],
    ids=["three", "the-limit", "one"],
)
def test_near_duplicates_take_no_place_from_what_is_new(
    per_subject: int | None, limit: int, expected: list[str]
) -> None:
    """002-26: neither of their subject nor of all."""
    records = [record(f"{n}", f"a b c d e f g h i {n}", subject="tea") for n in range(5)]
    records.append(record("5", "other", subject="Tea"))
    scores = {f"{n}": 1.0 - n / 10 for n in range(6)}
    assert order(scores, *records, limit=limit, per_subject=per_subject) == expected


def test_what_is_near_only_to_what_stands_behind_is_new() -> None:
    """002-26: a row of texts, each near the one before, does not hide what the last one says."""
    texts = ["a b c d", "a b c d e", "a b c d e f"]
    records = [record(f"{n}", text) for n, text in enumerate(texts)]
    assert order({"0": 1.0, "1": 0.9, "2": 0.8}, *records) == ["0", "2", "1"]


def test_what_stands_behind_is_told_once() -> None:
    """002-26: and once more where the better of two was left out for its subject."""
    behind = [record("1", "a b c d e"), record("2", "A B c  d e")]
    full = [record(f"{n}", text, subject="tea") for n, text in enumerate(["a b c d", "e"])]
    assert order({"0": 1.0, "1": 0.9, "2": 0.8}, full[0], *behind) == ["0", "1"]
    left_out = record("3", "a b c d e", subject="tea")
    scores = {"0": 1.0, "1": 0.9, "3": 0.8, "2": 0.7}
    assert order(scores, *full, left_out, behind[1], per_subject=2) == ["0", "1", "2"]


def test_a_whole_text_is_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """004-13: and only where it is near another; folding 40,000 code points takes 3 ms."""
    told: list[str] = []

    def counted(text: str) -> str:
        told.append(text)
        return folded(text)

    monkeypatch.setattr(repeats, "folded", counted)
    near = [record(f"{n:02}", f"\u00e4 b c d e f g h i {n}") for n in range(30)]
    records = [*near, record("30", "other"), record("31", "another")]
    order({f"{n:02}": 1.0 - n / 100 for n in range(32)}, *records, limit=50)
    assert len(told) == len(set(told)) == len(near)


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

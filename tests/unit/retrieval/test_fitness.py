"""What counts beside the query."""

from contextlib import nullcontext
from dataclasses import asdict
from datetime import timedelta

import pytest
from pydantic import ValidationError

from broker.config import RecallSettings
from broker.retrieval.fitness import NAMED_SHARE, Fitness, Weights
from providers.model import Record
from tests.unit.domain.test_records import NOW
from tests.unit.retrieval.memories import record

NOTHING = Weights(importance=0.0, recency=0.0)


def factor(each: Record, asked: str = "", weights: Weights = NOTHING) -> float:
    """Return what the score of a memory is multiplied by."""
    return Fitness(asked=frozenset(asked.split()), at=NOW, weights=weights).of(each)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("mira tea", True),
        ("deploy plan mira", True),
        ("tea", False),
        ("deploy", False),
        ("", False),
    ],
)
def test_a_name_in_the_query(asked: str, named: bool) -> None:
    """002-22: the query holds all words of the subject, or all of the title."""
    each = record("a", title="The Deploy Plan", subject="Mira")
    assert factor(each, asked) == 1.0 + (NAMED_SHARE if named else 0.0)


@pytest.mark.parametrize("name", [None, "", "?!"])
def test_no_name_is_in_no_query(name: str | None) -> None:
    """What has no words is not named by a query that has none of them."""
    assert factor(record("a", title=name, subject=name), "tea") == 1.0


def test_importance_counts_as_configured() -> None:
    """003-03: importance affects the order."""
    weights = Weights(importance=0.2, recency=0.0)
    assert factor(record("a", importance=1.0), weights=weights) == pytest.approx(1.2)
    assert factor(record("a", importance=0.0), weights=weights) == 1.0
    assert factor(record("a", importance=1.0)) == 1.0


@pytest.mark.parametrize(("days", "share"), [(0, 0.2), (-10, 0.1), (-20, 0.05), (1, 0.2)], ids=str)
def test_recency_counts_as_configured(days: int, share: float) -> None:
    """Half as much after each half-life; what is later than the moment asked about is new."""
    weights = Weights(importance=0.0, recency=0.2, recency_half_life_days=10)
    each = record("a", after=timedelta(days=days))
    assert factor(each, weights=weights) == pytest.approx(1.0 + share)
    assert factor(each) == 1.0


def test_little_counts_beside_the_query() -> None:
    """The default weights decide between what fits about equally well."""
    best = record("a", title="tea", importance=1.0)
    assert factor(best, "tea", Weights()) == pytest.approx(1.2)


def test_defaults_stand_in_both_places_alike() -> None:
    """What settings leave out is what ranking has by itself."""
    assert RecallSettings().model_dump() == asdict(Weights())


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("importance", 0.0, True),
        ("importance", 1.0, True),
        ("importance", -0.01, False),
        ("importance", 1.01, False),
        ("recency", 0.0, True),
        ("recency", 1.0, True),
        ("recency", -0.01, False),
        ("recency", 1.01, False),
        ("recency_half_life_days", 1.0, True),
        ("recency_half_life_days", 3_650.0, True),
        ("recency_half_life_days", 0.99, False),
        ("recency_half_life_days", 3_650.01, False),
    ],
)
def test_settings_have_bounds(name: str, value: float, *, taken: bool) -> None:
    """Nobody configures a share below 0 or above all of a score, or an age of no length."""
    with nullcontext() if taken else pytest.raises(ValidationError, match=name):
        RecallSettings.model_validate({name: value})

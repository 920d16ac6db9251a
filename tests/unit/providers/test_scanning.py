"""A scope that is looked through whole, without a store."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from providers.conformance.specimens import vector
from providers.entries import Vector
from providers.model import ProjectKey
from providers.packing import pack_terms
from providers.recall import Eligible, RecallRequest
from providers.scanning import Scanned, scan

ELIGIBLE = Eligible(
    project=ProjectKey("t1", "p1"), agent_id="a1", at=datetime(2026, 1, 1, tzinfo=UTC)
)
HERE = vector(1.0, 0.0)


def _yes() -> bool:
    return True


def _head(
    record_id: str,
    counts: dict[str, int],
    numbers: Vector | None = None,
    is_eligible: Callable[[], bool] = _yes,
) -> Scanned:
    packed = None if numbers is None else numbers.packed
    length = sum(counts.values())
    return Scanned(record_id, length, pack_terms(counts), packed, is_eligible)


def _request(*terms: str, near: Vector | None = None, nearest_max: int = 100) -> RecallRequest:
    return RecallRequest(eligible=ELIGIBLE, terms=terms, vector=near, nearest_max=nearest_max)


def test_only_what_would_be_given_back_is_judged() -> None:
    """000-02: and once, whatever finds it."""
    asked: list[str] = []

    def judged(name: str) -> bool:
        asked.append(name)
        return name != "no"

    heads = [
        _head(name, counts, numbers, lambda name=name: judged(name))  # type: ignore[misc]
        for name, counts, numbers in (
            ("both", {"java": 1}, HERE),
            ("no", {"java": 2}, HERE),
            ("neither", {"other": 1}, None),
        )
    ]
    got = scan(_request("java", near=HERE), [*heads, Scanned("bare", None, "", None, _yes)])
    assert asked == ["both", "no"]
    assert [each.record_id for each in got.matches] == ["both"]
    assert [each.record_id for each in got.nearest] == ["both"]
    told = (got.documents, got.length_total, got.frequencies, got.unindexed)
    assert told == (3, 4, (2,), 1)


@pytest.mark.parametrize("count", [1, 3, 7, 64, 513])
@pytest.mark.parametrize("dimension", [3, 384, 1_536])
def test_equal_vectors_are_equally_near(count: int, dimension: int) -> None:
    """001-26: so that their names decide, wherever they stand among the others."""
    numbers = vector(*(((n * 7919) % 1009) / 7 - 70 for n in range(dimension)))
    names = [f"r{n:03}" for n in range(count)]
    got = scan(_request(near=numbers), [_head(name, {}, numbers) for name in reversed(names)])
    assert len({each.similarity for each in got.nearest}) == 1
    assert [each.record_id for each in got.nearest] == names[:100]


def test_an_empty_scope_finds_nothing() -> None:
    """000-02: with a frequency for each term."""
    got = scan(_request("java", "build", near=HERE), [])
    assert (got.frequencies, got.documents, len(got.matches), got.nearest) == ((0, 0), 0, 0, ())

"""When memory counts as grown."""

import pytest

from tests.bench.leaks import SETTLED, Resident, growth


def held(*sizes: int) -> list[Resident]:
    """What was held after each ten thousand calls."""
    return [Resident((at + 1) * SETTLED // 2, size) for at, size in enumerate(sizes)]


def test_growth_is_counted_from_when_it_had_settled() -> None:
    sizes = [10, *[100] * 5, *[102] * 5]
    assert growth(held(*sizes)) == pytest.approx(1.02)


def test_one_high_reading_is_no_growth() -> None:
    assert growth(held(10, *[100] * 9, 900)) == 1.0


def test_a_steady_climb_is_growth() -> None:
    found = growth(held(*range(100, 200, 5)))
    assert found is not None and found > 1.3


@pytest.mark.parametrize("turns", [1, 3])
def test_few_calls_tell_nothing(turns: int) -> None:
    assert growth(held(*[100] * turns)) is None

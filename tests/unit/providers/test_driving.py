"""Which terms of a query bring records of their own, on both sides of the bound."""

import pytest

from providers.driving import driving
from providers.recall import DRIVEN_MAX


@pytest.mark.parametrize(
    ("frequencies", "wanted"),
    [
        ((), ()),
        ((0, 0), ()),
        ((5, 0, 3), (2, 0)),
        ((DRIVEN_MAX - 1, 1), (1, 0)),
        ((DRIVEN_MAX, 1), (1,)),
        ((DRIVEN_MAX + 1,), (0,)),
        ((DRIVEN_MAX + 1, 10 * DRIVEN_MAX), (0,)),
        ((1_000, 1_000, 1), (2, 0)),
        ((1_000, 1_000), (0, 1)),
        ((0, DRIVEN_MAX * 2, 0), (1,)),
    ],
)
def test_the_rarest_drive_up_to_a_bound(
    frequencies: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    """000-02: up to 2,000 records together; the first that occurs at all in any case."""
    terms = tuple("abcdefgh"[: len(frequencies)])
    assert driving(terms, frequencies) == wanted


@pytest.mark.parametrize(
    ("terms", "wanted"),
    [
        (("b", "a", "c"), (1, 0)),
        (("a", "B", "c"), (1, 0)),
        (("\u00e4", "z", "\U0001f600"), (1, 0)),
        (("\U0001f600", "\uffff", "a"), (2, 1)),
    ],
)
def test_equally_rare_ones_go_by_their_bytes(
    terms: tuple[str, ...], wanted: tuple[int, ...]
) -> None:
    """000-02: of terms with one frequency those drive that come first in UTF-8."""
    assert driving(terms, (2, 2, 2), most=5) == wanted
    assert sorted(terms) == sorted(terms, key=str.encode)

"""The measures of work see work that is not linear."""

import re

import pytest

from tests.unit.memory.growth import GROWTH_MAX, growth, loose_repeats


def pairs(text: str) -> int:
    """Look at every character as often as there are others."""
    count = 0
    for one in text[::20]:
        for other in text[::20]:
            count += one == other
    return count


def once(text: str) -> int:
    """Look at every character once."""
    count = 0
    for char in text:
        count += char == "a"
    return count


def test_what_is_not_linear_is_seen() -> None:
    """A measure that could not fail would prove nothing."""
    assert growth(pairs, "a") > 2 * GROWTH_MAX
    assert growth(once, "a") < GROWTH_MAX


@pytest.mark.parametrize(
    "loose", ["(?:ab*)+", "a*b", "(?:ab){1,9}", "x(?:a|b+)c", "(?=a+)", "(?>a+b)"]
)
def test_loose_patterns_are_seen(loose: str) -> None:
    """So would one for patterns."""
    assert loose_repeats(re.compile(loose))


@pytest.mark.parametrize(
    "tight", ["[ab]*+c", "a{1,64}b", "(?:ab){3}", "(?>(?:\\.[a-z]{1,9}+)+)", "(?>[a-z]+)b"]
)
def test_tight_patterns_pass(tight: str) -> None:
    """What gives nothing back, and what is short."""
    assert loose_repeats(re.compile(tight)) == []

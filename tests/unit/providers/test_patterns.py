"""What a pattern of a tag means, and that it is never slow."""

import random
import re

import pytest

from providers.patterns import fits


@pytest.mark.parametrize(
    ("pattern", "text", "fitting"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("**", "abc", True),
        ("?", "", False),
        ("?", "a", True),
        ("?", "\U0001f600", True),
        ("?", "ab", False),
        ("a*", "a", True),
        ("a*", "ba", False),
        ("*a", "aab", False),
        ("*a", "abaa", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("a?c*", "abcd", True),
        ("*?*", "a", True),
        ("*?*", "", False),
        ("a*", "a\nb", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a.c", "abc", False),
        ("\\*", "\\anything", True),
        ("*", "*", True),
        ("?", "*", True),
    ],
)
def test_two_wildcards_and_no_other(pattern: str, text: str, fitting: bool) -> None:
    """001-27: a star is any run, a question mark any one character, all else itself."""
    assert fits(pattern, text) is fitting


def test_it_agrees_with_a_regular_expression() -> None:
    """001-27: over many small patterns and texts."""
    chance = random.Random(27)
    for _ in range(20_000):
        pattern = "".join(chance.choices("ab*?", k=chance.randrange(7)))
        text = "".join(chance.choices("ab", k=chance.randrange(7)))
        expression = "".join({"*": ".*", "?": "."}.get(each, each) for each in pattern)
        assert fits(pattern, text) is (re.fullmatch(expression, text) is not None), (pattern, text)


class _Counted(str):
    """A text that counts how often it was looked at."""

    looks = 0

    def __getitem__(self, place: object) -> str:
        type(self).looks += 1
        return super().__getitem__(place)  # type: ignore[index]


def test_many_stars_are_not_slow() -> None:
    """001-27: the looks at the text grow with the two lengths, not with the stars."""
    text = _Counted("a" * 1_000)
    assert not fits("*a" * 30 + "*b", text)
    assert _Counted.looks < 1_000 * 61

"""How texts are split into words. 004-94."""

import pytest

from broker.context.words import STOP_WORDS, words

SPLITS = [
    ("", set()),
    ("Queue WORKER", {"queue", "worker"}),
    ("ab abc abcd", {"abc", "abcd"}),
    ("one,two;three.four", {"one", "two", "three", "four"}),
    ("snake_case kebab-case", {"snake", "case", "kebab"}),
    ("`queue` <worker> retry=3 a+bcd", {"queue", "worker", "retry", "bcd"}),
    ("don't", {"don"}),
    ("line\nbreak\ttab\u00a0nbsp\u3000wide", {"line", "break", "tab", "nbsp", "wide"}),
    ("«café» ¿cómo? 「知識庫」", {"café", "cómo", "知識庫"}),
    ("cafe\u0301 CAFÉ", {"café"}),
    ("Straße STRASSE", {"strasse"}),
    ("हिन्दी", {"हिन्दी"}),
    ("price €100 ©2026", {"price", "€100", "©2026"}),
    ("abc\U00010a50def", {"abc", "def"}),
    ("THE Agent and his Context", {"his"}),
]


@pytest.mark.parametrize(("text", "found"), SPLITS)
def test_words(text: str, found: set[str]) -> None:
    """004-94: lower case, split at space and punctuation, longer than 2, no stop words."""
    assert words(text) == found


def test_stop_words_are_words() -> None:
    """004-94: eighteen; one that is too short, or not in lower case, would stop nothing."""
    assert len(STOP_WORDS) == 18
    assert all(len(word) > 2 and word == word.lower() for word in STOP_WORDS)

"""Tells whether a text looks like an instruction to a model (002-03, 002-28).

Such a text is kept and flagged: people see it, and it is blocked where a model would read it. It is
looked at as a reader sees it: case, accents, scripts and what does not show do not count. Work
grows with the length of the text and with nothing else: each word looks a few words ahead.
"""

import re
from typing import Final

from broker.memory.lookalikes import skeleton
from broker.memory.phrases import BEGINNINGS, MARKS, NEARS, SQUEEZED

_WORD: Final = re.compile(r"[^\W_]++")
_APOSTROPHES: Final = str.maketrans("", "", "'\u2019\u02bc")
_ASCII_SPACED: Final = {
    code: None if chr(code) == "'" else " " for code in range(128) if not chr(code).isalnum()
}
"""What parts words of ASCII, as white space, and apostrophes gone."""


def looks_like_instruction(text: str) -> bool:
    """Tell whether a text looks like an instruction to a model."""
    plain = skeleton(text)
    return (
        MARKS.stand_in(plain.translate(SQUEEZED))
        or _holds_phrase(_words(plain))
        or (not plain.isascii() and any(near.fits(plain) for near in NEARS))
    )


def _words(plain: str) -> list[str]:
    if plain.isascii():
        return plain.translate(_ASCII_SPACED).split()
    return _WORD.findall(plain.translate(_APOSTROPHES))


def _holds_phrase(words: list[str]) -> bool:
    if BEGINNINGS.keys().isdisjoint(words):
        return False
    return any(
        ahead.fits(words, at)
        for at, word in enumerate(words)
        if word in BEGINNINGS
        for ahead in BEGINNINGS[word]
    )

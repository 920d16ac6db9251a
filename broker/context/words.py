"""How a query and a text are split into the words that are compared (004-94)."""

import unicodedata
from typing import Final

from providers.folding import folded

WORD_MIN: Final = 3
"""Code points; anything shorter is no word."""

STOP_WORDS: Final = frozenset(
    {
        "about",
        "agent",
        "and",
        "context",
        "decision",
        "for",
        "from",
        "into",
        "memory",
        "project",
        "session",
        "that",
        "the",
        "this",
        "what",
        "when",
        "which",
        "with",
    }
)
"""Words that fit too much to tell anything."""

_ASCII_MARKS: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_REMEMBERED_MAX: Final = 0x20000
"""Code points: about 20 MB, and more than living text has."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text.

    Case and composition are folded as searches fold them; split at whitespace and punctuation,
    where ASCII's symbols count as punctuation; of at least three code points; without the stop
    words.
    """
    distinct = " ".join(set(text.split()))  # most text repeats itself, and folding is dear
    found = folded(distinct).translate(_SPACED).split()
    return frozenset(word for word in found if len(word) >= WORD_MIN) - STOP_WORDS


class _Spaced(dict[int, int]):
    """Puts a space in the place of every mark. Learns as it goes: Python has no such table."""

    def __missing__(self, code: int) -> int:
        mark = chr(code)
        splits = mark in _ASCII_MARKS or unicodedata.category(mark).startswith("P")
        becomes = ord(" ") if splits else code
        if len(self) < _REMEMBERED_MAX:
            self[code] = becomes
        return becomes


_SPACED: Final = _Spaced()

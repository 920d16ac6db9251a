"""How a query and a text are split into the words that are compared (004-94)."""

import re
import sys
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

_ASCII_MARKS: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_LAST_PLANE_WITH_PUNCTUATION: Final = 0x1_FFFF


def _separators() -> str:
    """Return the inside of a character class: punctuation, and all marks of ASCII."""
    found = {
        chr(code)
        for code in range(0x80, min(_LAST_PLANE_WITH_PUNCTUATION, sys.maxunicode) + 1)
        if unicodedata.category(chr(code)).startswith("P")
    }
    return "".join(re.escape(mark) for mark in sorted(found | set(_ASCII_MARKS)))


_WORD: Final = re.compile(rf"[^\s{_separators()}]{{{WORD_MIN},}}")
_ASCII_WORD: Final = re.compile(rf"[^\s{re.escape(_ASCII_MARKS)}]{{{WORD_MIN},}}")


def words(text: str) -> frozenset[str]:
    """Return the words of a text.

    Case and composition are folded as searches fold them; split at whitespace and punctuation,
    where ASCII's symbols count as punctuation; of at least three code points; without the stop
    words.
    """
    plain = folded(text)
    pattern = _ASCII_WORD if plain.isascii() else _WORD
    return frozenset(pattern.findall(plain)) - STOP_WORDS

"""Cuts a plain text into what stands in it: words with what joins them, unspaced runs, emoji.

The classes are those of Unicode's word segmentation (UAX 29). Its rules are written out here with
quantifiers that never give back, since the library's own word boundary looks back over all flags
before it: 20,000 of them took 2.4 s. Every pattern here takes time in proportion to the text.
"""

import re
from enum import Enum, auto
from typing import Final

import regex

# Scripts that are written without spaces between words, and the sign that lengthens a kana vowel.
_UNSPACED: Final = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
)
_START: Final = rf"[[\p{{L}}\p{{N}}]--[{_UNSPACED}]]"
_WORD: Final = rf"{_START}[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]*+"
# What may stand between the words of one name: of a path, an address, an identifier, a number.
_JOIN: Final = r"(?::/{2,3}|:\\{1,2}|\\\\|::|__|[_.\-/\\:@'\u2019#+=&?%~])"
_FLAG: Final = r"\p{RI}{1,2}+"

_SEGMENT: Final = regex.compile(
    rf"""(?x)(?V1)
    {_WORD}(?>(?:{_JOIN}{_WORD})*)
    | [{_UNSPACED}][{_UNSPACED}\p{{M}}]*+
    | {_FLAG} | [\p{{Extended_Pictographic}}--\p{{ASCII}}]
    """
)
# The same for a text of ASCII alone: none of the other classes has a member there.
_ASCII_WORD: Final = r"[A-Za-z0-9]++"
_ASCII_SEGMENT: Final = re.compile(rf"{_ASCII_WORD}(?>(?:{_JOIN}{_ASCII_WORD})*)")
_RUN_BEGINS: Final = regex.compile(rf"(?V1)[{_UNSPACED}]")
_NAME_BEGINS: Final = regex.compile(r"(?V1)[\p{L}\p{N}]")
_PATH: Final = re.compile(r"[/\\:@#=&?~]++")
_WORDS: Final = regex.compile(rf"(?V1){_WORD}")
# Between a small letter and a capital, and before the last of several capitals.
_HUMP: Final = regex.compile(r"(?V1)(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})")
_NUMBERED: Final = regex.compile(r"(?V1)(\p{L}{2,}+)(\p{N}++)")
# The same for names of ASCII alone, which takes a third of the time.
_ASCII_WORDS: Final = re.compile(_ASCII_WORD)
_ASCII_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ASCII_NUMBERED: Final = re.compile(r"([A-Za-z]{2,}+)([0-9]++)")


class Sort(Enum):
    """What a segment is."""

    NAME = auto()
    """Words, and what joins them without a space: ``max_retry``, ``C:\\x``, ``a@b.example``."""
    RUN = auto()
    """Letters of a script that is written without spaces."""
    SIGN = auto()
    """An emoji or a flag."""


def segments(text: str) -> list[str]:
    """Return what stands in a plain text, in order; white space and other signs are left out."""
    found: list[str] = (_ASCII_SEGMENT if text.isascii() else _SEGMENT).findall(text)
    return found


def sort_of(segment: str) -> Sort:
    """Tell what a segment is: its first character decides."""
    if segment.isascii():
        return Sort.NAME
    if _RUN_BEGINS.match(segment):
        return Sort.RUN
    return Sort.NAME if _NAME_BEGINS.match(segment) else Sort.SIGN


def words(name: str) -> list[str]:
    """Return the words of a name, without what joins them."""
    found: list[str] = (_ASCII_WORDS if name.isascii() else _WORDS).findall(name)
    return found


def parts(name: str) -> list[str]:
    """Return what a path, an address or an assignment is made of."""
    found: list[str] = _PATH.split(name)
    return found


def humps(word: str) -> list[str]:
    """Return the words that a word in camel case is made of: itself where it is one."""
    found: list[str] = (_ASCII_HUMP if word.isascii() else _HUMP).split(word)
    return found


def numbered(word: str) -> tuple[str, str] | None:
    """Return letters and digits of a word such as ``node42``; ``None``: it is no such word."""
    found = (_ASCII_NUMBERED if word.isascii() else _NUMBERED).fullmatch(word)
    return None if found is None else (found[1], found[2])

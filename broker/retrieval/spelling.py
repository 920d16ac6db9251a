"""Takes out of a text what one writer puts in and another leaves out, before it is cut to words.

Compatibility forms are written out (NFKD: a full-width letter is the letter, a ligature its
letters), and accents, points and vowel signs that readers do without are dropped, as are characters
that nobody sees. What is left is composed again, so that kana and Hangul are one character each.
Marks that spell a word stay: those of Indic scripts, of Thai and its neighbours.

This is wider than ``providers.folding``, which searches compare by: recall ranks, so what it finds
too much stands further down, and what it misses is lost.
"""

import unicodedata

import regex

# Accents of Latin, Greek and Cyrillic; Hebrew points; Arabic vowel signs, hamza above and below,
# tatweel; what decorates symbols; variation selectors; format characters such as a soft hyphen, a
# joiner or a direction mark. A zero-width space is none of them: it parts words.
_DROPPED = regex.compile(
    r"(?V1)["
    r"\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f\u20d0-\u20ff"
    r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    r"\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
    r"\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef"
    r"[\p{Cf}--\u200b]"
    r"]++"
)


def plain(text: str) -> str:
    """Return a text without what spells nothing. Upper case stays: it parts ``camelCase``."""
    if text.isascii():
        return text
    bare = _DROPPED.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare)

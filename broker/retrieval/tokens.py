r"""The terms of a text: the same for what is kept and for what is asked, on every store.

A name is a term as a whole and in its words: ``max_retry_count``, ``C:\x\y``, ``camelCase``.
Words of ASCII letters are stemmed as English. A run of a script without spaces gives its characters
and every two of them that follow each other. An emoji is a term. Case, accents and compatibility
forms do not count. Nothing is an operator. Time grows with the text.
"""

from collections.abc import Iterator
from typing import Final

import Stemmer

from broker.retrieval.segments import Sort, humps, numbered, parts, segments, words
from broker.retrieval.spelling import plain
from broker.retrieval.words import STOP_WORDS
from providers.entries import TERM_LENGTH_MAX

_stem: Final = Stemmer.Stemmer("english").stemWord
_APOSTROPHES: Final = str.maketrans({"\u2019": "'"})
_ENDINGS: Final = frozenset({"s", "d", "ll", "re", "ve", "m"})
"""What an apostrophe may end a word with; the word is the same without it."""
_NEGATION: Final = "t"
_PAIR: Final = 2

TEXT_MAX: Final = 40_000
"""Code points that are cut to terms. No text is longer as it was given; one ligature of Arabic may
stand for 18 letters, though, and a text of them would keep a core busy for seconds."""


def terms(text: str) -> Iterator[str]:
    """Yield every term of a text, in order, with repetitions."""
    return _terms(text, asked=False)


def asked_terms(text: str) -> Iterator[str]:
    """Yield the terms of a query: without stop words, and of longer runs only the pairs."""
    return _terms(text, asked=True)


def _terms(text: str, *, asked: bool) -> Iterator[str]:
    for sort, segment in segments(plain(text)[:TEXT_MAX]):
        match sort:
            case Sort.NAME:
                yield from _name(segment.translate(_APOSTROPHES), asked=asked)
            case Sort.RUN:
                yield from _run(segment.casefold(), asked=asked)
            case Sort.SIGN:
                yield segment


def _run(run: str, *, asked: bool) -> Iterator[str]:
    if not asked or len(run) < _PAIR:
        yield from run
    for place in range(len(run) - 1):
        yield run[place : place + _PAIR]


def _name(name: str, *, asked: bool) -> Iterator[str]:
    found = words(name)
    if len(found) == 1:
        yield from _word(name, asked=asked)
        return
    last = found[-1]
    if name.endswith(f"'{last}"):
        if last.lower() in _ENDINGS:
            yield from _name(name[: -len(last) - 1], asked=asked)
            return
        if last.lower() == _NEGATION and len(found) == _PAIR:
            if not asked:
                yield _folded(name)
            return
    yield from _joined(name, asked=asked)


def _joined(name: str, *, asked: bool) -> Iterator[str]:
    """Yield a name as a whole, the parts of a path that are names themselves, and all words."""
    yield _folded(name)
    for part in parts(name):
        found = words(part)
        if len(found) > 1 and part != name:
            yield _folded(part)
        for word in found:
            yield from _word(word, asked=asked)


def _word(word: str, *, asked: bool) -> Iterator[str]:
    folded = _folded(word)
    if asked and folded in STOP_WORDS:
        return
    inner = humps(word) if word[1:].lower() != word[1:] else [word]
    if len(inner) > 1:
        yield folded
        for each in inner:
            yield from _word(each, asked=asked)
        return
    yield _stem(folded) if folded.isascii() and folded.isalpha() else folded
    pair = None if folded.isalpha() else numbered(word)
    if pair is not None:
        letters, digits = pair
        yield from _word(letters, asked=asked)
        yield _folded(digits)


def _folded(text: str) -> str:
    """Return the term of a word: no longer than one may be."""
    return text.casefold()[:TERM_LENGTH_MAX]

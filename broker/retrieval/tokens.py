r"""The terms of a text: the same for what is kept and for what is asked, on every store.

A name is a term as a whole and in its words: ``max_retry_count``, ``C:\x\y``, ``camelCase``.
Words of ASCII letters are brought to one form and stemmed as English. A run of a script without
spaces gives its characters and every two of them that follow each other. An emoji is a term. Case,
accents and compatibility forms do not count. Nothing is an operator. Time grows with the text, and
what is there again costs a look.
"""

from typing import Final

import Stemmer

from broker.retrieval.irregular import BASES
from broker.retrieval.segments import Sort, humps, numbered, parts, segments, sort_of, words
from broker.retrieval.spelling import plain
from broker.retrieval.words import STOP_WORDS
from providers.entries import TERM_LENGTH_MAX

# It remembers nothing: no word of one tenant stays in memory because of it.
_stem: Final = Stemmer.Stemmer("english", 0).stemWord
_APOSTROPHE: Final = "'"
_CURLY: Final = "\u2019"
_ENDINGS: Final = frozenset({"s", "d", "ll", "re", "ve", "m"})
"""What an apostrophe may end a word with; the word is the same without it."""
_NEGATION: Final = "t"
_PAIR: Final = 2

TEXT_MAX: Final = 40_000
"""Code points that are cut to terms. No text is longer as it was given; one ligature of Arabic may
stand for 18 letters, though, and a text of them would keep a core busy for seconds."""


def terms(text: str) -> list[str]:
    """Return every term of a text, in order, with repetitions."""
    return _terms(text, asked=False)


def asked_terms(text: str) -> list[str]:
    """Return the terms of a query: without stop words, and of longer runs only the pairs."""
    return _terms(text, asked=True)


def _terms(text: str, *, asked: bool) -> list[str]:
    found: list[str] = []
    known: dict[str, list[str]] = {}
    for segment in segments(plain(text)[:TEXT_MAX]):
        of_it = known.get(segment)
        if of_it is None:
            # Most are of small ASCII letters alone: asked here, since one more call would tell.
            small = segment.islower() and segment.isalpha() and segment.isascii()
            of_it = (_plain_word if small else _of_segment)(segment, asked=asked)
            known[segment] = of_it
        found += of_it
    return found


def _of_segment(segment: str, *, asked: bool) -> list[str]:
    if segment.istitle() and segment.isalpha() and segment.isascii():
        return _plain_word(segment.lower(), asked=asked)
    match sort_of(segment):
        case Sort.NAME:
            return _name(segment.replace(_CURLY, _APOSTROPHE), asked=asked)
        case Sort.RUN:
            return _run(segment.casefold(), asked=asked)
        case Sort.SIGN:
            return [segment]


def _run(run: str, *, asked: bool) -> list[str]:
    pairs = [run[place : place + _PAIR] for place in range(len(run) - 1)]
    return pairs if asked and pairs else [*run, *pairs]


def _name(name: str, *, asked: bool) -> list[str]:
    name, found = _without_endings(name)
    if len(found) == 1:
        return _word(name, asked=asked)
    if len(found) == _PAIR and name.lower().endswith(_APOSTROPHE + _NEGATION):
        return [] if asked else [_folded(name)]
    terms = [_folded(name)]
    for part in parts(name):
        inner = found if part == name else words(part)
        if len(inner) > 1 and part != name:
            terms.append(_folded(part))
        for word in inner:
            terms += _word(word, asked=asked)
    return terms


def _without_endings(name: str) -> tuple[str, list[str]]:
    """Return a name without possessive and other short endings, and its words."""
    found = words(name)
    end = len(name)
    while len(found) > 1 and found[-1].lower() in _ENDINGS:
        before = end - len(found[-1]) - 1
        if name[before] != _APOSTROPHE:
            break
        end = before
        found.pop()
    return name[:end], found


def _word(word: str, *, asked: bool) -> list[str]:
    if word.islower() and word.isalpha() and word.isascii():
        return _plain_word(word, asked=asked)
    if word.isdigit():
        return [_folded(word)]
    inner = [word] if word[1:].islower() else humps(word)
    if len(inner) > 1:
        return [_folded(word), *(term for each in inner for term in _part(each, asked=asked))]
    return _part(word, asked=asked)


def _part(word: str, *, asked: bool) -> list[str]:
    """Return the terms of a word without humps."""
    folded = _folded(word)
    if folded.isalpha():
        return _plain_word(folded, asked=asked) if folded.isascii() else [folded]
    pair = numbered(word)
    if pair is None:
        return [folded]
    letters, digits = pair
    return [folded, *_part(letters, asked=asked), _folded(digits)]


def _plain_word(word: str, *, asked: bool) -> list[str]:
    if asked and word in STOP_WORDS:
        return []
    word = word[:TERM_LENGTH_MAX]
    if word in BASES:
        word = BASES[word]
    return [_stem(word)]


def _folded(text: str) -> str:
    """Return the term of a word: no longer than one may be."""
    return text.casefold()[:TERM_LENGTH_MAX]

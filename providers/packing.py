"""The terms of a record as one text, in which one is found without taking the others apart.

A line for each term: the term, a tab, and how often it occurs. No term holds a control character
(``entries``), so that every character of one means itself.
"""

from collections.abc import Mapping, Sequence

_LINE = "\n"
_TAB = "\t"


def pack_terms(counts: Mapping[str, int]) -> str:
    """Return counts as text: the same for the same counts, whatever order they come in."""
    return _LINE + "".join(f"{term}{_TAB}{counts[term]}{_LINE}" for term in sorted(counts))


def counts_of(text: str, terms: Sequence[str]) -> tuple[int, ...]:
    """Return how often each of some terms occurs in packed ones, in their order.

    Raises:
        ValueError: The text holds no packed terms.
    """
    if not (text.startswith(_LINE) and text.endswith(_LINE)):
        raise ValueError("these are no packed terms")
    return tuple(_count(text, term) for term in terms)


def _count(text: str, term: str) -> int:
    if _LINE in term or _TAB in term:
        return 0
    sought = f"{_LINE}{term}{_TAB}"
    place = text.find(sought)
    if place < 0:
        return 0
    begin = place + len(sought)
    digits = text[begin : text.index(_LINE, begin)]
    if not (digits.isascii() and digits.isdigit() and int(digits)):
        raise ValueError("these are no packed terms")
    return int(digits)

"""The terms of a record as one text, in which one is found without taking the others apart.

A line for each term, in their order: the term, a tab, and how often it occurs. No term holds a
control character (``entries``), so a tab comes before whatever a term could go on with, and lines
are in order as terms are.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

_LINE = "\n"
_TAB = "\t"


def pack_terms(counts: Mapping[str, int]) -> str:
    """Return counts as text: the same for the same counts, whatever order they come in."""
    return "".join(f"{term}{_TAB}{counts[term]}{_LINE}" for term in sorted(counts))


def counts_of(text: str, terms: Sequence[str]) -> tuple[int, ...]:
    """Return how often each of some terms occurs in packed ones, in their order.

    Raises:
        ValueError: What is found there is no packed term.
    """
    lines = text.split(_LINE)
    if lines.pop():
        raise ValueError("packed terms have no end")
    return tuple(_count(lines, term) for term in terms)


def _count(lines: Sequence[str], term: str) -> int:
    sought = term + _TAB
    place = bisect_left(lines, sought)
    if _TAB in term or place == len(lines) or not lines[place].startswith(sought):
        return 0
    digits = lines[place][len(sought) :]
    if not (digits.isascii() and digits.isdigit() and int(digits)):
        raise ValueError("a packed term has no count")
    return int(digits)

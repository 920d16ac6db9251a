"""What says again what a better memory said already: left out, or put behind (002-26)."""

from enum import Enum, auto
from functools import cached_property
from typing import Final

from broker.retrieval.terms import distinct_terms, jaccard
from providers.folding import folded
from providers.model import Record

NEAR_DUPLICATE: Final = 0.8
"""From this share of common terms on, two texts say nearly the same."""

COMPARED_MAX: Final = 1_000
"""Code points at the beginning of a text whose terms are compared: 100 long ones would take
seconds."""


class Repetition(Enum):
    """How much of a text was told already."""

    NONE = auto()
    NEAR = auto()
    SAME = auto()
    """All of it, but for case, composition and white space."""


class Said:
    """What a memory says: title and content, and ``terms``, which it is compared by."""

    def __init__(self, record: Record) -> None:
        """Take what a memory says."""
        content = record.current.content
        self._text = f"{content.title or ''}\n{content.content}"
        self.terms = distinct_terms(self._text[:COMPARED_MAX])

    @cached_property
    def whole(self) -> str:
        """All of it, but for case, composition and white space: folded once, if it is asked for."""
        return " ".join(folded(self._text).split())

    def repeats(self, other: "Said") -> Repetition:
        """Tell how much of this the other says, too. Whole texts are folded where they are near."""
        if self.terms != other.terms and not _near(self.terms, other.terms):
            return Repetition.NONE
        return Repetition.SAME if self.whole == other.whole else Repetition.NEAR


class Told:
    """What was told so far."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._said: list[Said] = []

    def repetition(self, said: Said) -> Repetition:
        """Tell how much of a text was told already."""
        found = {said.repeats(other) for other in self._said}
        for each in (Repetition.SAME, Repetition.NEAR):
            if each in found:
                return each
        return Repetition.NONE

    def add(self, said: Said) -> None:
        """Take a text as told."""
        self._said.append(said)


def _near(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether most terms of two that differ are common: never where one has far fewer."""
    fewer, more = sorted((len(one), len(other)))
    return fewer / more >= NEAR_DUPLICATE and jaccard(one, other) >= NEAR_DUPLICATE

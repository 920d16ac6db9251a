"""What says again what a better memory said already: left out, or put behind (002-26)."""

from dataclasses import dataclass
from enum import Enum, auto
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


@dataclass(frozen=True, slots=True)
class Said:
    """What a memory says: title and content, and the terms it is compared by."""

    text: str
    terms: frozenset[str]

    @classmethod
    def by(cls, record: Record) -> "Said":
        """Return what a memory says."""
        content = record.current.content
        text = f"{content.title or ''}\n{content.content}"
        return cls(text, distinct_terms(text[:COMPARED_MAX]))

    def repeats(self, other: "Said") -> Repetition:
        """Tell how much of this the other says, too. Whole texts are folded where they are near."""
        if self.terms != other.terms and jaccard(self.terms, other.terms) < NEAR_DUPLICATE:
            return Repetition.NONE
        return Repetition.SAME if _folded(self) == _folded(other) else Repetition.NEAR


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


def _folded(said: Said) -> str:
    return " ".join(folded(said.text).split())

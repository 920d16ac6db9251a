"""What recall finds a head by: kept beside it, and no part of what it says."""

from collections.abc import Mapping
from dataclasses import dataclass

RECORD_TERMS_MAX = 2_048
TERM_LENGTH_MAX = 64
LENGTH_MAX = 2**31 - 1
DIMENSION_MAX = 1_536
MODEL_LENGTH_MAX = 128
FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class TermVector:
    """What a query of words finds a record by.

    ``counts`` gives each term and how often it occurs: at most 2,048 terms of 1-64 code points,
    none with a control character, each at least once. ``length`` is how many terms the whole text
    has, repetitions and those beyond the limit included: at least the sum of the counts, at most
    2^31 - 1.
    """

    counts: Mapping[str, int]
    length: int


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding: the model it is of (1-128 characters) and its numbers.

    ``packed`` holds 1-1,536 little-endian float32, of unit length together, so that a dot product
    is the cosine.
    """

    model: str
    packed: bytes

    @property
    def dimension(self) -> int:
        """How many numbers there are."""
        return len(self.packed) // FLOAT_BYTES


@dataclass(frozen=True, slots=True)
class RecallEntry:
    """What recall finds a head by. It is no part of any revision and leaves no history."""

    terms: TermVector
    vector: Vector | None = None

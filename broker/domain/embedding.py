"""What comes of embedding texts: their vectors, or why there are none."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from providers.entries import Vector

TEXTS_MAX: Final = 100
"""Texts of one ``embed``."""


class NoVectors(StrEnum):
    """Why texts have no vectors. Callers are told; nothing else fails because of it (6.6-15)."""

    OFF = "off"
    """None are configured."""
    NOT_LISTED = "not_listed"
    """Texts of this tenant go to no endpoint."""
    RESTRICTED = "restricted"
    """Restricted texts go to no endpoint."""
    BREAKER_OPEN = "breaker_open"
    """The endpoint failed, and is left alone for a while (000-41)."""
    FAILED = "failed"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector for each text, in their order; or none for any of them, and the reason.

    Raises:
        ValueError: there are both, or neither.
    """

    vectors: tuple[Vector, ...] = ()
    reason: NoVectors | None = None

    def __post_init__(self) -> None:
        """Refuse what would leave open which it is."""
        if bool(self.vectors) == (self.reason is not None):
            raise ValueError("either vectors or a reason why there are none")


def check_texts(texts: Sequence[str]) -> None:
    """Refuse what no embedding takes at once.

    Raises:
        ValueError: there are not 1-100 texts.
    """
    if not 1 <= len(texts) <= TEXTS_MAX:
        raise ValueError(f"1-{TEXTS_MAX} texts are embedded at once")

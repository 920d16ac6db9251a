"""How a planted bug says which laws must turn red."""

from collections.abc import Callable
from typing import TypeVar

from providers.conformance.reference import ReferenceMemoryProvider

Planted = TypeVar("Planted", bound=type[ReferenceMemoryProvider])

CAUGHT_BY: dict[type[ReferenceMemoryProvider], tuple[str, ...]] = {}
"""Every bug that was planted, and the names of the laws that catch it."""


def caught_by(*laws: str) -> Callable[[Planted], Planted]:
    """Plant a bug that these laws must catch."""

    def plant(provider: Planted) -> Planted:
        CAUGHT_BY[provider] = laws
        return provider

    return plant

"""The limits of contexts, and how a request narrows them (004-90, 004-91)."""

from dataclasses import dataclass, replace
from typing import Final

from broker.domain.context import CHARACTERS_PER_TOKEN, CompileContext
from broker.domain.context_errors import LimitNotNarrowingError

CANDIDATES_MAX: Final = 10_000
ITEMS_MAX: Final = 100
TOKENS_MAX: Final = 16_000

CANDIDATE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Content, in UTF-8, of all candidates of one context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLimits:
    """What one context may be made of.

    Attributes:
        candidates: Records that a context is chosen from, 1-10,000.
        items: Memories that may enter, 1-100.
        tokens: Tokens of 4 characters of the whole text, 1-16,000.

    Raises:
        ValueError: one of them is out of its range.
    """

    candidates: int = 1_000
    items: int = 20
    tokens: int = 4_000

    def __post_init__(self) -> None:
        """Refuse limits that no configuration may have."""
        for name, highest in (
            ("candidates", CANDIDATES_MAX),
            ("items", ITEMS_MAX),
            ("tokens", TOKENS_MAX),
        ):
            if not 1 <= getattr(self, name) <= highest:
                raise ValueError(f"{name} is 1-{highest}")

    @property
    def characters(self) -> int:
        """How many code points the whole text may have (004-93)."""
        return self.tokens * CHARACTERS_PER_TOKEN


def narrowed(
    limits: ContextLimits, request: CompileContext, *, prompt_cap: int | None
) -> ContextLimits:
    """Return the limits that hold for one request.

    ``prompt_cap`` is the run's own, in tokens; it bounds the configured limit, and ``None`` bounds
    nothing (004-91).

    Raises:
        LimitNotNarrowingError: a limit of the request is above the one that holds, or below 1. Not
            retryable.
    """
    ceiling = limits.tokens if prompt_cap is None else min(limits.tokens, prompt_cap)
    return replace(
        limits,
        items=_narrower("max_items", request.max_items, limits.items),
        tokens=_narrower("max_tokens", request.max_tokens, ceiling),
    )


def _narrower(field: str, given: int | None, limit: int) -> int:
    if given is None:
        return limit
    if not 1 <= given <= limit:
        raise LimitNotNarrowingError(field, limit)
    return given

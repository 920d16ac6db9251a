"""Which memories recall looks at and gives back: clauses Q-1 to Q-3, for whoever judges heads."""

from datetime import datetime
from typing import Final

from providers.folding import folded
from providers.model import (
    Content,
    Kind,
    MemoryFacet,
    OriginTier,
    Record,
    Revision,
    Sensitivity,
    State,
    Trust,
)
from providers.patterns import fits
from providers.recall import Eligible, Superseded

TRUSTED: Final = (Trust.PENDING, Trust.APPROVED)
SENSITIVITIES: Final = tuple(Sensitivity)
"""Lowest first."""
TIERS: Final = tuple(OriginTier)
"""Lowest first."""
UNKNOWN_SENSITIVITY: Final = Sensitivity.INTERNAL
UNKNOWN_TIER: Final = OriginTier.EXTERNAL
_NOTHING: Final = MemoryFacet()
_IN_USE: Final = (State.ACTIVE,)
_IN_USE_ONCE: Final = (State.ACTIVE, State.SUPERSEDED)


def states_of(superseded: Superseded) -> tuple[State, ...]:
    """Return the states of the memories that recall looks through."""
    return _IN_USE if superseded is Superseded.NONE else _IN_USE_ONCE


def is_counted(now: Revision, eligible: Eligible) -> bool:
    """Tell whether a head of the project is among those that recall looks through (Q-3)."""
    return (
        now.kind is Kind.MEMORY
        and now.agent_id == eligible.agent_id
        and now.trust in TRUSTED
        and now.state in states_of(eligible.superseded)
    )


def is_eligible(record: Record, eligible: Eligible) -> bool:
    """Tell whether a head of the project may be given back (Q-1, Q-2)."""
    now = record.current
    facet = now.facet or _NOTHING
    return (
        is_counted(now, eligible)
        and record.create_time <= eligible.at
        and _is_valid(facet, eligible)
        and _passes(facet, eligible)
        and now.content.importance >= eligible.importance_min
        and _has_tags(now.content, eligible)
    )


def _is_valid(facet: MemoryFacet, eligible: Eligible) -> bool:
    ended = None if eligible.superseded is Superseded.ALL else facet.invalidate_time
    return _is_before(eligible.at, facet.expire_time) and _is_before(eligible.at, ended)


def _is_before(at: datetime, end: datetime | None) -> bool:
    return end is None or at < end


def _passes(facet: MemoryFacet, eligible: Eligible) -> bool:
    sensitivity = facet.sensitivity or UNKNOWN_SENSITIVITY
    tier = facet.origin_tier or UNKNOWN_TIER
    return (
        (not eligible.namespaces or (facet.namespace or "") in eligible.namespaces)
        and (not eligible.memory_kinds or facet.memory_kind in eligible.memory_kinds)
        and eligible.subject in (None, facet.subject)
        and eligible.epoch in (None, facet.epoch)
        and SENSITIVITIES.index(sensitivity) <= SENSITIVITIES.index(eligible.ceiling)
        and TIERS.index(tier) >= TIERS.index(eligible.lowest_tier)
    )


def _has_tags(content: Content, eligible: Eligible) -> bool:
    if not (eligible.tags or eligible.patterns):
        return True
    tags = {*map(folded, content.tags)}
    patterns = [*map(folded, eligible.patterns)]
    return {*map(folded, eligible.tags)} <= tags and (
        not patterns or any(fits(pattern, tag) for pattern in patterns for tag in tags)
    )

"""What a memory provider can do, and the sets earlier catalogs knew (004-24, 004-25)."""

from enum import StrEnum


class Capability(StrEnum):
    """One ability of a provider, as catalogs and run selections write it."""

    READ = "memory.records.read"
    WRITE = "memory.records.write"
    SEARCH = "memory.records.search"
    REVISIONS = "memory.records.revisions"
    PROMOTE = "memory.proposals.promote"
    COMPOSE = "memory.context.compose"
    DELIVERY = "memory.accepted-effects.delivery"
    RECALL = "memory.records.recall"
    VECTORS = "memory.records.recall.vectors"


ORIGINAL_SIX = frozenset(Capability) - {
    Capability.DELIVERY,
    Capability.RECALL,
    Capability.VECTORS,
}
"""The set of the first catalogs.

A selection that advertises and requires exactly it stays valid for ever.
"""

EARLIER_SETS: tuple[frozenset[Capability], ...] = (
    ORIGINAL_SIX,
    ORIGINAL_SIX | {Capability.DELIVERY},
)
"""Every set that a later catalog extended, oldest first."""

"""What a memory is taken for where nobody said: kind and delivery (000-04 to 000-06).

Trust and tier follow from the source, elsewhere. Subject and expiry are never guessed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from providers.model import DeliveryPolicy, MemoryFacet, MemoryKind, OriginTier, SourceType

HOT: Final = "hot"
"""The type of what is always told, whatever else was said (000-06)."""

_GENERAL: Final = "general"
_TALK: Final = frozenset({SourceType.CONVERSATION, SourceType.CHAT})
_KINDS: Final[Mapping[str, MemoryKind]] = {
    HOT: MemoryKind.STANDING,
    "preference": MemoryKind.PROFILE,
    "preferences": MemoryKind.PROFILE,
    "finding": MemoryKind.FACT,
    "conversation": MemoryKind.NOTE,
    **{kind.value: kind for kind in MemoryKind},
}


def stamped(record_type: str, facet: MemoryFacet | None) -> MemoryFacet:
    """Return the facet of a new memory with what its writer left blank; what was said stays."""
    given = facet or MemoryFacet(origin_tier=OriginTier.EXTERNAL)
    kind = given.memory_kind or _kind(record_type, given.source_type)
    return replace(given, memory_kind=kind, delivery_policy=_delivery(record_type, kind, given))


def _kind(record_type: str, source_type: SourceType | None) -> MemoryKind:
    """A record's type stands for the domain of the map, in any case of letters (000-05)."""
    name = record_type.casefold()
    if name == _GENERAL:
        return MemoryKind.NOTE if source_type in _TALK else MemoryKind.REFERENCE
    return _KINDS.get(name, MemoryKind.LEGACY)


def _delivery(record_type: str, kind: MemoryKind, given: MemoryFacet) -> DeliveryPolicy:
    if record_type.casefold() == HOT:
        return DeliveryPolicy.ALWAYS
    if given.delivery_policy is not None:
        return given.delivery_policy
    return DeliveryPolicy.ALWAYS if kind is MemoryKind.STANDING else DeliveryPolicy.RETRIEVED

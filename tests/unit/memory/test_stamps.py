"""What a new memory is taken for where nobody said."""

import pytest

from broker.memory.stamps import stamped
from providers.model import (
    BeliefType,
    DeliveryPolicy,
    MemoryFacet,
    MemoryKind,
    OriginTier,
    SourceType,
)

ALWAYS, RETRIEVED = DeliveryPolicy.ALWAYS, DeliveryPolicy.RETRIEVED

ROWS = (
    ("hot", None, MemoryKind.STANDING, ALWAYS),
    ("HOT", SourceType.CHAT, MemoryKind.STANDING, ALWAYS),
    ("preferences", None, MemoryKind.PROFILE, RETRIEVED),
    ("preference", None, MemoryKind.PROFILE, RETRIEVED),
    ("general", SourceType.CONVERSATION, MemoryKind.NOTE, RETRIEVED),
    ("general", SourceType.CHAT, MemoryKind.NOTE, RETRIEVED),
    ("general", SourceType.WEB, MemoryKind.REFERENCE, RETRIEVED),
    ("general", None, MemoryKind.REFERENCE, RETRIEVED),
    ("finding", None, MemoryKind.FACT, RETRIEVED),
    ("fact", SourceType.EXTRACTED, MemoryKind.FACT, RETRIEVED),
    ("conversation", None, MemoryKind.NOTE, RETRIEVED),
    ("note", None, MemoryKind.NOTE, RETRIEVED),
    ("episode", None, MemoryKind.EPISODE, RETRIEVED),
    ("reference", None, MemoryKind.REFERENCE, RETRIEVED),
    ("decision", None, MemoryKind.DECISION, RETRIEVED),
    ("profile", None, MemoryKind.PROFILE, RETRIEVED),
    ("standing", None, MemoryKind.STANDING, ALWAYS),
    ("core_context", None, MemoryKind.LEGACY, RETRIEVED),
    ("anything else", SourceType.OPERATOR, MemoryKind.LEGACY, RETRIEVED),
)


@pytest.mark.parametrize(("record_type", "source", "kind", "policy"), ROWS)
def test_what_is_left_blank(
    record_type: str, source: SourceType | None, kind: MemoryKind, policy: DeliveryPolicy
) -> None:
    """000-04, 000-05: kind from type and source; always for what stands, else retrieved."""
    made = stamped(record_type, MemoryFacet(source_type=source))
    assert (made.memory_kind, made.delivery_policy) == (kind, policy)


def test_what_was_said_stays() -> None:
    """000-04: explicit values win, subject and expiry are not guessed, nothing else changes."""
    given = MemoryFacet(
        memory_kind=MemoryKind.EPISODE,
        delivery_policy=DeliveryPolicy.ON_DEMAND,
        namespace="n",
        belief_type=BeliefType.FACT,
        origin_tier=OriginTier.AGENT,
    )
    assert stamped("fact", given) == given
    standing = stamped("fact", MemoryFacet(memory_kind=MemoryKind.STANDING))
    assert standing.delivery_policy is ALWAYS
    assert (standing.subject, standing.expire_time) == (None, None)


def test_hot_is_always_told() -> None:
    """000-06: whatever the caller said."""
    made = stamped("hot", MemoryFacet(delivery_policy=DeliveryPolicy.ON_DEMAND))
    assert made.delivery_policy is ALWAYS


def test_without_a_facet() -> None:
    """000-08: where nothing was said the origin counts as external."""
    made = stamped("fact", None)
    assert made == MemoryFacet(
        memory_kind=MemoryKind.FACT, delivery_policy=RETRIEVED, origin_tier=OriginTier.EXTERNAL
    )

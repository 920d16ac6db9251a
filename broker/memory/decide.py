"""What becomes of a memory that is to be remembered: created, skipped, or in another's place.

The order of the steps and their boundaries are those of the requirements' §6.3. Scores of different
signals are never compared: of two texts with vectors of one model the cosine decides alone, and
only of others do the words.
"""

from dataclasses import dataclass
from typing import Final

from broker.domain.memories import Action, Signal
from providers.model import MemoryKind, Record, SourceType

DUPLICATE_COSINE: Final = 0.95
"""From here on a memory is a duplicate by its vector (001-04)."""

DUPLICATE_JACCARD: Final = 0.85
"""From here on a memory is a duplicate by its words (000-16)."""

REPLACED_JACCARD: Final = 0.60
"""From here on, and below a duplicate, a harvested fact takes another's place (000-17)."""

SKIP_ONLY: Final = frozenset({SourceType.OPERATOR, SourceType.MANUAL, SourceType.ORCHESTRATION})
"""Sources whose words are not compared: they may be skipped, and replace nothing but a belief."""

HARVESTED: Final = frozenset({SourceType.EXTRACTED, SourceType.HARVEST})


@dataclass(frozen=True, slots=True)
class Scored:
    """A live memory of the same scope, and how like the new one it is."""

    record: Record
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is there that speaks against a new memory, all of it live and of the same scope.

    Attributes:
        same: The memory with the same normalised text.
        belief: The memory of the same subject and belief type.
        nearest: The one nearest by vector; ``None`` also where the new one has no vector, or no
            other has one of that model.
        likest: Of those that cannot be compared by vector, the one with the largest share of common
            words.
    """

    same: Record | None = None
    belief: Record | None = None
    nearest: Scored | None = None
    likest: Scored | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be done, by which signal and score, and to which record that was there."""

    action: Action
    signal: Signal | None = None
    score: float | None = None
    target: Record | None = None
    reinforces: bool = False


CREATE: Final = Verdict(action=Action.CREATED)


def decide(
    found: Found,
    *,
    source_type: SourceType | None,
    memory_kind: MemoryKind | None,
    duplicate_cosine: float = DUPLICATE_COSINE,
) -> Verdict:
    """Decide about one memory. That no tombstone stands against it was seen before.

    Boundaries belong to the stronger outcome: 0.95, 0.85 and 0.60 themselves skip, skip, replace.
    Nothing is ever merged: between 0.75 and 0.95 a memory is created (001-06).
    """
    if found.same is not None:
        return _skip(found.same, Signal.EXACT, None)
    if found.belief is not None:
        return Verdict(action=Action.SUPERSEDED, signal=Signal.BELIEF, target=found.belief)
    nearest = found.nearest
    if nearest is not None and nearest.score >= duplicate_cosine:
        return _skip(nearest.record, Signal.COSINE, nearest.score)
    if source_type in SKIP_ONLY:
        return CREATE
    return _by_words(found.likest, memory_kind is MemoryKind.FACT and source_type in HARVESTED)


def _by_words(likest: Scored | None, may_replace: bool) -> Verdict:
    if likest is None:
        return CREATE
    if likest.score >= DUPLICATE_JACCARD:
        return _skip(likest.record, Signal.JACCARD, likest.score)
    if likest.score >= REPLACED_JACCARD and may_replace:
        return Verdict(
            action=Action.SUPERSEDED,
            signal=Signal.JACCARD,
            score=likest.score,
            target=likest.record,
        )
    return CREATE


def _skip(record: Record, signal: Signal, score: float | None) -> Verdict:
    """Skip; a belief that is told again in the same words counts one more telling (002-07)."""
    facet = record.current.facet
    believed = facet is not None and facet.belief_type is not None
    return Verdict(
        action=Action.SKIPPED,
        signal=signal,
        score=score,
        target=record,
        reinforces=believed and signal is Signal.EXACT,
    )

"""What is asked of a memory that states a belief, and what follows where nothing was stated."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from broker.domain.errors import Violation
from broker.domain.requests import FacetInput
from providers.model import BeliefType, Content, MemoryFacet, Portability, SourceType

STATEMENT_MAX: Final = 8_192
"""Code points of a belief's text (002-04)."""

EXPLICIT_CONFIDENCE: Final = 0.9
INFERRED_CONFIDENCE_MAX: Final = 0.55

_INFERRED: Final = frozenset(
    {
        SourceType.EXTRACTED,
        SourceType.HARVEST,
        SourceType.CONVERSATION,
        SourceType.CHAT,
        SourceType.BACKGROUND_REPORT,
    }
)
"""Sources that nobody told on purpose; all others are explicit (002-09)."""

_CONTEXTUAL: Final = frozenset({BeliefType.FACT, BeliefType.RELATIONSHIP})
_BY_TRAVEL: Final = (Portability.LOCAL, Portability.CONTEXTUAL, Portability.PORTABLE)


def belief_faults(content: Content, given: FacetInput) -> Iterable[Violation]:
    """Tell what is wrong with a belief; nothing is where no belief is stated."""
    belief_type = given.belief_type
    if not isinstance(belief_type, BeliefType):
        return
    if len(content.content) > STATEMENT_MAX:
        yield Violation("content", f"must be at most {STATEMENT_MAX} code points of a belief")
    asked = given.portability
    ceiling = _ceiling(belief_type)
    if isinstance(asked, Portability) and _BY_TRAVEL.index(asked) > _BY_TRAVEL.index(ceiling):
        rule = f"must be at most {ceiling.name} for this belief type"
        yield Violation("facet.portability", rule)


def believed(facet: MemoryFacet) -> MemoryFacet:
    """State confidence and portability of a belief where they were not (002-09, 002-10).

    What was inferred is never surer than 0.55.
    """
    if facet.belief_type is None:
        return facet
    return replace(
        facet,
        confidence=_confidence(facet),
        portability=facet.portability or _ceiling(facet.belief_type),
    )


def _confidence(facet: MemoryFacet) -> float:
    if facet.source_type in _INFERRED:
        stated = facet.confidence
        return INFERRED_CONFIDENCE_MAX if stated is None else min(stated, INFERRED_CONFIDENCE_MAX)
    return EXPLICIT_CONFIDENCE if facet.confidence is None else facet.confidence


def _ceiling(belief_type: BeliefType) -> Portability:
    return Portability.CONTEXTUAL if belief_type in _CONTEXTUAL else Portability.PORTABLE

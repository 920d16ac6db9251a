"""What is asked of a belief, and what follows where nothing was stated."""

from dataclasses import replace
from typing import Final

import pytest

from broker.domain.fields import checked_content
from broker.domain.requests import FacetInput
from broker.memory.beliefs import STATEMENT_MAX, belief_faults, believed
from providers.model import BeliefType, Content, MemoryFacet, Portability, SourceType
from tests.unit.services.world import CONTENT

LOCAL, CONTEXTUAL, PORTABLE = Portability.LOCAL, Portability.CONTEXTUAL, Portability.PORTABLE
STAYS: Final = (BeliefType.FACT, BeliefType.RELATIONSHIP)
TRAVELS: Final = tuple(each for each in BeliefType if each not in STAYS)
INFERRED: Final = (
    SourceType.EXTRACTED,
    SourceType.HARVEST,
    SourceType.CONVERSATION,
    SourceType.CHAT,
    SourceType.BACKGROUND_REPORT,
)
EXPLICIT: Final = (None, *(each for each in SourceType if each not in INFERRED))


def statement(length: int) -> Content:
    return checked_content([], replace(CONTENT, content="語" * length), importance_default=0.5)


def faults(length: int = 1, **given: object) -> list[str]:
    facet = FacetInput(**given)  # type: ignore[arg-type]
    return [each.field for each in belief_faults(statement(length), facet)]


@pytest.mark.parametrize("belief_type", list(BeliefType))
def test_a_statement_has_a_limit(belief_type: BeliefType) -> None:
    """002-04: 8,192 code points of a belief; other memories are longer."""
    assert STATEMENT_MAX == 8_192
    assert faults(8_192, belief_type=belief_type) == []
    assert faults(8_193, belief_type=belief_type) == ["content"]
    assert faults(8_193) == []


@pytest.mark.parametrize("source", INFERRED)
@pytest.mark.parametrize(
    ("stated", "kept"), [(None, 0.55), (0.54, 0.54), (0.55, 0.55), (0.56, 0.55), (1.0, 0.55)]
)
def test_what_was_inferred_is_never_sure(
    stated: float | None, kept: float, source: SourceType
) -> None:
    """002-09: at most 0.55, whatever is stated."""
    facet = MemoryFacet(belief_type=BeliefType.FACT, source_type=source, confidence=stated)
    assert believed(facet).confidence == kept


@pytest.mark.parametrize("source", EXPLICIT)
@pytest.mark.parametrize(("stated", "kept"), [(None, 0.9), (0.0, 0.0), (1.0, 1.0)])
def test_what_was_told_is_as_sure_as_it_says(
    stated: float | None, kept: float, source: SourceType | None
) -> None:
    """002-09: 0.9 where nothing is stated."""
    facet = MemoryFacet(belief_type=BeliefType.FACT, source_type=source, confidence=stated)
    assert believed(facet).confidence == kept


@pytest.mark.parametrize("belief_type", TRAVELS)
def test_preferences_may_travel(belief_type: BeliefType) -> None:
    """002-10: portable where nothing is stated; anything lower may be."""
    assert believed(MemoryFacet(belief_type=belief_type)).portability is PORTABLE
    for asked in Portability:
        assert faults(belief_type=belief_type, portability=asked) == []
        facet = MemoryFacet(belief_type=belief_type, portability=asked)
        assert believed(facet).portability is asked


@pytest.mark.parametrize("belief_type", STAYS)
def test_facts_stay_in_their_context(belief_type: BeliefType) -> None:
    """002-10: contextual where nothing is stated; it may be lowered and not raised."""
    assert believed(MemoryFacet(belief_type=belief_type)).portability is CONTEXTUAL
    for asked in (LOCAL, CONTEXTUAL):
        assert faults(belief_type=belief_type, portability=asked) == []
    assert faults(belief_type=belief_type, portability=PORTABLE) == ["facet.portability"]


def test_what_states_no_belief_is_as_it_was() -> None:
    """002-09, 002-10: nothing is made up for other memories."""
    facet = MemoryFacet(subject="tea", source_type=SourceType.HARVEST, confidence=0.7)
    assert believed(facet) == facet
    assert faults(portability=PORTABLE) == []

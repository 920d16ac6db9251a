"""The steps of ``decide``, both sides of every boundary."""

import math

import pytest

from broker.domain.memories import Action, Signal
from broker.memory.decide import Found, Scored, Verdict, decide
from providers.model import BeliefType, MemoryFacet, MemoryKind, Record, SourceType
from tests.unit.domain.test_records import head

PLAIN = head()
BELIEF = head(facet=MemoryFacet(belief_type=BeliefType.FACT, subject="me"))
FACT, NOTE = MemoryKind.FACT, MemoryKind.NOTE
CREATED = Verdict(action=Action.CREATED)


def below(number: float) -> float:
    """Return the next smaller number."""
    return math.nextafter(number, 0.0)


def by_words(
    score: float, source: SourceType | None, kind: MemoryKind | None = FACT
) -> tuple[Action, float | None]:
    found = Found(likest=Scored(PLAIN, score))
    verdict = decide(found, source_type=source, memory_kind=kind)
    return verdict.action, verdict.score


def by_vector(score: float, **options: float) -> Verdict:
    found = Found(nearest=Scored(PLAIN, score))
    return decide(found, source_type=SourceType.AGENT, memory_kind=FACT, **options)


def test_nothing_like_it_is_created() -> None:
    """001-02: without a vector and without anything like it a memory is new."""
    assert decide(Found(), source_type=None, memory_kind=None) == CREATED


@pytest.mark.parametrize("source", list(SourceType))
def test_the_same_text_is_skipped_whoever_tells_it(source: SourceType) -> None:
    """Step 1 of §6.3 goes before all others; no score decides it."""
    found = Found(
        same=PLAIN, belief=BELIEF, nearest=Scored(BELIEF, 1.0), likest=Scored(BELIEF, 1.0)
    )
    verdict = decide(found, source_type=source, memory_kind=FACT)
    assert verdict == Verdict(action=Action.SKIPPED, signal=Signal.EXACT, target=PLAIN)


@pytest.mark.parametrize(("held", "told"), [(PLAIN, False), (BELIEF, True)])
def test_only_a_belief_counts_one_more_telling(held: Record, *, told: bool) -> None:
    """002-07: the same statement reinforces a belief, and no other memory."""
    verdict = decide(Found(same=held), source_type=SourceType.AGENT, memory_kind=FACT)
    assert verdict.reinforces is told


@pytest.mark.parametrize("source", list(SourceType))
def test_another_statement_takes_the_belief_s_place(source: SourceType) -> None:
    """002-05, 002-08: one live belief of a subject and type, whatever the likeness."""
    found = Found(belief=BELIEF, nearest=Scored(PLAIN, 1.0), likest=Scored(PLAIN, 1.0))
    verdict = decide(found, source_type=source, memory_kind=NOTE)
    assert verdict == Verdict(action=Action.SUPERSEDED, signal=Signal.BELIEF, target=BELIEF)


@pytest.mark.parametrize(
    ("score", "action"),
    [
        (1.0, Action.SKIPPED),
        (0.95, Action.SKIPPED),
        (below(0.95), Action.CREATED),
        (0.75, Action.CREATED),
        (below(0.75), Action.CREATED),
        (-1.0, Action.CREATED),
    ],
)
def test_the_cosine_skips_from_095_and_merges_nothing(score: float, action: Action) -> None:
    """001-04, 001-06: 0.95 belongs to the skip; from 0.75 on a merge would begin, and is absent."""
    verdict = by_vector(score)
    assert verdict.action is action
    assert verdict.signal is (Signal.COSINE if action is Action.SKIPPED else None)
    assert verdict.score == (score if action is Action.SKIPPED else None)


@pytest.mark.parametrize(("score", "action"), [(0.8, Action.SKIPPED), (below(0.8), Action.CREATED)])
def test_a_threshold_of_the_request_holds(score: float, action: Action) -> None:
    """001-04: the boundary of duplicates may be given."""
    assert by_vector(score, duplicate_cosine=0.8).action is action


HARVESTED = [SourceType.EXTRACTED, SourceType.HARVEST]
TOLD = [SourceType.AGENT, SourceType.CONVERSATION, SourceType.WEB, None]
UNCOMPARED = [SourceType.OPERATOR, SourceType.MANUAL, SourceType.ORCHESTRATION]


@pytest.mark.parametrize("source", HARVESTED)
@pytest.mark.parametrize(
    ("score", "action"),
    [
        (1.0, Action.SKIPPED),
        (0.85, Action.SKIPPED),
        (below(0.85), Action.SUPERSEDED),
        (0.60, Action.SUPERSEDED),
        (below(0.60), Action.CREATED),
        (0.0, Action.CREATED),
    ],
)
def test_words_of_a_harvested_fact(score: float, action: Action, source: SourceType) -> None:
    """000-16, 000-17: from 0.85 on skipped, from 0.60 on in the other's place."""
    expected = None if action is Action.CREATED else score
    assert by_words(score, source) == (action, expected)


@pytest.mark.parametrize("source", TOLD)
@pytest.mark.parametrize(
    ("score", "action"),
    [(0.85, Action.SKIPPED), (below(0.85), Action.CREATED), (0.60, Action.CREATED)],
)
def test_words_of_other_sources_replace_nothing(
    score: float, action: Action, source: SourceType | None
) -> None:
    """§6.3 step 4: only extracted and harvested facts take a place."""
    assert by_words(score, source)[0] is action


@pytest.mark.parametrize("kind", [each for each in MemoryKind if each is not FACT] + [None])
def test_only_facts_replace(kind: MemoryKind | None) -> None:
    """000-17: a note that is like another note stands beside it."""
    assert by_words(0.7, SourceType.HARVEST, kind) == (Action.CREATED, None)


@pytest.mark.parametrize("source", UNCOMPARED)
def test_words_of_operators_and_orchestrations_are_not_compared(source: SourceType) -> None:
    """§6.3 step 5: manual and orchestration skip by text and vector only."""
    assert by_words(1.0, source) == (Action.CREATED, None)
    found = Found(nearest=Scored(PLAIN, 0.95))
    assert decide(found, source_type=source, memory_kind=FACT).action is Action.SKIPPED


def test_a_vector_goes_before_words() -> None:
    """R7: signals are never compared; a duplicate by vector is one whatever the words say."""
    found = Found(nearest=Scored(PLAIN, 0.95), likest=Scored(BELIEF, 0.99))
    verdict = decide(found, source_type=SourceType.HARVEST, memory_kind=FACT)
    assert (verdict.signal, verdict.target) == (Signal.COSINE, PLAIN)

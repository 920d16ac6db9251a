"""What a memory is compared with, how many come back, and who stands behind it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from broker.domain.embedding import NoVectors
from broker.domain.facets import OPERATOR_SOURCES
from broker.domain.memories import (
    Action,
    DedupInput,
    DedupMode,
    FilterInput,
    RecallByTags,
    Remember,
    Signal,
)
from providers.model import BeliefType, Kind, MemoryKind, OriginTier, SourceType, State, Trust
from tests.unit.services.memories import Desk, memory
from tests.unit.services.test_memories import BELIEF, FACT, TEA, only, packed
from tests.unit.services.world import CONTENT, SCOPE

EVENING: Final = "Mira drinks green tea every evening before sleep"
SENCHA: Final = "One cup of sencha at dawn"
DECLARED: Final = DedupInput(mode=DedupMode.DECLARED)


@pytest.mark.parametrize("source", [None, *SourceType])
async def test_who_stands_behind_a_new_memory(source: SourceType | None) -> None:
    """000-07, R4, R5: approved only by an operator; the tier is another axis of its own."""
    desk = Desk()
    desk.world.may_write = True
    record = (await desk.remember(TEA, source_type=source)).remembered[0].record.current
    assert record.facet is not None
    approved = source in OPERATOR_SOURCES
    assert record.trust is (Trust.APPROVED if approved else Trust.PENDING)
    assert (record.facet.origin_tier is OriginTier.OPERATOR) is approved


async def put_aside(desk: Desk, how: str) -> None:
    """Let the only memory be out of use."""
    now = desk.world.now()
    if how == "expired":
        desk.world.now = lambda: now + timedelta(days=1)  # type: ignore[method-assign]
    elif how == "superseded":
        await desk.remember("Mira prefers black coffee", **BELIEF)
    else:
        await desk.forget("id-0001")


@pytest.mark.parametrize("how", ["expired", "superseded", "forgotten"])
async def test_the_nearest_counts_only_while_it_is_in_use(how: str) -> None:
    """001-03, 001-09: of vectors that are the same one out of use is no duplicate."""
    desk = Desk()
    desk.model.reason = None
    near = packed(1.0, 0.0)
    desk.model.vectors = {TEA: near, SENCHA: near, "Mira prefers black coffee": packed(0.0, 1.0)}
    await desk.remember(TEA, expire_days=1, **BELIEF)
    assert only(await desk.remember(SENCHA))[:2] == (Action.SKIPPED, Signal.COSINE)
    await put_aside(desk, how)
    assert only(await desk.remember(SENCHA))[0] is Action.CREATED


async def test_the_nearest_of_another_place_does_not_count() -> None:
    """001-03: neither of another namespace, nor without a vector of its own."""
    desk = Desk()
    desk.model.reason = None
    desk.model.vectors = dict.fromkeys((TEA, SENCHA), packed(1.0, 0.0))
    await desk.remember(TEA, namespace="home")
    assert only(await desk.remember(SENCHA, namespace="work"))[0] is Action.CREATED
    assert only(await desk.remember(SENCHA, namespace="home"))[:2] == (
        Action.SKIPPED,
        Signal.COSINE,
    )


async def test_the_nearest_decides_among_several() -> None:
    """001-03: the most like it is the duplicate that is told, whatever came last."""
    desk = Desk()
    desk.model.reason = None
    desk.model.vectors = {
        TEA: packed(1.0, 0.0),
        EVENING: packed(0.97, 0.243105),
        SENCHA: packed(0.99, 0.141067),
    }
    for text in (TEA, EVENING):
        await desk.remember(text, dedup=DECLARED)
    (one,) = (await desk.remember(SENCHA)).remembered
    assert one.record.current.content.content == EVENING
    assert one.score == pytest.approx(0.9946, abs=1e-4)


async def test_only_private_memories_give_way() -> None:
    """000-27: a fact of another agent is neither a duplicate nor superseded."""
    desk = Desk()
    await desk.remember(TEA, **FACT)
    for number, text in enumerate((TEA, EVENING)):
        request = Remember(
            scope=replace(SCOPE, agent_id=f"other-{number}"),
            idempotency_key=f"other-{number}",
            memories=(memory(text, **FACT),),
            dedup=DedupInput(),
            batch=False,
        )
        done = await desk.memories.remember(desk.world.call(), request)
        assert only(done)[0] is Action.CREATED
    assert len(desk.live()) == 3


async def test_nobody_judges_what_is_newer() -> None:
    """000-21: what contradicts stands beside it; a model is asked for vectors and nothing else."""
    desk = Desk()
    desk.model.reason = None
    old, new = "The office is in Berlin in 2024", "The office has moved to Rome in 2026"
    desk.model.vectors = {old: packed(1.0, 0.0), new: packed(0.9, 0.435890)}
    begin = desk.world.now()
    await desk.remember(old, memory_kind=MemoryKind.FACT)
    desk.world.now = lambda: begin + timedelta(days=700)  # type: ignore[method-assign]
    assert only(await desk.remember(new, memory_kind=MemoryKind.FACT))[0] is Action.CREATED
    assert desk.live() == sorted([old, new])
    assert desk.model.asked == [old, new]


async def test_a_memory_of_one_run_is_recalled_in_another() -> None:
    """003-07, 003-09: the run gives access; run and source say where it came from."""
    desk = Desk()
    elsewhere = Remember(
        scope=replace(SCOPE, run_id="run-elsewhere"),
        idempotency_key="elsewhere",
        memories=(memory(TEA, source="session-1"),),
        dedup=DedupInput(),
        batch=False,
    )
    await desk.memories.remember(desk.world.call(), elsewhere)
    (found,) = (await desk.recall("tea")).results
    assert found.record.current.source_run_id == "run-elsewhere"
    assert only(await desk.remember(TEA, source="session-2"))[0] is Action.SKIPPED


async def test_who_asserted_it_first_stays() -> None:
    """001-10, R17: told again, a belief keeps the source and the run it has."""
    desk = Desk()
    first = (await desk.remember(TEA, source="session-1", **BELIEF)).remembered[0].record.current
    again = Remember(
        scope=replace(SCOPE, run_id="run-elsewhere"),
        idempotency_key="again",
        memories=(memory(TEA, source="session-2", **BELIEF),),
        dedup=DedupInput(),
        batch=False,
    )
    (told,) = (await desk.memories.remember(desk.world.call(), again)).remembered
    after = told.record.current
    assert told.reinforced
    assert first.facet is not None and after.facet is not None
    assert (after.facet.source, after.source_run_id) == ("session-1", first.source_run_id)


async def test_what_gives_way_says_when_and_to_what() -> None:
    """002-15, R2, R3: an end and a replacement, and no end before the beginning."""
    desk = Desk()
    old = (await desk.remember(TEA, **BELIEF)).remembered[0].record.current
    assert old.facet is not None
    assert (old.superseded_by_record_id, old.facet.invalidate_time) == (None, None)
    new = (await desk.remember("Mira prefers coffee", **BELIEF)).remembered[0].record.current
    (shelf,) = desk.store.shelves.values()
    gone = shelf.heads[old.record_id].current
    assert gone.facet is not None and gone.facet.invalidate_time is not None
    assert (gone.state, gone.superseded_by_record_id) == (State.SUPERSEDED, new.record_id)
    assert gone.facet.invalidation_reason == "superseded"
    assert gone.facet.invalidate_time >= new.create_time >= old.create_time
    await desk.forget(new.record_id)
    away = shelf.heads[new.record_id].current
    assert away.facet is not None and away.facet.invalidate_time is not None
    assert (away.state, away.superseded_by_record_id) == (State.FORGOTTEN, None)


async def test_how_many_come_back() -> None:
    """R9, 000-31: five by a query, ten by tags, unless a limit says otherwise."""
    desk = Desk()
    for number in range(12):
        given: Any = memory(f"On day {number} the tea was number {number}")
        tagged = replace(given, content=replace(given.content, tags=("tea",)))
        request = Remember(
            scope=SCOPE,
            idempotency_key=f"day-{number}",
            memories=(tagged,),
            dedup=DECLARED,
            batch=False,
        )
        await desk.memories.remember(desk.world.call(), request)
    for limit, expected in ((0, 5), (4, 4), (12, 12)):
        found = await desk.recall("tea", limit=limit)
        assert len(found.results) == expected
    for limit, expected in ((0, 10), (11, 11)):
        by_tags = RecallByTags(
            scope=SCOPE, filter=FilterInput(tags_all=("tea",)), limit=limit, full=True
        )
        tagged_page = await desk.recollections.by_tags(desk.world.call(), by_tags)
        assert len(tagged_page.records) == expected


async def test_the_best_come_first_and_the_rest_is_cut() -> None:
    """001-24: by score, the highest first, and no more than asked for."""
    desk = Desk()
    texts = ("tea, with scones and jam and a long walk", "tea of mint", "black coffee")
    for text in texts:
        await desk.remember(text)
    assert await desk.texts("mint tea") == [texts[1], texts[0]]
    first, second = (await desk.recall("mint tea")).results
    assert first.score > second.score
    assert await desk.texts("mint tea", limit=1) == [texts[1]]


async def test_recall_knows_memories_only() -> None:
    """001-23: a session's notes are no memories, and no query finds them."""
    desk = Desk()
    await desk.remember(TEA)
    await desk.world.create(kind=Kind.SESSION_CONTEXT, content=replace(CONTENT, content=f"{TEA}!"))
    (shelf,) = desk.store.shelves.values()
    assert len(shelf.heads) == 2
    assert await desk.texts("green tea") == [TEA]


async def test_reading_remembers_nothing() -> None:
    """003-08: what was recalled, and what was asked, are not kept."""
    desk = Desk()
    await desk.remember(TEA)
    before = desk.live()
    for query in ("green tea", "coffee"):
        await desk.recall(query)
    by_tags = RecallByTags(scope=SCOPE, filter=FilterInput(tags_all=("tea",)), limit=0, full=True)
    await desk.recollections.by_tags(desk.world.call(), by_tags)
    assert desk.live() == before
    (shelf,) = desk.store.shelves.values()
    assert len(shelf.heads) == 1


async def test_a_caller_need_not_know_how_it_is_found() -> None:
    """003-12: one call, answered by words, by vectors, and while the model is away."""
    desk = Desk()
    desk.model.reason = None
    desk.model.vectors = {TEA: packed(1.0, 0.0), "tea": packed(1.0, 0.0)}
    await desk.remember(TEA)
    assert await desk.texts("tea") == [TEA]
    desk.model.reason = NoVectors.FAILED
    assert await desk.texts("tea") == [TEA]


@pytest.mark.parametrize("source", [None, *SourceType])
@pytest.mark.parametrize("text", [TEA, EVENING, SENCHA, f"{TEA} begins"])
async def test_nothing_is_ever_called_updated(text: str, source: SourceType | None) -> None:
    """001-06, 001-08: created, skipped or superseded, by whomever; no text is merged."""
    desk = Desk()
    desk.world.may_write = True
    given: dict[str, Any] = {"source_type": source, "memory_kind": MemoryKind.FACT}
    await desk.remember(TEA, **given)
    (one,) = (await desk.remember(text, **given)).remembered
    assert one.action in {Action.CREATED, Action.SKIPPED, Action.SUPERSEDED}
    told = TEA if one.action is Action.SKIPPED else text
    assert one.record.current.content.content == told


@pytest.mark.parametrize("belief_type", list(BeliefType))
async def test_a_new_belief_is_in_use_at_once(belief_type: BeliefType) -> None:
    """002-09: told 0.9, inferred 0.55; both live."""
    for source, confidence in ((SourceType.AGENT, 0.9), (SourceType.HARVEST, 0.55)):
        desk = Desk()
        done = await desk.remember(TEA, subject="tea", belief_type=belief_type, source_type=source)
        current = done.remembered[0].record.current
        assert current.facet is not None
        assert (current.state, current.facet.confidence) == (State.ACTIVE, confidence)

"""Remembering, recalling and forgetting, over the model of a store."""

import struct
from datetime import timedelta
from typing import Any, Final

import pytest

from broker.domain.embedding import NoVectors
from broker.domain.errors import (
    ContentRefusedError,
    FieldInvalidError,
    StaleRevisionError,
    TombstonedError,
)
from broker.domain.memories import (
    Action,
    Arm,
    DedupInput,
    DedupMode,
    FilterInput,
    Gap,
    RecallMode,
    RememberedAll,
    Signal,
)
from providers.model import BeliefType, ChangeKind, MemoryKind, SourceType, State
from tests.unit.services.memories import Desk

TEA: Final = "Mira drinks green tea every morning before work"
TEA_AGAIN: Final = "  mira DRINKS green tea\nevery morning before work "
FACT: Final[dict[str, Any]] = {"source_type": SourceType.HARVEST, "memory_kind": MemoryKind.FACT}
BELIEF: Final[dict[str, Any]] = {"subject": "tea", "belief_type": BeliefType.PREFERENCE}


def packed(*numbers: float) -> bytes:
    """Return a vector."""
    return struct.pack(f"<{len(numbers)}f", *numbers)


def only(done: RememberedAll) -> tuple[Action, Signal | None, bool]:
    """Return what became of the one memory."""
    (one,) = done.remembered
    return one.action, one.signal, one.reinforced


async def test_the_same_text_is_kept_once() -> None:
    """001-04, R15, §6.3 step 1: case and white space do not make another memory."""
    desk = Desk()
    first = await desk.remember(TEA)
    again = await desk.remember(TEA_AGAIN)
    assert only(first) == (Action.CREATED, None, False)
    assert only(again) == (Action.SKIPPED, Signal.EXACT, False)
    assert again.remembered[0].record == first.remembered[0].record
    assert desk.live() == [TEA]


async def test_a_replay_says_what_was_said() -> None:
    """R15: the original action comes back, a skip too, and nothing is written."""
    desk = Desk()
    first = await desk.remember(TEA, key="one")
    skipped = await desk.remember(TEA, key="two")
    for key, before in (("one", first), ("two", skipped)):
        again = await desk.remember(TEA, key=key)
        assert again.replayed
        assert again.remembered == before.remembered
    assert desk.live() == [TEA]


async def test_other_namespaces_are_other_scopes() -> None:
    """000-16: memories are compared inside a namespace."""
    desk = Desk()
    await desk.remember(TEA, namespace="home")
    assert only(await desk.remember(TEA, namespace="work"))[0] is Action.CREATED
    assert only(await desk.remember(TEA))[0] is Action.CREATED
    assert len(desk.live()) == 3


async def test_a_harvested_fact_takes_the_place_of_one_it_resembles() -> None:
    """000-17: between 0.60 and 0.85 the old fact is superseded by the new one."""
    desk = Desk()
    old = (await desk.remember(TEA, **FACT)).remembered[0].record
    done = await desk.remember("Mira drinks green tea every evening before sleep", **FACT)
    assert only(done)[:2] == (Action.SUPERSEDED, Signal.JACCARD)
    assert done.remembered[0].superseded_record_id == old.current.record_id
    assert done.remembered[0].score is not None
    assert len(desk.live()) == 1


async def test_what_was_superseded_may_be_told_again() -> None:
    """001-09: restating a superseded fact creates it anew."""
    desk = Desk()
    await desk.remember(TEA, **BELIEF)
    await desk.remember("Mira prefers black coffee", **BELIEF)
    done = await desk.remember(TEA, **BELIEF)
    assert only(done)[:2] == (Action.SUPERSEDED, Signal.BELIEF)
    assert desk.live() == [TEA]


async def test_one_live_belief_of_a_subject() -> None:
    """002-05, 002-08, R21: another statement takes its place; without a type both stand."""
    desk = Desk()
    await desk.remember(TEA, **BELIEF)
    done = await desk.remember("Mira prefers black coffee", **BELIEF)
    assert only(done) == (Action.SUPERSEDED, Signal.BELIEF, False)
    await desk.remember("Tea grows in Assam", subject="tea")
    await desk.remember("Porcelain is made of kaolin", subject="tea")
    assert len(desk.live()) == 3


async def test_a_belief_told_again_is_reinforced() -> None:
    """002-07: no new record; one revision that counts the telling."""
    desk = Desk()
    await desk.remember(TEA, **BELIEF)
    done = await desk.remember(TEA_AGAIN, **BELIEF)
    assert only(done) == (Action.SKIPPED, Signal.EXACT, True)
    current = done.remembered[0].record.current
    assert (current.revision, current.change_kind) == (2, ChangeKind.REINFORCED)
    assert current.facet is not None
    assert current.facet.corroboration == 1


async def test_the_cosine_decides_where_there_are_vectors() -> None:
    """001-04, §6.3 step 3: 0.95 skips whatever the words say; below it words do not count."""
    desk = Desk()
    desk.model.reason = None
    texts = {
        TEA: packed(1.0, 0.0),
        "One cup of sencha at dawn": packed(0.96, 0.28),
        "Mira drinks green tea every morning before school": packed(0.94, -0.341174),
    }
    desk.model.vectors = texts
    done = [await desk.remember(text, **FACT) for text in texts]
    assert [only(each)[:2] for each in done] == [
        (Action.CREATED, None),
        (Action.SKIPPED, Signal.COSINE),
        (Action.CREATED, None),
    ]
    assert done[1].remembered[0].score == pytest.approx(0.96)


async def test_words_decide_about_memories_without_a_vector() -> None:
    """001-02, R14: what an outage left without a vector is compared by words."""
    desk = Desk()
    desk.model.reason = NoVectors.FAILED
    first = await desk.remember(TEA)
    assert first.vectors.gap is Gap.FAILED
    desk.model.reason = None
    near = TEA + " begins"
    desk.model.vectors = {near: packed(1.0, 0.0)}
    assert only(await desk.remember(near))[:2] == (Action.SKIPPED, Signal.JACCARD)


async def test_what_is_declared_is_kept() -> None:
    """001-01, §6.3 step 5: a declared memory bypasses all but the tombstone."""
    desk = Desk()
    declared = DedupInput(mode=DedupMode.DECLARED)
    first = await desk.remember(TEA)
    assert only(await desk.remember(TEA, dedup=declared))[0] is Action.CREATED
    assert len(desk.live()) == 2
    await desk.forget(first.remembered[0].record.current.record_id)
    with pytest.raises(TombstonedError):
        await desk.remember(TEA, dedup=declared)


async def test_what_was_forgotten_does_not_come_back() -> None:
    """000-23, R1, 002-17, 003-05: found once; the text is refused then, other words are new."""
    desk = Desk()
    record_id = (await desk.remember(TEA)).remembered[0].record.current.record_id
    with pytest.raises(StaleRevisionError):
        await desk.forget(record_id, revision=2, key="stale")
    assert (await desk.forget(record_id)).found
    assert (await desk.forget(record_id)).replayed
    assert not (await desk.forget(record_id, key="again")).found
    assert await desk.texts("green tea") == []
    with pytest.raises(TombstonedError):
        await desk.remember(TEA_AGAIN)
    assert only(await desk.remember("Tea with milk at five"))[0] is Action.CREATED


async def test_a_batch_counts_its_own() -> None:
    """000-19: the same rules between the memories of one request; all of it in one write."""
    desk = Desk()
    done = await desk.remember(
        TEA, "The office closes at six", TEA_AGAIN, TEA.replace("morning", "evening"), **FACT
    )
    assert [each.action for each in done.remembered] == [
        Action.CREATED,
        Action.CREATED,
        Action.SKIPPED,
        Action.SUPERSEDED,
    ]
    first, _, skipped, last = done.remembered
    assert first.record.current.state is State.SUPERSEDED
    assert skipped.record == first.record
    assert last.superseded_record_id == first.record.current.record_id
    assert len(desk.live()) == 2


async def test_a_batch_is_whole_or_nothing() -> None:
    """001-40: one memory that is refused takes all others with it, and is named."""
    desk = Desk()
    with pytest.raises(ContentRefusedError) as refused:
        await desk.remember("Fine", "password: hunter2hunter2", "Fine too")
    assert [each.field for each in refused.value.violations] == ["memories[1].content"]
    assert desk.live() == []


@pytest.mark.parametrize("count", [0, 13])
async def test_a_batch_has_bounds(count: int) -> None:
    """000-20: 1-12 memories."""
    with pytest.raises(FieldInvalidError):
        await Desk().remember(*(f"text {n}" for n in range(count)))


async def test_an_expired_memory_is_no_duplicate_and_not_recalled() -> None:
    """000-10: out of use from the instant of expiry."""
    desk = Desk()
    await desk.remember(TEA, expire_days=1)
    assert await desk.texts("tea") == [TEA]
    now = desk.world.now()
    desk.world.now = lambda: now + timedelta(days=1)  # type: ignore[method-assign]
    assert await desk.texts("tea") == []
    assert only(await desk.remember(TEA))[0] is Action.CREATED


async def test_recall_tells_how_each_arm_did() -> None:
    """000-41, 001-40: an arm that did not run says why."""
    desk = Desk()
    await desk.remember(TEA)
    found = await desk.recall("green tea")
    assert [(each.arm, each.ran, each.gap) for each in found.arms] == [
        (Arm.KEYWORD, True, None),
        (Arm.VECTOR, False, Gap.OFF),
    ]
    keyword = await desk.recall("tea", mode=RecallMode.KEYWORD)
    assert keyword.arms[1].gap is Gap.NOT_ASKED


async def test_recall_as_of_and_of_the_superseded() -> None:
    """002-20, R3: what was in use then, and history where it is asked for."""
    desk = Desk()
    begin = desk.world.now()
    await desk.remember(TEA, **BELIEF)
    desk.world.now = lambda: begin + timedelta(hours=1)  # type: ignore[method-assign]
    await desk.remember("Mira prefers black coffee to tea", **BELIEF)
    assert await desk.texts("tea") == ["Mira prefers black coffee to tea"]
    assert await desk.texts("tea", as_of=begin) == [TEA]
    assert len(await desk.texts("tea", include_superseded=True)) == 2


@pytest.mark.parametrize("query", ["", " \n\t", "x" * 2_001])
async def test_a_query_has_bounds(query: str) -> None:
    """000-01: blank and too long are refused by name."""
    with pytest.raises(FieldInvalidError) as refused:
        await Desk().recall(query)
    assert refused.value.violations[0].field == "query"


async def test_a_filter_holds_for_every_arm() -> None:
    """000-42: namespaces gate both arms."""
    desk = Desk()
    desk.model.reason = None
    desk.model.vectors = {TEA: packed(1.0, 0.0), "tea": packed(1.0, 0.0)}
    await desk.remember(TEA, namespace="home")
    assert await desk.texts("tea", filter=FilterInput(namespaces=("work",))) == []
    assert await desk.texts("tea", filter=FilterInput(namespaces=("home",))) == [TEA]


async def test_few_about_one_subject_but_where_it_is_asked_for() -> None:
    """002-26: three of a subject are recalled, and more where the filter names it."""
    desk = Desk()
    drinks = ["black tea", "green tea", "white tea", "cold tea", "tea of mint"]
    for number, each in enumerate(drinks):
        await desk.remember(f"On day {number} it was {each}", subject="tea")
    assert len(await desk.texts("tea", limit=10)) == 3
    assert len(await desk.texts("tea", limit=10, filter=FilterInput(subject="tea"))) == 5
    assert len(await desk.texts("tea", limit=4, filter=FilterInput(subject="tea"))) == 4

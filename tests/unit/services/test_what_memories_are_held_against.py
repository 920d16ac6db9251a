"""What a memory is compared with before it is kept, and what that may cost."""

import struct
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from broker.domain.embedding import NoVectors
from broker.domain.errors import IdempotencyKeyReusedError, TombstonedError
from broker.domain.memories import Action, DedupInput, DedupMode, Signal
from broker.domain.requests import CreateRecord, RejectKind, RejectRecord, UpdateRecord
from broker.retrieval.terms import distinct_terms
from broker.services.entries import Entries
from broker.services.head_writer import HeadWriter
from broker.services.likeness import NEAREST_MAX, WORDS_MAX
from broker.services.record_changes import RecordChanges
from broker.services.record_writes import RecordWrites
from providers.model import BeliefType, Kind, MemoryKind, SourceType, WriteSet
from providers.requests import CommitOutcome
from tests.unit.services.memories import Desk
from tests.unit.services.test_memories import only
from tests.unit.services.world import CONTENT, SCOPE

TEA: Final = "Mira drinks green tea every morning before work"
COFFEE: Final = "Mira prefers black coffee"
FACT: Final[dict[str, Any]] = {"source_type": SourceType.HARVEST, "memory_kind": MemoryKind.FACT}
BELIEF: Final[dict[str, Any]] = {"subject": "tea", "belief_type": BeliefType.PREFERENCE}
DECLARED: Final = DedupInput(mode=DedupMode.DECLARED)


def axis(number: int, of: int) -> bytes:
    """Return a vector that is like no other of them."""
    return struct.pack(f"<{of}f", *(float(number == place) for place in range(of)))


@pytest.fixture
def desk() -> Desk:
    """A desk whose heads get their entries from the same model."""
    made = Desk()
    made.world.path._entries = Entries(made.model)
    return made


async def test_words_do_not_count_against_what_has_a_vector(desk: Desk) -> None:
    """000-17, 001-03, §6.3: of facts of one form, each about another, all are kept."""
    count = NEAREST_MAX + 6
    said = "works for the city council and likes what she does there"
    texts = [f"Person{number} {said}" for number in range(count)]
    desk.model.reason = None
    desk.model.vectors = {text: axis(number, count) for number, text in enumerate(texts)}
    for text in texts:
        assert only(await desk.remember(text, **FACT)) == (Action.CREATED, None, False)
    assert len(desk.live()) == count


async def test_words_count_against_what_has_none(desk: Desk) -> None:
    """001-04, 001-40: what was kept while the model was away is compared by words."""
    await desk.remember(TEA, **FACT)
    desk.model.reason = None
    again = "Mira drinks green tea every evening before work"
    desk.model.vectors = {again: axis(0, 2)}
    assert only(await desk.remember(again, **FACT))[:2] == (Action.SUPERSEDED, Signal.JACCARD)


async def test_a_long_title_hides_nothing(desk: Desk) -> None:
    """001-04: what is compared is looked for first, whatever a memory is called."""
    first = "Mira drinks green tea every morning before she goes to work"
    title = " ".join(f"word{number}" for number in range(70))
    await desk.remember(first)
    done = await desk.remember(f"{first} daily", title=title)
    assert only(done)[:2] == (Action.SKIPPED, Signal.JACCARD)


async def test_a_change_of_state_costs_no_vector(desk: Desk) -> None:
    """001-40, 002-07: told again, or replaced, the old text is not embedded anew."""
    desk.model.reason = None
    desk.model.vectors = {TEA: axis(0, 2), COFFEE: axis(1, 2), "question": axis(0, 2)}
    await desk.remember(TEA, **BELIEF)
    desk.model.reason = NoVectors.FAILED
    assert only(await desk.remember(TEA, **BELIEF)) == (Action.SKIPPED, Signal.EXACT, True)
    desk.model.reason = None
    (kept,) = (await desk.recall("question")).results
    assert kept.similarity == pytest.approx(1.0)
    desk.model.asked.clear()
    assert only(await desk.remember(COFFEE, **BELIEF))[0] is Action.SUPERSEDED
    assert desk.model.asked == [COFFEE]


async def test_each_memory_is_taken_apart_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """004-13: twelve that are like the same few, and no more than there is room for."""
    words = " ".join(f"word{number}" for number in range(60))
    for number in range(3):
        await desk.remember(f"{words} tale{number} " + "x" * 39_000, dedup=DECLARED)
    told: list[str] = []

    def counted(text: str) -> frozenset[str]:
        told.append(text)
        return distinct_terms(text)

    monkeypatch.setattr("broker.services.likeness.distinct_terms", counted)
    await desk.remember(*(f"{words} of{number} {number}" for number in range(12)))
    assert 0 < len(told) == len(set(told)) <= 3
    assert sum(map(len, told)) <= WORDS_MAX + 40_000


async def test_leaked_reasoning_is_part_of_a_request(desk: Desk) -> None:
    """000-03, 004-61: another text with the same key is another request."""
    await desk.remember(f"<think>one</think>{TEA}", key="key")
    assert (await desk.remember(f"<think>one</think>{TEA}", key="key")).replayed
    with pytest.raises(IdempotencyKeyReusedError):
        await desk.remember(f"<think>two</think>{TEA}", key="key")


async def test_what_somebody_else_says_now_is_not_forgotten_with_it(desk: Desk) -> None:
    """R1, 001-09: the text of a memory that gave way, and is told again by another, stays."""
    first = (await desk.remember(TEA, **BELIEF)).remembered[0].record
    await desk.remember(COFFEE, **BELIEF)
    again = (await desk.remember(TEA, **BELIEF)).remembered[0].record
    assert (await desk.forget(first.current.record_id, revision=2)).found
    assert await desk.texts("green tea") == [TEA]
    assert only(await desk.remember(TEA, **BELIEF))[0] is Action.SKIPPED
    assert (await desk.forget(again.current.record_id, revision=2, key="too")).found
    assert await desk.texts("green tea") == []
    with pytest.raises(TombstonedError):
        await desk.remember(TEA, **BELIEF)


@pytest.mark.parametrize("way", ["remember", "create"])
async def test_a_refusal_is_met_by_who_takes_the_key(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """002-16, §6.3 step 0: an expired memory is refused as untrue while its text is told anew."""
    desk.world.may_write = True
    expired = desk.world.now() - timedelta(seconds=1)
    old = (await desk.remember(TEA, expire_time=expired)).remembered[0].record

    commits = [desk.world.provider.commit]

    async def after_a_refusal(write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        monkeypatch.undo()
        writer = HeadWriter(desk.world.path, desk.world, lambda: "id-of-the-refusal")
        change = RejectRecord(
            scope=SCOPE,
            record_id=old.current.record_id,
            expected_revision=1,
            idempotency_key="refusal",
            reason="",
            reject_kind=RejectKind.UNTRUE,
        )
        await RecordChanges(desk.world.path, writer).reject(desk.world.call(), change)
        return await commits[0](write_set, timeout=timeout)

    monkeypatch.setattr(desk.world.provider, "commit", after_a_refusal)
    with pytest.raises(TombstonedError):
        await (desk.remember(TEA) if way == "remember" else created(desk, TEA))
    assert desk.live() == [TEA]


async def test_who_says_it_now_says_it_when_it_is_forgotten(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: forgotten while the other memory of the text lets go of it, the text is buried."""
    first = (await desk.remember(TEA, **BELIEF)).remembered[0].record
    await desk.remember(COFFEE, **BELIEF)
    again = (await desk.remember(TEA, **BELIEF)).remembered[0].record
    commits = [desk.world.provider.commit]

    async def after_another(write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        monkeypatch.undo()
        writer = HeadWriter(desk.world.path, desk.world, lambda: "id-of-the-edit")
        edit = UpdateRecord(
            scope=SCOPE,
            idempotency_key="edit",
            record_id=again.current.record_id,
            expected_revision=1,
            content=replace(CONTENT, content="Mira drinks nothing at all"),
            reason="",
            facet=None,
            facet_mask=None,
        )
        await RecordWrites(desk.world.path, writer).update(desk.world.call(), edit)
        return await commits[0](write_set, timeout=timeout)

    monkeypatch.setattr(desk.world.provider, "commit", after_another)
    assert (await desk.forget(first.current.record_id, revision=2)).found
    with pytest.raises(TombstonedError):
        await desk.remember(TEA, **BELIEF)


async def created(desk: Desk, text: str) -> None:
    """Make a memory by CreateRecord."""
    writer = HeadWriter(desk.world.path, desk.world, lambda: "id-of-another")
    create = CreateRecord(
        scope=SCOPE,
        idempotency_key="another",
        kind=Kind.MEMORY,
        content=replace(CONTENT, content=text),
        facet=None,
    )
    await RecordWrites(desk.world.path, writer).create(desk.world.call(), create)

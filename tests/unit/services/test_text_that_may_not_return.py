"""Which texts may not come back, by whatever method, and what rejections do to keys."""

from typing import Any

import pytest

from broker.domain.errors import TombstonedError
from broker.domain.requests import FacetInput, RejectKind
from broker.memory.keys import content_key
from providers.model import Claim, Kind, State
from tests.unit.services.verbs import Verbs, name

SKY = "The sky is blue."
SEA = "The sea is green."
SAME = " THE SKY\n is blue."


def key(text: str = SKY, namespace: str | None = None) -> str:
    """Return the key of a text of the one agent."""
    return content_key("agent", namespace, text)


async def by_create(verbs: Verbs) -> Any:
    return lambda: verbs.create(SAME)


async def by_session(verbs: Verbs) -> Any:
    return lambda: verbs.create(SAME, Kind.SESSION_CONTEXT)


async def by_update(verbs: Verbs) -> Any:
    made = await verbs.create(SEA)
    return lambda: verbs.update(made, SAME)


async def by_session_update(verbs: Verbs) -> Any:
    made = await verbs.create(SEA, Kind.SESSION_CONTEXT)
    return lambda: verbs.update(made, SAME)


async def by_restore(verbs: Verbs) -> Any:
    made = await verbs.update(await verbs.create(SAME), SEA)
    return lambda: verbs.restore(made, 1)


async def by_decision_restore(verbs: Verbs) -> Any:
    made = await verbs.update(await verbs.decide(SAME), SEA)
    return lambda: verbs.restore(made, 1)


async def by_propose(verbs: Verbs) -> Any:
    return lambda: verbs.propose(SAME)


async def by_promote(verbs: Verbs) -> Any:
    made = await verbs.propose(SAME)
    return lambda: verbs.promote(made)


async def by_import(verbs: Verbs) -> Any:
    return lambda: verbs.bring(SAME)


WAYS = (
    by_create,
    by_session,
    by_update,
    by_session_update,
    by_restore,
    by_decision_restore,
    by_propose,
    by_promote,
    by_import,
)


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_forgotten(way: Any) -> None:
    """002-17, §6.3 step 0: it comes back by no method, in no spelling that says the same."""
    verbs = Verbs()
    attempt = await way(verbs)
    await verbs.bury(key())
    before = dict(verbs.shelf().heads)
    with pytest.raises(TombstonedError):
        await attempt()
    assert verbs.shelf().heads == before


@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.SESSION_CONTEXT])
async def test_what_may_not_come_back_in_a_namespace(kind: Kind) -> None:
    """002-17: an edit learns the key of what it says only where it finds the record."""
    verbs = Verbs()
    space = FacetInput(namespace="n")
    made = await verbs.create(SEA, kind, facet=space)
    await verbs.reject(await verbs.create(SKY, facet=space))
    await verbs.bury(key("gone", "n"))
    for text in (SAME, "gone"):
        with pytest.raises(TombstonedError):
            await verbs.update(made, text)
    assert verbs.head(made) == made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [RejectKind.UNTRUE, RejectKind.CHANGED])
async def test_what_was_rejected(way: Any, kind: RejectKind) -> None:
    """002-16, §6.3 step 0: untrue and changed block; reopening lifts it."""
    verbs = Verbs()
    attempt = await way(verbs)
    refuted = await verbs.reject(await verbs.create(SKY), kind)
    with pytest.raises(TombstonedError):
        await attempt()
    await verbs.archive(refuted)
    with pytest.raises(TombstonedError):
        await attempt()
    again = await verbs.unarchive(verbs.head(refuted))
    await verbs.reopen(again)
    await attempt()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [RejectKind.NOT_HERE, None])
async def test_what_was_rejected_for_other_reasons(way: Any, kind: RejectKind | None) -> None:
    """§6.3 step 0: not here and unspecified do not block."""
    verbs = Verbs()
    attempt = await way(verbs)
    await verbs.reject(await verbs.create(SKY), kind)
    await attempt()


async def test_a_rejection_takes_the_key_over() -> None:
    """Whoever of two that say the same is rejected holds the key afterwards."""
    verbs = Verbs()
    await verbs.create(SKY)
    second = await verbs.create(SAME)
    await verbs.reject(second)
    assert verbs.holder(key()) == name(second)
    with pytest.raises(TombstonedError):
        await verbs.create(SKY)


async def test_a_rejection_is_two_trips() -> None:
    """A memory that holds its key goes on holding it."""
    verbs = Verbs()
    made = await verbs.create(SKY)
    verbs.world.events.clear()
    await verbs.reject(made)
    assert verbs.world.events.count("load") == verbs.world.events.count("commit") == 1
    assert verbs.world.commits[-1].claims == (Claim(key(), name(made), name(made)),)


@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.DECISION])
async def test_a_rejection_of_what_holds_no_key(kind: Kind) -> None:
    """An imported memory takes its key then; a decision never does."""
    verbs = Verbs()
    made = await (verbs.bring(SKY) if kind is Kind.MEMORY else verbs.decide(SKY))
    assert verbs.holder(key()) is None
    await verbs.reject(made)
    assert verbs.holder(key()) == (name(made) if kind is Kind.MEMORY else None)


async def test_a_rejection_beside_a_tombstone() -> None:
    """What is forgotten can be rejected all the same: the tombstone says as much."""
    verbs = Verbs()
    made = await verbs.create(SKY)
    await verbs.bury(key())
    await verbs.reject(made)
    assert verbs.world.commits[-1].claims == ()


async def test_what_is_rejected_keeps_what_it_said() -> None:
    """002-18: editing it frees neither text, and it may go back to what it said itself."""
    verbs = Verbs()
    made = await verbs.update(await verbs.reject(await verbs.create(SKY)), SEA)
    for text in (SKY, SEA):
        assert verbs.holder(key(text)) == name(made)
        with pytest.raises(TombstonedError):
            await verbs.create(text)
    await verbs.update(made, SKY)


async def test_who_was_reopened_holds_no_more_than_it_says() -> None:
    """A key that its holder does not say any more is there to be taken."""
    verbs = Verbs()
    made = await verbs.update(await verbs.reject(await verbs.create(SKY)), SEA)
    await verbs.reopen(made)
    second = await verbs.create(SKY)
    assert verbs.holder(key(SKY)) == name(second)
    assert verbs.holder(key(SEA)) == name(made)


async def test_what_comes_back_into_use_is_no_tombstone() -> None:
    """002-17: what was forgotten meanwhile does not come back by unarchiving or restoring."""
    verbs = Verbs()
    made = await verbs.archive(await verbs.create(SKY))
    await verbs.bury(key())
    with pytest.raises(TombstonedError):
        await verbs.unarchive(made)
    with pytest.raises(TombstonedError):
        await verbs.restore(made, 1)
    assert verbs.head(made).current.state is State.ARCHIVED


async def test_an_import_tells_which_record() -> None:
    """It names the index, and nothing of what is there; trying it out tells the same."""
    verbs = Verbs()
    await verbs.reject(await verbs.create(SKY))
    with pytest.raises(TombstonedError) as refused:
        await verbs.bring(SKY)
    assert refused.value.metadata == {"index": "0"}
    assert verbs.world.commits[-1].receipt.method != "ImportRecords"


async def test_an_import_is_two_trips_and_claims_nothing() -> None:
    """The transfer counter, read of the same moment as the keys, keeps tombstones out."""
    verbs = Verbs()
    await verbs.bring(SKY)
    assert [each for each in verbs.world.events if "check" not in each] == [
        "bind",
        "load",
        "commit",
    ]
    written = verbs.world.commits[-1]
    assert (written.claims, written.must_be_absent) == ((), ())
    assert written.transfer_expected == 0

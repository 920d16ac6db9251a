"""What writes do to the keys of texts, and which texts may not come back."""

from typing import Any

import pytest

from broker.domain.errors import ConcurrentWriteError, TombstonedError
from broker.domain.requests import FacetInput, RejectKind
from broker.memory.keys import belief_key, content_key
from broker.services.access import ATTEMPTS_MAX
from providers.errors import StoredDataInvalidError
from providers.model import BeliefType, Claim, ClaimRelease, Kind, Record, State
from providers.requests import ClaimTaken
from tests.unit.services.verbs import Verbs, said
from tests.unit.services.world import World

SKY = "The sky is blue."
SEA = "The sea is green."
SAME = " THE SKY\n is blue."


def key(text: str = SKY, namespace: str | None = None) -> str:
    """Return the key of a text of the one agent."""
    return content_key("agent", namespace, text)


def name(record: Record) -> str:
    """Return a record's id."""
    return record.current.record_id


# -------------------- what is claimed


async def test_a_memory_claims_what_it_says() -> None:
    """R15: two trips where nobody else says the same."""
    verbs = Verbs()
    first = await verbs.create(SKY)
    assert verbs.world.events == ["check 1", "bind", "load", "check 2", "commit"]
    assert verbs.holder(key()) == name(first)


async def test_what_is_held_stays_where_it_is() -> None:
    """A second one proves that there is no tombstone; the holder is looked at: one trip more."""
    verbs = Verbs()
    first = await verbs.create(SKY)
    verbs.world.events.clear()
    await verbs.create(SAME)
    assert [each for each in verbs.world.events if "check" not in each] == [
        "bind",
        "load",
        "load",
        "commit",
    ]
    assert verbs.world.commits[-1].claims == ()
    assert verbs.world.commits[-1].must_be_absent == (key(),)
    assert verbs.holder(key()) == name(first)


async def test_namespaces_are_apart() -> None:
    """A key is of an agent and a namespace."""
    verbs = Verbs()
    first = await verbs.create(SKY)
    second = await verbs.create(SKY, facet=FacetInput(namespace="n"))
    assert verbs.holder(key()) == name(first)
    assert verbs.holder(key(namespace="n")) == name(second)


async def gone_archived(verbs: Verbs, record: Record) -> None:
    await verbs.archive(record)


async def gone_edited(verbs: Verbs, record: Record) -> None:
    await verbs.update(record, SEA)


async def gone_misplaced(verbs: Verbs, record: Record) -> None:
    await verbs.reject(record, RejectKind.NOT_HERE)


async def gone_unsaid(verbs: Verbs, record: Record) -> None:
    await verbs.reject(record, None)


GOING = (gone_archived, gone_edited, gone_misplaced, gone_unsaid)


@pytest.mark.parametrize("go", GOING)
async def test_who_is_gone_is_followed(go: Any) -> None:
    """A key of what is out of use, or says something else by now, is taken over or was given up."""
    verbs = Verbs()
    await go(verbs, await verbs.create(SKY))
    second = await verbs.create(SAME)
    assert verbs.holder(key()) == name(second)


async def test_what_has_expired_is_gone() -> None:
    """000-10: the very moment of expiry counts as expired."""
    verbs = Verbs()
    first = await verbs.create(SKY, facet=FacetInput(expire_time=verbs.world.now()))
    second = await verbs.create(SAME)
    assert verbs.world.commits[-1].claims == (Claim(key(), name(second), name(first)),)


@pytest.mark.parametrize("kind", [Kind.SESSION_CONTEXT, Kind.PROPOSAL, Kind.DECISION])
async def test_other_kinds_claim_nothing(kind: Kind) -> None:
    """They prove that there is no tombstone, and hold no key."""
    verbs = Verbs()
    match kind:
        case Kind.SESSION_CONTEXT:
            await verbs.create(SKY, kind)
        case Kind.PROPOSAL:
            await verbs.propose(SKY)
        case _:
            await verbs.decide(SKY)
    assert verbs.world.commits[-1].must_be_absent == (key(),)
    assert verbs.holder(key()) is None
    memory = await verbs.create(SKY)
    assert verbs.holder(key()) == name(memory)


# -------------------- what moves with a text


async def test_an_edit_moves_the_claim() -> None:
    """Two trips; in a namespace as well, where the key is known only after the load."""
    for facet in (None, FacetInput(namespace="n")):
        verbs = Verbs()
        space = None if facet is None else facet.namespace
        made = await verbs.create(SKY, facet=facet)
        verbs.world.events.clear()
        await verbs.update(made, SEA)
        assert [each for each in verbs.world.events if "check" not in each] == [
            "bind",
            "load",
            "commit",
        ]
        assert verbs.holder(key(SEA, space)) == name(made)
        assert verbs.holder(key(SKY, space)) is None


async def test_an_edit_that_says_the_same_moves_nothing() -> None:
    """Neither do state and trust."""
    verbs = Verbs()
    made = await verbs.create(SKY)
    made = await verbs.update(made, SAME, content=said(SAME, title="new"))
    made = await verbs.archive(made)
    assert (verbs.world.commits[-1].claims, verbs.world.commits[-1].releases) == ((), ())
    made = await verbs.unarchive(made)
    assert (verbs.world.commits[-1].claims, verbs.world.commits[-1].releases) == ((), ())
    await verbs.reopen(await verbs.approve(made))
    assert verbs.holder(key()) == name(made)


async def test_a_new_namespace_is_a_new_key() -> None:
    """What is keyed is agent, namespace and text."""
    verbs = Verbs()
    made = await verbs.create(SKY)
    facet = FacetInput(namespace="n")
    await verbs.update(made, SKY, facet=facet, facet_mask=("namespace",))
    assert verbs.holder(key()) is None
    assert verbs.holder(key(namespace="n")) == name(made)


async def test_what_an_edit_runs_into_is_looked_at() -> None:
    """A key that is held, in a namespace that was not foreseen: decided again, knowing who."""
    verbs = Verbs()
    space = FacetInput(namespace="n")
    first = await verbs.create(SKY, facet=space)
    second = await verbs.create(SEA, facet=space)
    await verbs.update(second, SAME)
    assert verbs.world.commits[-2].claims == (Claim(key(SKY, "n"), name(second)),)
    assert verbs.world.commits[-1].must_be_absent == (key(SKY, "n"),)
    assert verbs.holder(key(SKY, "n")) == name(first)
    assert verbs.holder(key(SEA, "n")) is None


async def test_a_restored_text_is_claimed_again() -> None:
    """A restored memory says what it said, and holds that again."""
    verbs = Verbs()
    made = await verbs.update(await verbs.create(SKY), SEA)
    await verbs.restore(made, 1)
    assert verbs.holder(key(SKY)) == name(made)
    assert verbs.holder(key(SEA)) is None


async def test_a_belief_is_given_back_with_its_subject() -> None:
    """R21: who is not about a subject any more does not hold it."""
    verbs = Verbs()
    facet = FacetInput(subject="sky", belief_type=BeliefType.FACT)
    made = await verbs.create(SKY, facet=facet)
    changed = FacetInput(subject="sea")
    await verbs.update(made, SKY, facet=changed, facet_mask=("subject",))
    held = belief_key("agent", None, "sky", BeliefType.FACT)
    assert verbs.world.commits[-1].releases == (ClaimRelease(held, name(made)),)


async def test_what_is_taken_five_times_is_told() -> None:
    """004-60: bounded, like every contention."""
    world = World(may_write=True, outcomes=[ClaimTaken(key(), "other")] * ATTEMPTS_MAX)
    with pytest.raises(ConcurrentWriteError):
        await Verbs(world).create(SKY)
    assert world.events.count("commit") == ATTEMPTS_MAX


async def test_a_claim_without_a_record_is_damage() -> None:
    """004-44: a key names a record that is not there: never skipped, never looped over."""
    verbs = Verbs()
    await verbs.create(SEA)
    verbs.shelf().claims[key()] = "nobody"
    with pytest.raises(StoredDataInvalidError):
        await verbs.create(SKY)


# -------------------- what may not come back


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

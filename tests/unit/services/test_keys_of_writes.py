"""What writes do to the keys of texts, and which texts may not come back."""

from typing import Any

import pytest

from broker.domain.errors import ConcurrentWriteError
from broker.domain.requests import FacetInput, RejectKind
from broker.memory.keys import belief_key, content_key
from broker.services.access import ATTEMPTS_MAX
from providers.errors import StoredDataInvalidError
from providers.model import BeliefType, Claim, ClaimRelease, Kind, Record
from providers.requests import ClaimTaken
from tests.unit.services.verbs import Verbs, name, said
from tests.unit.services.world import World

SKY = "The sky is blue."
SEA = "The sea is green."
SAME = " THE SKY\n is blue."


def key(text: str = SKY, namespace: str | None = None) -> str:
    """Return the key of a text of the one agent."""
    return content_key("agent", namespace, text)


# -------------------- what is claimed


async def test_a_memory_claims_what_it_says() -> None:
    """R15: one trip where nobody else says the same."""
    verbs = Verbs()
    first = await verbs.create(SKY)
    assert verbs.world.events == ["check 1", "bind", "check 2", "commit"]
    assert verbs.holder(key()) == name(first)


async def test_what_is_held_stays_where_it_is() -> None:
    """A second one runs into the first, and then proves that there is no tombstone."""
    verbs = Verbs()
    first = await verbs.create(SKY)
    verbs.world.events.clear()
    await verbs.create(SAME)
    assert [each for each in verbs.world.events if "check" not in each] == [
        "bind",
        "commit",
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


async def test_what_is_taken_again_and_again_is_told() -> None:
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

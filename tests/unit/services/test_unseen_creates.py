"""Memories are created with nothing loaded; what then stands in the way is looked at (ADR 0036)."""

from dataclasses import replace

import pytest

from broker.domain.errors import (
    BrokerError,
    IdempotencyKeyReusedError,
    PermissionMissingError,
    TombstonedError,
)
from broker.domain.requests import FacetInput
from broker.services.entries import Entries
from providers.errors import (
    OutcomeUnknownError,
    ProviderError,
    ProviderUnavailableError,
    StorageFullError,
)
from providers.model import Kind, SourceType
from tests.unit.services.memories import Model
from tests.unit.services.test_keys_of_writes import SAME, SKY, key
from tests.unit.services.verbs import Verbs
from tests.unit.services.world import CONTENT, World

UNSEEN = ["check 1", "bind", "check 2", "commit"]
SEEN = ["check 1", "bind", "load", "check 2", "commit"]


def begin_anew(world: World) -> None:
    """Forget what happened."""
    world.events.clear()
    world.checks = 0


def with_a_model(world: World) -> Model:
    """Let a model be asked for vectors."""
    model = Model(vectors={SKY: b"\0\0\x80?"}, reason=None)
    world.path._entries = Entries(model)
    return model


async def test_nothing_is_loaded_for_a_memory() -> None:
    """004-15: one trip, behind check ②."""
    world = World()
    await world.create()
    assert world.events == UNSEEN


async def test_a_store_that_must_be_asked_before_is() -> None:
    """004-38: whether it is fit may be known only beside what it is asked."""
    world = World()
    world.provider.commits_unseen = False
    await world.create()
    assert world.events == SEEN


async def test_what_must_see_the_key_loads_it() -> None:
    """R15, 000-08: a session context proves that the key is free; an operator's right comes after
    a replay."""
    world = World(may_write=True)
    await world.create("a", kind=Kind.SESSION_CONTEXT)
    assert world.events == SEEN
    begin_anew(world)
    await world.create("b", facet=FacetInput(source_type=SourceType.OPERATOR))
    assert world.events == SEEN


async def test_a_key_of_another_request_is_told_behind_a_check_that_began_after() -> None:
    """004-15, 004-62: what a commit ran into is read again, beside a check."""
    world = World()
    await world.create()
    begin_anew(world)
    with pytest.raises(IdempotencyKeyReusedError):
        await world.create(content=replace(CONTENT, content="another"))
    assert world.events[:4] == UNSEEN
    assert [each for each in world.events if "check" in each][-1] == "check 4"
    assert world.events.count("commit") == 1


@pytest.mark.parametrize("error", [StorageFullError("full"), ProviderUnavailableError("down")])
async def test_a_store_that_takes_no_writes_tells_what_it_took(error: ProviderError) -> None:
    """004-43, 004-63: a retry of what was written is never told that nothing was."""
    world = World()
    made = await world.create()
    world.outcomes = [error]
    assert await world.create() == replace(made, replayed=True)
    world.outcomes = [error, error]
    with pytest.raises(type(error)):
        await world.create("another")


async def test_a_lost_reply_is_told_at_once() -> None:
    """004-63: whether it was written is for the retry to find out."""
    world = World(outcomes=[OutcomeUnknownError("lost")])
    with pytest.raises(OutcomeUnknownError):
        await world.create()
    assert world.events == UNSEEN


async def test_a_tombstone_is_told_behind_a_check_that_began_after() -> None:
    """004-15, 002-15: also where the key was held when the write began."""
    verbs = Verbs()
    world = verbs.world
    await verbs.create(SKY)
    begin_anew(world)
    refusal: BrokerError = PermissionMissingError("AccessPrivateKnowledge")

    async def forget() -> None:
        if world.events.count("commit") == 2:
            await verbs.bury(key())
            world.refusals = {world.checks + 1: refusal}

    world.before_commit = forget
    with pytest.raises(PermissionMissingError):
        await verbs.create(SAME)


async def test_no_text_goes_to_a_model_that_the_store_refuses() -> None:
    """002-15: where a model makes vectors, the key is looked at before."""
    verbs = Verbs()
    await verbs.bury(key())
    model = with_a_model(verbs.world)
    begin_anew(verbs.world)
    with pytest.raises(TombstonedError):
        await verbs.create(SKY)
    assert model.asked == []
    assert "commit" not in verbs.world.events

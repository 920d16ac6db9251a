"""One project, one broker, two kinds of store: nothing crosses but what a bundle carries."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from broker.api.v1 import record_pb2
from tests.fixtures.desk import Desk
from tests.fixtures.own_broker import NOT_SERVING, SERVING, health_becomes
from tests.fixtures.record_calls import (
    APPROVE,
    COMPILE,
    EXPORT,
    GET,
    IMPORT,
    NAMING,
    PENDING,
    PROMOTE,
    PROPOSE,
    READS,
    SEARCH,
    SEARCH_PROJECT,
    UPDATE,
)
from tests.fixtures.stand_records import stored
from tests.fixtures.two_resources import TwoResources
from tests.integration.broker.test_transfer import exported, furnished, with_imported

pytestmark = pytest.mark.memories("redis", "cosmos")

AWAY: Final = ("UNAVAILABLE", "PROVIDER_UNAVAILABLE")
GONE: Final = ("NOT_FOUND", "RECORD_NOT_FOUND")
NATIVE, OTHER = "run-a", "second-a"


@dataclass
class RunDesk(Desk):
    """What is done in one run; ``stand`` names the memory that the run is pinned to."""

    run: str

    async def call(self, rpc: str, claims: dict[str, Any] | None = None, /, **changes: Any) -> Any:
        return await super().call(rpc, claims, **({"run": self.run} | changes))


@dataclass
class Sides:
    """Two runs of one project: one is pinned to PostgreSQL, the other to another store."""

    native: RunDesk
    other: RunDesk

    async def kept(self) -> list[dict[str, list[str]]]:
        """Return what each of the two keeps of the project."""
        return [await stored(each.stand, [each.project]) for each in (self.native, self.other)]


@pytest.fixture
async def sides(two_resources: TwoResources) -> AsyncIterator[Sides]:
    """A project nobody has used."""
    first, second = two_resources.first, two_resources.second
    project = first.project()
    async with first.channel() as channel:
        yield Sides(
            RunDesk(first, channel, project, NATIVE),
            RunDesk(second, channel, project, OTHER),
        )


async def test_what_a_run_keeps_is_in_its_own_store(sides: Sides) -> None:
    """004-26, 004-28, 004-62: the same key twice, two records; each is absent to the other run."""
    native, other = sides.native, sides.other
    mine = await native.made(content="of the native run")
    theirs = await other.made(content="of the other run")
    assert mine.record_id != theirs.record_id
    for here, there, record in ((native, other, mine), (other, native, theirs)):
        assert await here.stand.rows("memory.records", here.project) == 1
        assert await here.head(record.record_id) == record
        for rpc in NAMING:
            told = await there.told(
                rpc, record_id=record.record_id, idempotency_key=f"{rpc}-{there.run}"
            )
            assert (told.code, told.reason) == GONE, rpc
        assert [each.record_id for each in (await here.done(SEARCH)).records] == [record.record_id]
        bundle = (await here.done(EXPORT)).bundle
        assert [each.record.record_id for each in bundle.records] == [record.record_id]
        await here.done(APPROVE, record_id=record.record_id, expected_revision=1)
        context = await here.done(COMPILE)
        assert [each.record_id for each in context.items] == [record.record_id]
    assert await native.stand.rows("knowledge.pins", native.project) == 2


async def test_streams_of_effects_are_apart(sides: Sides) -> None:
    """004-72, 004-73: each run's first effect is number one of its store, and waits for none."""
    for desk in (sides.native, sides.other):
        made = await desk.done(PROPOSE, idempotency_key="propose")
        promoted = await desk.done(PROMOTE, proposal_id=made.proposal.record_id)
        assert promoted.delivery.acknowledgement.receipt_id == promoted.receipt_id
        assert not (await desk.done(PENDING)).effects
        assert await desk.stand.rows("memory.effects", desk.project) == 1


async def test_a_search_through_the_project_sees_both(sides: Sides) -> None:
    """004-69: what either run keeps, in one order; and the run through which to reach it."""
    made = [await (sides.native, sides.other)[n % 2].made(f"key-{n}") for n in range(6)]
    found: list[Any] = []
    token = ""
    while not found or token:
        reply = await sides.native.done(SEARCH_PROJECT, page_size=2, page_token=token)
        found += reply.hits
        token = reply.next_page_token
    assert [hit.record.record_id for hit in found] == [each.record_id for each in made[::-1]]
    assert [hit.access_run_id for hit in found] == [OTHER, NATIVE] * 3


async def test_a_store_that_is_away_is_answered_for_by_nobody(sides: Sides) -> None:
    """004-26, 004-101: its runs are refused, old and new; others go on; nothing is moved."""
    native, other = sides.native, sides.other
    mine, theirs = await native.made(), await other.made()
    kept = await sides.kept()
    memory = other.stand.memory
    async with memory.away():
        unready = asyncio.create_task(health_becomes(native.channel, NOT_SERVING))
        for rpc in (*READS, UPDATE, EXPORT, PROPOSE, COMPILE, SEARCH_PROJECT):
            named = {"record_id": theirs.record_id, "idempotency_key": f"key-{rpc}"}
            told = await other.told(rpc, **named)
            assert (told.code, told.reason, told.retry) == (*AWAY, True), rpc
        first_use = await other.told(GET, record_id=theirs.record_id, run="second-b")
        assert (first_use.code, first_use.reason) == AWAY
        assert await native.head(mine.record_id) == mine
        assert (await native.changed(UPDATE, mine)).revision == 2
        await unready
    await health_becomes(native.channel, SERVING)
    assert await other.head(theirs.record_id) == theirs
    now = await sides.kept()
    assert now[1] == kept[1]
    assert await native.stand.rows("knowledge.pins", native.project) == 2


async def test_a_selection_that_moves_to_the_store_that_answers(sides: Sides) -> None:
    """004-28, 004-29: the pin holds: the run is refused, and its records are not looked for."""
    native, other = sides.native, sides.other
    theirs = await other.made()
    owner, kept = other.stand.owner, await sides.kept()

    async def moved(question: Any, answer: Any, _: Any) -> bytes:
        candidate = answer.selection.providers[0].candidates[0]
        candidate.CopyFrom(native.stand.memory.candidate)
        return bytes(answer.SerializeToString())

    owner.scripts[other.project] = moved
    async with other.stand.memory.away():
        told = await other.told(GET, record_id=theirs.record_id)
    assert (told.code, told.reason) == ("FAILED_PRECONDITION", "RUN_SELECTION_CHANGED")
    assert told.metadata == {"field": "provider_id"}
    assert await sides.kept() == kept


# -------------------- moved on purpose

THERE: Final = {"tenant": "tenant-b"}
"""Another tenant has projects of the same ids, and nothing in them."""


@pytest.mark.parametrize("begins", ["native", "other"])
async def test_histories_move_from_one_store_to_the_other_and_back(
    sides: Sides, begins: str
) -> None:
    """004-82, 004-85, 004-88, P6, C10: equal bundles, and the imported revision on top of each."""
    source, target = sides.native, sides.other
    if begins == "other":
        source, target = target, source
    before = await furnished(source)
    replied = await target.done(IMPORT, bundle=before)
    there = await exported(target)
    with_imported(before, there, replied, target.run)
    assert await exported(source) == before
    checked = await source.told(IMPORT, bundle=there)
    assert checked.reason == "BUNDLE_CONFLICT", "the store that it came from has it"
    replied = await source.done(IMPORT, THERE, bundle=there)
    with_imported(there, await exported(source, THERE), replied, source.run)
    for desk in (source, target):
        await desk.stand.memory.check_whole()


async def test_the_same_bundle_is_the_same_in_both(sides: Sides) -> None:
    """004-82, 004-88: imported into each and exported, they differ in what each import adds."""
    before = await furnished(sides.native)
    after = []
    for desk in (sides.native, sides.other):
        await desk.done(IMPORT, THERE, bundle=before)
        after.append(await exported(desk, THERE))
    for one, other in zip(after[0].records, after[1].records, strict=True):
        assert [*one.revisions][:-1] == [*other.revisions][:-1]
        for each in (one, other):
            for top in (each.record, each.revisions[-1]):
                _without_what_is_new(top)
    assert after[0] == after[1]


def _without_what_is_new(top: record_pb2.Record | record_pb2.Revision) -> None:
    """Take away what is another for each import: an id, a time, and the run it came by."""
    top.ClearField("revision_id")
    top.ClearField("source_run_id")
    if isinstance(top, record_pb2.Revision):
        top.ClearField("create_time")
    else:
        top.ClearField("update_time")

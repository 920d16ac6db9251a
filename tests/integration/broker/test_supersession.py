"""Which decision may replace which, over the wire: chains, cycles, other agents, and races."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from broker.api.v1 import record_pb2
from providers.model import HeadPut, Kind, State, Trust
from tests.fixtures.decisions import chained, changed, decisions, head, id_of, written
from tests.fixtures.desk import Desk, desk
from tests.fixtures.record_calls import (
    ARCHIVE,
    RESTORE,
    SUPERSEDE,
    UPDATE,
    Refused,
)
from tests.fixtures.stand_records import stored

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

__all__ = ["desk"]

CYCLE: Final = ("FAILED_PRECONDITION", "REPLACEMENT_CYCLE")
INVALID: Final = ("FAILED_PRECONDITION", "REPLACEMENT_INVALID")
TOO_LONG: Final = ("FAILED_PRECONDITION", "CHAIN_TOO_LONG")
HOPS_MAX: Final = 64
ROUNDS: Final = 12
SUPERSEDED: Final = record_pb2.RECORD_STATE_SUPERSEDED
OTHER: Final = "agent-b"


async def refuses(desk: Desk, record: str, replacement: str, wanted: tuple[str, str]) -> None:
    """Require a refusal that wrote nothing."""
    kept = await stored(desk.stand, [desk.project])
    reply = await desk.told(SUPERSEDE, record_id=record, replacement_record_id=replacement)
    assert (reply.code, reply.reason, reply.metadata) == (*wanted, {})
    assert reply.precondition
    assert record not in reply.text() and replacement not in reply.text()
    assert await stored(desk.stand, [desk.project]) == kept


async def test_valid(desk: Desk) -> None:
    """004-57: superseded, linked, trust kept; the replacement stays as it was."""
    await desk.made()
    one, other = await decisions(desk.stand, desk.project, 2, trust=Trust.APPROVED)
    before = await desk.head(other)
    after = await desk.changed(SUPERSEDE, one, replacement_record_id=other, reason="better")
    assert (after.state, after.trust) == (SUPERSEDED, record_pb2.TRUST_APPROVED)
    assert (after.superseded_by_record_id, after.revision) == (other, 2)
    revision = await desk.revision(after)
    assert revision.change_kind == record_pb2.CHANGE_KIND_DECISION_SUPERSEDED
    assert (revision.reason, revision.superseded_by_record_id) == ("better", other)
    assert await desk.head(one) == after
    assert await desk.head(other) == before
    for rpc in (SUPERSEDE, UPDATE, ARCHIVE):
        named = {"record_id": one, "replacement_record_id": other, "idempotency_key": f"k-{rpc}"}
        reply = await desk.told(rpc, expected_revision=2, **named)
        assert reply.reason == "STATE_NOT_ALLOWED"


async def test_by_what_is_archived_or_itself_superseded(desk: Desk) -> None:
    """004-58: the last of a chain has to be active or archived; what leads there may not be."""
    await desk.made()
    archived = head(state=State.ARCHIVED)
    chain = chained([head(), head(), archived])
    one, other = head(), head(trust=Trust.REJECTED)
    await written(desk.stand, desk.project, [*chain, one, other])
    assert (
        await desk.changed(SUPERSEDE, id_of(one), replacement_record_id=id_of(archived))
    ).state == SUPERSEDED
    after = await desk.changed(SUPERSEDE, id_of(other), replacement_record_id=id_of(chain[0]))
    assert after.superseded_by_record_id == id_of(chain[0]), "the link is as it was asked for"


# -------------------- what may not replace


def _alone(**changes: Any) -> Callable[[], list[HeadPut]]:
    return lambda: [head(**changes)]


def _through(**changes: Any) -> Callable[[], list[HeadPut]]:
    """A chain with such a record in its middle."""

    def made() -> list[HeadPut]:
        first, second, third = chained([head(), head(), head()])
        return [first, changed(second, **changes), third]

    return made


def _to_nowhere() -> list[HeadPut]:
    return [head(state=State.SUPERSEDED, superseded_by_record_id="absent")]


REPLACEMENTS: Final[dict[str, Callable[[], list[HeadPut]]]] = {
    "of another agent": _alone(agent=OTHER),
    "a memory": _alone(kind=Kind.MEMORY),
    "a session context": _alone(kind=Kind.SESSION_CONTEXT),
    "a proposal": _alone(kind=Kind.PROPOSAL, state=State.PENDING),
    "forgotten": _alone(state=State.FORGOTTEN),
    "leads to nowhere": _to_nowhere,
    "another agent in the middle": _through(agent_id=OTHER),
    "another agent at the end": lambda: chained([head(), head(), head(agent=OTHER)]),
    "a memory at the end": lambda: chained([head(), head(kind=Kind.MEMORY)]),
    "forgotten at the end": lambda: chained([head(), head(state=State.FORGOTTEN)]),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
async def test_what_may_not_replace(desk: Desk, name: str) -> None:
    """004-57, 004-58: no decision of the same agent, anywhere in the chain; told alike."""
    await desk.made()
    puts, one = REPLACEMENTS[name](), head()
    await written(desk.stand, desk.project, [*puts, one])
    await refuses(desk, id_of(one), id_of(puts[0]), INVALID)


async def test_absent_and_foreign_are_told_alike(desk: Desk) -> None:
    """004-56, 004-58: a replacement of another agent or project is told as absent."""
    await desk.made()
    (one,) = await decisions(desk.stand, desk.project)
    (foreign,) = await decisions(desk.stand, desk.project, agent=OTHER)
    (elsewhere,) = await decisions(desk.stand, desk.stand.project())
    answers = []
    for replacement in (foreign, elsewhere, "absent", one.upper()):
        reply = await desk.told(SUPERSEDE, record_id=one, replacement_record_id=replacement)
        assert (reply.code, reply.reason) == INVALID
        answers.append((reply.message, reply.metadata))
    assert all(answer == answers[0] for answer in answers)
    reply = await desk.told(
        SUPERSEDE, record_id=foreign, replacement_record_id=one, idempotency_key="k"
    )
    assert reply.reason == "RECORD_NOT_FOUND"


# -------------------- cycles


async def test_cycles(desk: Desk) -> None:
    """004-58: by itself, by what it replaced, by a chain that leads back or runs in a circle."""
    await desk.made()
    one, two, three, four = await decisions(desk.stand, desk.project, 4)
    await refuses(desk, one, one, CYCLE)
    await desk.changed(SUPERSEDE, two, replacement_record_id=one)
    await refuses(desk, one, two, CYCLE)
    await desk.changed(SUPERSEDE, three, replacement_record_id=two)
    await refuses(desk, one, three, CYCLE)
    await desk.changed(SUPERSEDE, one, replacement_record_id=four)
    await refuses(desk, four, three, CYCLE)
    circle = [head(), head()]
    linked = [
        changed(put, state=State.SUPERSEDED, superseded_by_record_id=id_of(other))
        for put, other in zip(circle, reversed(circle), strict=True)
    ]
    await written(desk.stand, desk.project, linked)
    await refuses(desk, four, id_of(circle[0]), CYCLE)


async def test_chain_length(desk: Desk) -> None:
    """004-58: 64 hops from a decision to the one that serves are walked, 65 are refused."""
    await desk.made()
    one, other = head(), head()
    chain = chained([head() for _ in range(HOPS_MAX + 1)])
    await written(desk.stand, desk.project, [*chain, one, other])
    await refuses(desk, id_of(one), id_of(chain[0]), TOO_LONG)
    after = await desk.changed(SUPERSEDE, id_of(other), replacement_record_id=id_of(chain[1]))
    assert after.state == SUPERSEDED
    await refuses(desk, id_of(one), id_of(other), TOO_LONG)
    await refuses(desk, id_of(chain[-1]), id_of(chain[1]), CYCLE)


async def test_a_chain_grown_one_by_one(desk: Desk) -> None:
    """004-58: hops count from the decision superseded now, not from those that lead to it."""
    await desk.made()
    puts = chained([head() for _ in range(HOPS_MAX + 1)])
    (newest,) = await decisions(desk.stand, desk.project)
    await written(desk.stand, desk.project, puts)
    grown = await desk.changed(SUPERSEDE, id_of(puts[-1]), replacement_record_id=newest)
    assert grown.state == SUPERSEDED


# -------------------- races


async def links(desk: Desk, ids: list[str]) -> dict[str, str]:
    """Return who is superseded by whom."""
    heads = [await desk.head(one) for one in ids]
    return {one.record_id: one.superseded_by_record_id for one in heads if one.state == SUPERSEDED}


def has_cycle(linked: dict[str, str]) -> bool:
    """Tell whether following links ever comes back."""
    for start, after in linked.items():
        seen, at = {start}, after
        while at in linked and at not in seen:
            seen.add(at)
            at = linked[at]
        if at in seen:
            return True
    return False


async def race(desk: Desk, ring: list[str]) -> list[Any]:
    """Supersede each of a ring by the next one, all at once."""
    after = [*ring[1:], ring[0]]
    return await asyncio.gather(
        *(
            desk.call(
                SUPERSEDE, record_id=one, replacement_record_id=other, idempotency_key=f"k-{one}"
            )
            for one, other in zip(ring, after, strict=True)
        )
    )


@pytest.mark.parametrize("size", [2, 3, 5])
async def test_racing_supersessions(desk: Desk, size: int) -> None:
    """004-59, 004-60: A by B while B by A: all but one pass, one meets the cycle; always."""
    await desk.made()
    for _ in range(ROUNDS):
        ring = await decisions(desk.stand, desk.project, size)
        replies = await race(desk, ring)
        refused = [reply for reply in replies if isinstance(reply, Refused)]
        assert [(reply.code, reply.reason) for reply in refused] == [CYCLE]
        linked = await links(desk, ring)
        assert len(linked) == size - 1
        assert not has_cycle(linked)


async def test_restored_while_it_replaces(desk: Desk) -> None:
    """004-59: a restore moves links too; racing a supersession it makes no cycle either."""
    await desk.made()
    for _ in range(ROUNDS):
        one, other = await decisions(desk.stand, desk.project, 2)
        before = await desk.changed(SUPERSEDE, one, replacement_record_id=other)
        restored, superseded = await asyncio.gather(
            desk.call(
                RESTORE,
                record_id=one,
                expected_revision=before.revision,
                idempotency_key=f"r-{one}",
            ),
            desk.call(
                SUPERSEDE, record_id=other, replacement_record_id=one, idempotency_key=f"s-{one}"
            ),
        )
        assert not isinstance(restored, Refused)
        if isinstance(superseded, Refused):
            assert (superseded.code, superseded.reason) == CYCLE
        assert not has_cycle(await links(desk, [one, other]))


@pytest.mark.parametrize("rpc", [ARCHIVE, RESTORE])
async def test_what_makes_no_link_meets_nobody(desk: Desk, rpc: str) -> None:
    """004-59, 004-60: changes of thirty-two decisions at once; none stands in another's way."""
    await desk.made()
    ids = await decisions(desk.stand, desk.project, 32)
    await asyncio.gather(
        *(desk.done(rpc, record_id=each, idempotency_key=f"change-{each}") for each in ids)
    )

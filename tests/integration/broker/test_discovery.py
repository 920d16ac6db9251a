"""A search through a project: two resources, three runs, one order, pages that lose nothing."""

import base64
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from broker.api.v1 import discovery_service_pb2 as pb
from broker.api.v1 import record_pb2
from providers.model import HeadPut, Kind, State
from tests.fixtures.decisions import changed, head, id_of
from tests.fixtures.desk import Desk
from tests.fixtures.record_calls import ARCHIVE, CREATE, SEARCH_PROJECT, UPDATE, scope
from tests.fixtures.two_resources import TwoResources, pin_runs
from tests.fixtures.wide import FULL, A, B, C, Wide, wide

__all__ = ["wide"]

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

INVALID: Final = ("INVALID_ARGUMENT", "PAGE_TOKEN_INVALID")
START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def made_at(put: HeadPut, microseconds: int, run: str) -> HeadPut:
    """Return a head of a run, made and last changed so long after the start."""
    at = START + timedelta(microseconds=microseconds)
    current = replace(put.record.current, create_time=at, source_run_id=run)
    return replace(put, record=replace(put.record, current=current, create_time=at))


def place_of(put: HeadPut) -> tuple[timedelta, str]:
    """Return what a head is ordered by."""
    return START - put.record.current.create_time, id_of(put)


def memories(count: int, runs: Sequence[str], chance: random.Random) -> list[HeadPut]:
    """Return memories of several agents; of some the times are equal."""
    return [
        made_at(
            head(Kind.MEMORY, agent=f"agent-{n % 7}"),
            chance.randrange(count // 2),
            runs[n % len(runs)],
        )
        for n in range(count)
    ]


async def test_a_thousand_records_while_others_write(wide: Wide) -> None:
    """004-69: 1,000 records of two resources and three runs: in order, none lost, none twice."""
    chance = random.Random(69)
    first, second = memories(500, (A, B), chance), memories(500, (C,), chance)
    await wide.two.put(wide.project, first=first, second=second)
    every = sorted((*first, *second), key=place_of)
    touched = {id_of(put) for put in chance.sample(every, 60)}
    owned = {id_of(put): put for put in every if id_of(put) in touched}
    seen: list[str] = []
    token, step = "", 0
    while step == 0 or token:
        reply = await wide.done(SEARCH_PROJECT, page_size=37, page_token=token)
        seen += [hit.record.record_id for hit in reply.hits]
        token = reply.next_page_token
        await _write_meanwhile(wide, step, owned)
        step += 1
        assert step < 40, "the pages do not end"
    assert step > 20
    unchanged = [id_of(put) for put in every if id_of(put) not in touched]
    assert [one for one in seen if one in {*unchanged}] == unchanged
    assert not {*seen} - {id_of(put) for put in every}, (
        "made meanwhile, so before the place reached"
    )
    assert len(await wide.hits(page_size=100, states=[2, 3])) == 1_000 + 2 * step


async def _write_meanwhile(wide: Wide, step: int, owned: dict[str, HeadPut]) -> None:
    for run in (A, C):
        await wide.made(f"new-{run}-{step}", run=run, agent="writer", content="new")
    for record_id in list(owned)[:3]:
        put = owned.pop(record_id)
        current = put.record.current
        given = {
            "scope": scope(wide.project, run=current.source_run_id or "", agent=current.agent_id),
            "record_id": record_id,
            "expected_revision": 1,
            "idempotency_key": f"change-{record_id}",
        }
        await wide.done(ARCHIVE if len(owned) % 2 else UPDATE, **given)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
async def test_equal_keys(wide: Wide, size: int) -> None:
    """004-69: copies that were changed at the same time come together, and no page cuts them."""
    copies = [made_at(head(Kind.MEMORY), n // 2, A) for n in range(4)]
    alone = [made_at(head(Kind.MEMORY), n, C) for n in range(3)]
    await wide.two.put(wide.project, first=copies, second=[*copies, *alone])
    pages = await wide.pages(page_size=size)
    wanted = sorted((*copies, *copies, *alone), key=place_of)
    found = [hit.record.record_id for page in pages for hit in page]
    assert found == [id_of(put) for put in wanted]
    for page in pages:
        ids = [hit.record.record_id for hit in page]
        assert len(page) <= max(size, 2)
        assert all(ids.count(one) == found.count(one) for one in ids)


async def test_a_copy_that_changed(wide: Wide) -> None:
    """004-69: the same record at two times is two hits, each in its place."""
    put = made_at(head(Kind.MEMORY), 5, A)
    await wide.two.put(wide.project, first=[put], second=[made_at(put, 9, A)])
    hits = await wide.hits(page_size=1)
    assert [hit.record.record_id for hit in hits] == [id_of(put)] * 2
    assert [hit.access_run_id for hit in hits] == [C, A]


async def test_access_runs(wide: Wide) -> None:
    """004-69: the run it was made in where that is pinned there, else the first that is."""
    runs = {5: A, 4: B, 3: "run-gone", 2: C}
    first = [made_at(head(Kind.MEMORY), at, run) for at, run in runs.items()]
    second = [made_at(head(Kind.MEMORY), 1, C), made_at(head(Kind.MEMORY), 0, A)]
    await wide.two.put(wide.project, first=first, second=second)
    hits = await wide.hits()
    told = [(hit.record.source_run_id, hit.access_run_id) for hit in hits]
    assert told == [(A, A), (B, B), ("run-gone", A), (C, A), (C, C), (A, C)]
    for hit in hits:
        within = scope(wide.project, run=hit.access_run_id, agent=hit.record.agent_id)
        assert (await wide.done("GetRecord", scope=within, record_id=hit.record.record_id)).record
    narrowed = await wide.hits(run_ids=[C, B])
    assert [hit.access_run_id for hit in narrowed] == [B, B, B, B, C, C]


async def test_whose_records(wide: Wide) -> None:
    """004-69: all agents of one project of the caller's tenant; nothing of another one."""
    for run, agent in ((A, "agent-a"), (B, "agent-b"), (C, "agent-c")):
        await wide.made(f"of-{agent}", run=run, agent=agent, content=agent)
    other = Desk(wide.stand, wide.channel, wide.stand.project())
    await other.made(content="elsewhere")
    assert await wide.contents() == ["agent-c", "agent-b", "agent-a"]
    theirs = await wide.cost({"tenant": "tenant-b"})
    assert (list(theirs.reply.hits), theirs.work) == ([], {}), "pins of another tenant are not seen"


async def test_no_pin(two_resources: TwoResources) -> None:
    """004-69: without a pinned run there is nothing to find, and nothing is pinned by looking."""
    stand = two_resources.first
    async with stand.channel() as channel:
        desk = Desk(stand, channel, stand.project())
        assert await desk.done(SEARCH_PROJECT) == pb.SearchProjectResponse()
    assert await stand.rows("knowledge.pins", desk.project) == 0
    assert len(stand.owner.questions[desk.project]) == 2


async def test_narrowed(wide: Wide) -> None:
    """004-69: by runs and by the time of their pins, from one on and before another."""
    for run in (A, B, C):
        await wide.made(run, run=run, content=run)
    assert await wide.contents(run_ids=[C]) == [C]
    assert await wide.contents(run_ids=[A]) == [B, A], "a run gives access to its resource"
    early = Timestamp(seconds=1_000_000)
    old = datetime.fromtimestamp(1_000_000, UTC)
    await pin_runs(wide.stand, wide.project, ("second-old",), create_time=old)
    assert await wide.contents(pinned_before=early) == []
    assert await wide.contents(pinned_before=Timestamp(seconds=1_000_000, nanos=1_000)) == [C]
    assert await wide.contents(pinned_from=early) == [C, B, A]
    late = Timestamp(seconds=1_000_001)
    assert [hit.access_run_id for hit in await wide.hits(pinned_from=late)] == [C, B, A]
    assert await wide.contents(run_ids=["second-old", A], pinned_from=late) == [B, A]
    assert await wide.contents(run_ids=["second-old"], pinned_from=late) == []


async def test_filters_and_views(wide: Wide) -> None:
    """004-66, 004-67, 004-69: filters act in every resource; BASIC has snippets."""
    for run in (A, C):
        await wide.made(f"{run}-1", run=run, content=f"blue {run}", tags=["sky"], importance=0.9)
        await wide.made(f"{run}-2", run=run, content=f"red {run}", importance=0.1)
    assert await wide.contents(query="BLUE") == [f"blue {C}", f"blue {A}"]
    assert await wide.contents(tags=["Sky"], importance_min=0.5) == [f"blue {C}", f"blue {A}"]
    assert await wide.contents(importance_max=0.1) == [f"red {C}", f"red {A}"]
    assert await wide.contents(kinds=[record_pb2.RECORD_KIND_DECISION]) == []
    assert await wide.contents(states=[record_pb2.RECORD_STATE_ARCHIVED]) == []
    basic = await wide.hits()
    assert [hit.record.snippet for hit in basic] == await wide.contents()
    assert not any(hit.record.content for hit in basic)
    gone = changed(head(Kind.MEMORY), state=State.FORGOTTEN)
    await wide.two.put(wide.project, second=[gone])
    assert len(await wide.hits(states=[*range(1, 6)])) == 4


async def test_large_records(wide: Wide) -> None:
    """004-69: a page ends early rather than to exceed 3 MiB, over all resources together."""
    for number in range(20):
        text = f"{number:02}" + "\U0001f308" * 39_990
        await wide.made(f"key-{number}", run=(A, C)[number % 2], content=text)
    pages = await wide.pages(page_size=100, view=FULL)
    assert len(pages) > 1
    numbers = [int(hit.record.content[:2]) for page in pages for hit in page]
    assert numbers == list(range(19, -1, -1))


IDENTIFIER: Final = "must be 1-256 ASCII letters, digits, . _ : -"
BEFORE: Final[list[tuple[dict[str, Any], dict[str, str]]]] = [
    ({"project_id": "a b"}, {"project_id": IDENTIFIER}),
    (
        {"run_ids": ["a", "a b", "a"]},
        {"run_ids[1]": IDENTIFIER, "run_ids[2]": "must not be there twice"},
    ),
    ({"run_ids": [f"r{n}" for n in range(501)]}, {"run_ids": "must be at most 500"}),
    ({"page_size": -1}, {"page_size": "must not be negative"}),
]
AFTER: Final[list[tuple[dict[str, Any], dict[str, str]]]] = [
    ({"pinned_from": Timestamp(nanos=-1)}, {"pinned_from": "must be a valid time"}),
    ({"pinned_before": Timestamp(seconds=2**40)}, {"pinned_before": "must be a valid time"}),
    ({"states": [record_pb2.RECORD_STATE_FORGOTTEN]}, {"states[0]": "must not be FORGOTTEN"}),
    (
        {"query": "a" * 257, "view": 9},
        {"query": "must be at most 256 code points", "view": "must be BASIC or FULL"},
    ),
]


@pytest.mark.memories("postgres", "redis")
@pytest.mark.parametrize(("changes", "violations"), [*BEFORE, *AFTER])
async def test_fields(wide: Wide, changes: dict[str, Any], violations: dict[str, str]) -> None:
    """004-48, 004-69: what goes to the owner is judged before it is asked, the rest after ①."""
    project = changes.get("project_id", wide.project)
    wide.stand.owner.questions[project].clear()
    reply = await wide.told(SEARCH_PROJECT, **changes)
    assert (reply.code, reply.violations) == ("INVALID_ARGUMENT", violations)
    asked = len(wide.stand.owner.questions[project])
    assert asked == (1 if any(changes == each for each, _ in AFTER) else 0)


async def test_a_token_is_bound_to_its_search(wide: Wide) -> None:
    """004-56, 004-69: another project, narrowing, filter or method refuses it; not the size."""
    for number in range(3):
        await wide.made(f"key-{number}", run=(A, C)[number % 2], content=f"blue {number}")
    since = Timestamp(seconds=1)
    given: dict[str, Any] = {
        "query": "blue",
        "run_ids": [A, C],
        "pinned_from": since,
        "page_size": 1,
        "view": FULL,
    }
    token = (await wide.done(SEARCH_PROJECT, **given)).next_page_token
    decoded = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    assert not [word for word in ("blue", wide.project, A, C) if word in decoded]
    given["page_token"] = token
    others: tuple[dict[str, Any], ...] = (
        {"query": "BLUE"},
        {"run_ids": [A]},
        {"run_ids": []},
        {"pinned_from": Timestamp(seconds=2)},
        {"pinned_before": Timestamp(seconds=2**32)},
        {"kinds": [record_pb2.RECORD_KIND_MEMORY]},
        {"view": record_pb2.RECORD_VIEW_BASIC},
        {"page_token": token[:-4]},
        {"page_token": "a" * 513},
    )
    for changes in others:
        reply = await wide.told(SEARCH_PROJECT, **(given | changes))
        assert (reply.code, reply.reason) == INVALID, changes
    other = Desk(wide.stand, wide.channel, wide.stand.project())
    await other.done(CREATE)
    assert (await other.told(SEARCH_PROJECT, page_token=token)).reason == INVALID[1]
    assert (await wide.told("SearchRecords", query="blue", page_token=token)).reason == INVALID[1]
    same = given | {"run_ids": [C, A], "page_size": 2}
    rest = await wide.done(SEARCH_PROJECT, {"sub": "actor-b"}, **same)
    assert [hit.record.content for hit in rest.hits] == ["blue 1", "blue 0"]

"""What calls cost a Redis server, counted in the commands that their scripts run.

A page costs the same in a project of 50,000 revisions as in a small one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from broker.devstack.redis import Flavour
from providers.conformance import specimens
from providers.conformance.delivery_steps import accepted, deliver
from providers.conformance.steps import position
from providers.deliveries import PendingEffectsRequest
from providers.exports import ExportRequest
from providers.model import ProjectKey, RevisionRef, WriteSet
from providers.redis.provider import RedisMemoryProvider
from providers.requests import (
    CandidatesRequest,
    Committed,
    LoadRequest,
    RevisionsRequest,
    SearchRequest,
)
from tests.fixtures.filling import filling, record, said
from tests.fixtures.redis import RedisBackend, fresh, own_redis
from tests.fixtures.redis_faults import instances

SECONDS = 60.0
SMALL, LARGE, BIG_TEXTS = (ProjectKey("t1", name) for name in ("small", "large", "big-texts"))
HEADS = {SMALL: (600, 1), LARGE: (8_400, 6)}
DELIVERED = {SMALL: 3, LARGE: 120}
PAGE, PENDING, LENGTH = 20, 30, 100
TAG = said().tags[0]
STRETCH_HEADS, STRETCH_BYTES = 500, 4 * 1024 * 1024
BIG, BIG_BYTES = "\U0001f308" * 40_000, 160_000


@pytest.fixture(scope="module", params=list(Flavour))
def filled(request: pytest.FixtureRequest) -> Iterator[RedisBackend]:
    """A small and a large project; what the tests ask for is the same in both."""
    with own_redis(request.param) as server, fresh(server) as backend:
        asyncio.run(_fill(backend))
        yield backend


async def _fill(backend: RedisBackend) -> None:
    async with instances(backend, 1) as (provider,):
        for project, (heads, revisions) in HEADS.items():
            for write in filling(project, heads, revisions):
                await _commit(provider, write)
            chain = specimens.history("long", LENGTH, agent_id="own")
            past = tuple(each.current for each in chain[:-1])
            await _commit(
                provider, specimens.write(project, specimens.put(chain[-1]), history=past)
            )
            rare = specimens.content("rare", tags=("rare", TAG))
            few = [specimens.memory(f"own-{n}", agent_id="own", content=rare) for n in range(5)]
            await _commit(provider, specimens.create(project, *few))
            effects = await accepted(provider, project, DELIVERED[project] + PENDING)
            for effect in effects[:-PENDING]:
                await deliver(provider, project, effect)


async def _commit(provider: RedisMemoryProvider, write: WriteSet) -> None:
    assert await provider.commit(write, timeout=SECONDS) == Committed()


@pytest.fixture
async def provider(filled: RedisBackend) -> AsyncIterator[RedisMemoryProvider]:
    async with instances(filled, 1) as (made,):
        await made.ready(timeout=SECONDS)
        yield made


async def cost(backend: RedisBackend, call: Awaitable[Any]) -> tuple[Any, dict[str, int]]:
    """Return what a call gives, and how often the server ran which command meanwhile."""
    backend.server.execute("CONFIG", "RESETSTAT")
    found = await call
    told = backend.server.execute("INFO", "commandstats")
    return found, {name.removeprefix("cmdstat_"): each["calls"] for name, each in told.items()}


def total(counts: dict[str, int]) -> int:
    """Return how many commands look at keys."""
    return sum(number for name, number in counts.items() if name[0] in "hz")


# -------------------- pages

Ask = Callable[[RedisMemoryProvider, ProjectKey], Awaitable[Any]]


def _search(**given: Any) -> Ask:
    return lambda provider, project: provider.search(
        SearchRequest(project=project, limit=PAGE, **given), timeout=SECONDS
    )


async def _later_page(provider: RedisMemoryProvider, project: ProjectKey) -> Any:
    asked = SearchRequest(project=project, agent_id=None, tags=(TAG,), limit=PAGE)
    first = await provider.search(asked, timeout=SECONDS)
    after = position(first.records[-1])
    return await _search(agent_id=None, tags=(TAG,), after=after)(provider, project)


ASKS: dict[str, tuple[Ask, int]] = {
    "load": (
        lambda provider, project: provider.load(
            LoadRequest(
                project=project,
                record_ids=("long", "own-1"),
                revisions=(RevisionRef("long", 7),),
                keys=("k",),
                graph=True,
                stream_run_id="run-1",
            ),
            timeout=SECONDS,
        ),
        10,
    ),
    "revisions": (
        lambda provider, project: provider.revisions(
            RevisionsRequest(
                project=project, agent_id="own", record_id="long", before=70, limit=PAGE
            ),
            timeout=SECONDS,
        ),
        PAGE + 5,
    ),
    "search, an agent's": (_search(agent_id="a3"), 2 * PAGE + 5),
    "search, a project's": (_search(agent_id=None), 2 * PAGE + 5),
    "search by tag": (_search(agent_id=None, tags=(TAG,)), 2 * PAGE + 5),
    "search by an agent's tag": (_search(agent_id="a3", tags=(TAG,)), 2 * PAGE + 5),
    "search by a tag that few have": (_search(agent_id=None, tags=(TAG, "rare")), 20),
    "search, a later page": (_later_page, 4 * PAGE + 10),
    "candidates": (
        lambda provider, project: provider.candidates(
            CandidatesRequest(project=project, agent_id="a3", run_id="run-1", limit=PAGE),
            timeout=SECONDS,
        ),
        2 * PAGE + 10,
    ),
    "pending effects": (
        lambda provider, project: provider.pending_effects(
            PendingEffectsRequest(project=project, run_id="run-1", after_sequence=0, limit=PAGE),
            timeout=SECONDS,
        ),
        2 * PAGE + 5,
    ),
    "export": (
        lambda provider, project: provider.export(
            ExportRequest(
                project=project,
                agent_id="own",
                record_ids=(),
                records_max=25,
                revisions_max=500,
                bytes_max=1_048_576,
            ),
            timeout=SECONDS,
        ),
        LENGTH + 5 + 20,
    ),
    "create": (
        lambda provider, project: _commit(provider, specimens.create(project, record())),
        30,
    ),
}


@pytest.mark.parametrize("name", ASKS)
async def test_a_page_costs_what_it_holds(
    filled: RedisBackend, provider: RedisMemoryProvider, name: str
) -> None:
    """004-66, 004-68, 004-82, 004-89: nothing costs more because the project is large."""
    ask, most = ASKS[name]
    small, spent = await cost(filled, ask(provider, SMALL))
    large, spent_there = await cost(filled, ask(provider, LARGE))
    assert type(small) is type(large)
    assert spent == spent_there
    assert 0 < total(spent) <= most


# -------------------- a text, which is looked for in every head


async def stretches(
    backend: RedisBackend, provider: RedisMemoryProvider, project: ProjectKey
) -> list[int]:
    """Look for a text that nobody has; return how many heads each script went through."""
    heads: list[int] = []
    read = provider._calls.read

    async def counted(*given: Any, **named: Any) -> Any:
        found, spent = await cost(backend, read(*given, **named))
        heads.append(spent.get("hget", 0) // 2)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider._calls, "read", counted)
        page = await _search(agent_id=None, text="nowhere")(provider, project)
    assert page.records == ()
    return heads


async def test_a_text_is_looked_for_in_stretches_of_heads(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """004-67: nobody else waits for more than 500 heads at a time."""
    heads = await stretches(filled, provider, LARGE)
    assert sum(heads) >= HEADS[LARGE][0]
    assert max(heads) <= STRETCH_HEADS
    assert len(heads) <= 2 * HEADS[LARGE][0] / STRETCH_HEADS


async def test_a_text_is_looked_for_in_stretches_of_text(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """004-67: nor for more than 4 MiB of text, however few heads that are."""
    for _ in range(30):
        made = [record(specimens.content(BIG)) for _ in range(2)]
        await _commit(provider, specimens.create(BIG_TEXTS, *made))
    heads = await stretches(filled, provider, BIG_TEXTS)
    assert sum(heads) == 60
    assert max(heads) <= STRETCH_BYTES // BIG_BYTES + 1

"""Recall beside many others, and what it costs a server: counted in the commands of its scripts."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from broker.devstack.redis import Flavour
from providers.conformance import specimens
from providers.conformance.recall_steps import (
    Remembered,
    followed,
    index,
    matched,
    near,
    recalled,
    tagged,
    unindexed,
)
from providers.entries import DIMENSION_MAX, RECORD_TERMS_MAX
from providers.errors import RecallScopeTooLargeError
from providers.model import ProjectKey, Record, State
from providers.recall import QUERY_TERMS_MAX, Superseded
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Committed
from tests.fixtures.filling import entry
from tests.fixtures.redis import RedisBackend, fresh, own_redis
from tests.fixtures.redis_faults import instances
from tests.integration.providers.test_redis_costs import cost, total

SECONDS = 60.0
SMALL, LARGE = ProjectKey("t1", "small"), ProjectKey("t1", "large")
OTHERS, AGENTS, AT_ONCE = 20_000, 20, 100
OWN, TOLD = 20, 10
HERE = specimens.vector(1.0, 0.0)
STRETCH, STRETCH_BYTES = 500, 1_048_576


def _own() -> Iterator[Remembered]:
    """Give 20 memories, of which 10 are found."""
    for number in range(OWN):
        word = "java" if number < TOLD else "python"
        turned = specimens.vector(1.0, float(number))
        yield (
            specimens.memory(f"own-{number:02}", agent_id="own"),
            specimens.entry(word, vector=turned),
        )


def _others() -> Iterator[Remembered]:
    """Give memories of others that would be found, and better."""
    found_by = specimens.entry("java java", vector=HERE)
    for number in range(OTHERS):
        yield specimens.memory(f"other-{number}", agent_id=f"a{number % AGENTS}"), found_by


async def _fill(backend: RedisBackend) -> None:
    async with instances(backend, 1) as (provider,):
        for project in (SMALL, LARGE):
            await remember(provider, project, _own())
        await remember(provider, LARGE, _others())


async def remember(
    provider: RedisMemoryProvider, project: ProjectKey, pairs: Iterable[Remembered]
) -> None:
    """Write new memories with their entries, many at once."""
    puts = [specimens.put(head, entry=found_by) for head, found_by in pairs]
    for start in range(0, len(puts), AT_ONCE):
        write = specimens.write(project, *puts[start : start + AT_ONCE])
        assert await provider.commit(write, timeout=SECONDS) == Committed()


@pytest.fixture(scope="module", params=list(Flavour))
def filled(request: pytest.FixtureRequest) -> Iterator[RedisBackend]:
    """A small project, and a large one with the same beside 20,000 memories of others."""
    with own_redis(request.param) as server, fresh(server) as backend:
        asyncio.run(_fill(backend))
        yield backend


@pytest.fixture
async def provider(filled: RedisBackend) -> AsyncIterator[RedisMemoryProvider]:
    async with instances(filled, 1) as (made,):
        await made.ready(timeout=SECONDS)
        yield made


async def test_the_few_of_one_are_found_beside_many_of_others(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """000-42, 002-21: 10 of 10, by words and by a vector, and at the cost of a small project."""
    spent = []
    for project in (SMALL, LARGE):
        call = recalled(provider, project, "java", vector=HERE, nearest_max=TOLD, agent_id="own")
        found, counts = await cost(filled, call)
        wanted = [f"own-{number:02}" for number in range(TOLD)]
        assert (matched(found), near(found)) == (wanted, wanted)
        assert (found.documents, found.frequencies, found.unindexed) == (OWN, (TOLD,), 0)
        spent.append(counts)
    assert spent[0] == spent[1]
    assert total(spent[1]) <= 2 * OWN + 5


async def test_what_is_recalled_costs_what_it_gives(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """004-68, 004-82: the most important, and those without an entry."""
    for project in (SMALL, LARGE):
        page, counts = await cost(filled, tagged(provider, project, agent_id="own", limit=5))
        assert (len(page.records), page.more) == (5, True)
        assert total(counts) <= 2 * 26 + 5
        found, counts = await cost(filled, unindexed(provider, project, vector_model="m2", limit=5))
        assert len(found) == 5
        assert total(counts) <= 2 * 5 + 10


async def stretches(
    backend: RedisBackend, provider: RedisMemoryProvider, *terms: str, **asked: object
) -> list[int]:
    """Recall; return how many memories each script went through."""
    looked: list[int] = []
    read = provider._calls.read

    async def counted(*given: object, **named: object) -> object:
        found, spent = await cost(backend, read(*given, **named))  # type: ignore[arg-type]
        looked.append((spent["hget"] - 1) // 2)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider._calls, "read", counted)
        await recalled(provider, LARGE, *terms, **asked)  # type: ignore[arg-type]
    return looked


async def test_a_scope_is_looked_through_in_stretches(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """004-67: nobody else waits for more than 500 memories at a time."""
    looked = await stretches(filled, provider, "java", agent_id="a3")
    assert sum(looked) == OTHERS // AGENTS
    assert max(looked) <= STRETCH
    assert len(looked) == 1 + OTHERS // AGENTS // STRETCH


async def test_large_entries_are_looked_through_few_at_a_time(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """004-67: nor for much text, and the less the more is looked for in it."""
    pairs = [
        (specimens.memory(f"wide-{n}", agent_id="wide"), entry(RECORD_TERMS_MAX, DIMENSION_MAX))
        for n in range(100)
    ]
    await remember(provider, LARGE, pairs)
    least = 8 * RECORD_TERMS_MAX + 4 * DIMENSION_MAX
    for count in (1, QUERY_TERMS_MAX):
        terms = tuple(f"none{n}" for n in range(count))
        looked = await stretches(filled, provider, *terms, agent_id="wide")
        assert sum(looked) == len(pairs)
        assert max(looked) <= STRETCH_BYTES // (least if count == 1 else 4 * least) + 1


async def test_what_changes_meanwhile_is_met_once(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """000-42: also what is made more important, or replaced, between one script and the next."""
    heads = [specimens.memory(f"r{number:03}", agent_id="busy") for number in range(600)]
    await remember(provider, LARGE, ((each, specimens.entry("java")) for each in heads))
    read, changes = provider._calls.read, iter(_changes(heads))

    async def slow(*given: object, **named: object) -> object:
        found = await read(*given, **named)  # type: ignore[arg-type]
        for later in next(changes, ()):
            over = heads[int(later.current.record_id[1:])]
            write = specimens.write(LARGE, specimens.put(later, over=over))
            assert await provider.commit(write, timeout=SECONDS) == Committed()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider._calls, "read", slow)
        found = await recalled(provider, LARGE, "java", agent_id="busy", superseded=Superseded.ALL)
    assert matched(found) == [each.current.record_id for each in heads]
    assert found.documents == len(heads)


def _changes(heads: list[Record]) -> list[list[Record]]:
    """Return what happens after the first script: at both ends of the order in which it walks."""
    weighty = specimens.content(importance=1.0)
    return [
        [
            *(specimens.after(heads[at], content=weighty) for at in (0, 598)),
            *(specimens.after(heads[at], state=State.SUPERSEDED) for at in (1, 599)),
        ]
    ]


async def test_the_bound_is_judged_before_anything_is_read(filled: RedisBackend) -> None:
    """004-84: a scope past the bound costs one question; one that is as large is looked through."""
    scope = OTHERS // AGENTS
    for most in (scope - 1, scope):
        made = RedisMemoryProvider(filled.options(), recall_records_max=most)
        try:
            await made.ready(timeout=SECONDS)
            call = recalled(made, LARGE, "java", agent_id="a3")
            if most < scope:
                with pytest.raises(RecallScopeTooLargeError):
                    await call
                _, counts = await cost(filled, _refused(made))
                assert total(counts) <= 3
            else:
                assert len((await call).matches) == scope
        finally:
            await made.close()


async def _refused(provider: RedisMemoryProvider) -> None:
    with pytest.raises(RecallScopeTooLargeError):
        await recalled(provider, LARGE, "java", agent_id="a3")


async def test_an_entry_can_be_put_again(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """001-11: it stands in one place among those of the project, whatever stood there before."""
    project = ProjectKey("t1", "again")
    head = specimens.memory("r1")
    await remember(provider, project, [(head, specimens.entry("java", vector=HERE))])
    for number in (1, 2, 1, 3):
        turned = specimens.vector(1.0, 0.0, model=f"m{number}")
        assert await index(provider, project, head, specimens.entry("java", vector=turned)) == 1
        for model in ("m1", "m2", "m3"):
            lacking = await unindexed(provider, project, vector_model=model)
            assert len(lacking) == (model != f"m{number}")
    assert await unindexed(provider, project) == ()


async def test_who_lacks_an_entry_is_told_while_it_does(
    filled: RedisBackend, provider: RedisMemoryProvider
) -> None:
    """000-01, 001-11: no more once a commit brings one, or the memory is forgotten."""
    project = ProjectKey("t1", "lacking")
    put, gone, left = (specimens.memory(name) for name in ("put", "gone", "left"))
    created = specimens.create(project, put, gone, left)
    assert await provider.commit(created, timeout=SECONDS) == Committed()
    assert await unindexed(provider, project) == (gone, left, put)
    await followed(provider, project, put, entry=specimens.entry("java"))
    await followed(provider, project, gone, state=State.FORGOTTEN)
    assert await unindexed(provider, project) == (left,)

"""Recall on Cosmos: a small scope beside a large one, many pages, and entries that are large."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from broker.devstack.cosmos import Fault
from providers.conformance import specimens
from providers.conformance.recall_steps import (
    index,
    listed,
    matched,
    near,
    recalled,
    remembered,
    tagged,
    unindexed,
)
from providers.conformance.steps import SECONDS, committed, created, stored
from providers.cosmos import keys
from providers.cosmos.batch import OPERATIONS_MAX, Batch
from providers.cosmos.encoding import encode
from providers.cosmos.provider import CosmosMemoryProvider
from providers.entries import DIMENSION_MAX, RECORD_TERMS_MAX, RecallEntry, TermVector, Vector
from providers.errors import (
    ProviderUnavailableError,
    RecallScopeTooLargeError,
)
from providers.model import ProjectKey, Record, State
from providers.recall import EntryPut, IndexRequest
from tests.fixtures.cosmos_resource import CosmosResource, opened

PROJECT = ProjectKey("t1", "p1")
OTHERS = 40
OTHERS_EACH = 50
OWN = 20
LARGE = pytest.mark.filterwarnings("ignore:Sending a large body")


def _turned(place: int, dimension: int = 8) -> Vector:
    """Make a vector that is further from the first axis for each place."""
    return specimens.vector(1.0, place / 10, *([0.0] * (dimension - 2)))


async def _remember(
    memory: CosmosResource, heads: Sequence[Record], entries: Sequence[RecallEntry]
) -> None:
    """Keep heads as a commit does, but no revisions: for thousands the stand-in needs too long."""
    partition = keys.partition_of(PROJECT)
    puts = [specimens.put(head, entry=entry) for head, entry in zip(heads, entries, strict=True)]
    for start in range(0, len(puts), OPERATIONS_MAX):
        batch = Batch(partition)
        part = specimens.write(PROJECT, *puts[start : start + OPERATIONS_MAX])
        for document in encode(part).heads.values():
            batch.create(document)
        await memory.container.execute_item_batch(batch.operations, partition)


async def test_a_small_scope_beside_two_thousand_others(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """000-42, 001-26: of 20 the 10 nearest, all 10 of 10, and the words' own statistics."""
    exact = specimens.entry("java build", vector=_turned(0))
    others = [
        specimens.memory(f"o{n}", agent_id=f"b{n % OTHERS}") for n in range(OTHERS * OTHERS_EACH)
    ]
    await _remember(memory, others, [exact] * len(others))
    order = random.Random(7).sample(range(OWN), OWN)
    mine = [specimens.memory(f"mine{n:02}") for n in order]
    entries = [specimens.entry("java" + " rare" * (n < 3), vector=_turned(n + 1)) for n in order]
    await _remember(memory, mine, entries)
    memory.server.control.forget()
    got = await recalled(
        cosmos_provider, PROJECT, "java", "rare", vector=_turned(0), nearest_max=10
    )
    assert memory.server.control.counts()["query"] == 1
    assert near(got) == [f"mine{n:02}" for n in range(10)]
    assert matched(got) == [f"mine{n:02}" for n in range(OWN)]
    assert (got.documents, got.frequencies) == (OWN, (OWN, 3))
    theirs = await recalled(cosmos_provider, PROJECT, "build", agent_id="b7", vector=_turned(0))
    assert (len(theirs.matches), len(theirs.nearest)) == (OTHERS_EACH, OTHERS_EACH)


async def test_two_thousand_of_one_agent_are_looked_through(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """004-84: what is negotiated is so: one more, and it is refused."""
    most = (await cosmos_provider.negotiate(timeout=SECONDS)).recall_records_max
    assert most == 2_000
    heads = [specimens.memory(f"r{n:04}") for n in range(most)]
    entry = specimens.entry("java", vector=_turned(1))
    await _remember(memory, heads, [entry] * most)
    memory.server.control.forget()
    got = await recalled(cosmos_provider, PROJECT, "java", vector=_turned(0))
    assert (len(got.matches), len(got.nearest), got.documents) == (most, 100, most)
    # Two pages, and two more that say that nothing of the first has changed.
    assert memory.server.control.counts()["query"] == 4
    await created(cosmos_provider, PROJECT, specimens.memory("one more"))
    with pytest.raises(RecallScopeTooLargeError) as refused:
        await recalled(cosmos_provider, PROJECT, "java")
    assert (refused.value.limit, refused.value.observed) == (most, most + 1)


async def test_pages_of_two_moments_are_no_answer(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """Q-9, B-1: of recall and of the most important ones; once nobody writes they are there."""
    heads = [specimens.memory(name) for name in ("left", "right", "top")]
    await remembered(cosmos_provider, PROJECT, *((each, specimens.entry("java")) for each in heads))
    control, partition = memory.server.control, keys.partition_of(PROJECT)
    for call in (
        lambda: recalled(cosmos_provider, PROJECT, "java"),
        lambda: tagged(cosmos_provider, PROJECT),
    ):
        control.inject(Fault(kind="query", items=1, delay_ms=40, times=1_000))
        reading = asyncio.create_task(call())
        while not reading.done():
            item = await memory.container.read_item(keys.head_id("left"), partition)
            await memory.container.replace_item(item["id"], item)
            await asyncio.sleep(0.005)
        with pytest.raises(ProviderUnavailableError):
            await reading
        control.clear()
    control.inject(Fault(kind="query", items=1, times=1_000))
    assert matched(await recalled(cosmos_provider, PROJECT, "java")) == ["left", "right", "top"]
    found = await tagged(cosmos_provider, PROJECT, limit=2)
    assert (listed(found), found.more) == (["left", "right"], True)


def _widest(seed: int) -> RecallEntry:
    """Make an entry of as many terms and numbers as one may have, of ordinary length."""
    draw = random.Random(seed)
    counts = {f"{draw.randrange(10**9):x}": draw.randint(1, 9) for _ in range(RECORD_TERMS_MAX)}
    numbers = [draw.gauss(0, 1) for _ in range(DIMENSION_MAX)]
    return RecallEntry(TermVector(counts, sum(counts.values())), specimens.vector(*numbers))


def _noisy(draw: random.Random) -> RecallEntry:
    """Make an entry of long terms that cannot be packed."""
    terms = ("".join(map(chr, draw.choices(range(0x4E00, 0x9FA5), k=60))) for _ in range(1_000))
    return RecallEntry(TermVector(dict.fromkeys(terms, 1), 1_000))


@LARGE
async def test_large_entries_are_kept_while_they_fit(
    cosmos_provider: CosmosMemoryProvider,
) -> None:
    """004-83, Q-10: by as many heads as a commit holds; they go along with each revision."""
    heads = [specimens.memory(f"r{n:02}") for n in range(49)]
    entries = [_widest(n) for n in range(len(heads))]
    puts = [specimens.put(head, entry=entry) for head, entry in zip(heads, entries, strict=True)]
    await committed(cosmos_provider, specimens.write(PROJECT, *puts))
    term = next(iter(entries[7].terms.counts))
    got = await recalled(cosmos_provider, PROJECT, term, vector=entries[9].vector)
    assert (matched(got), near(got)[0], got.documents) == (["r07"], "r09", 49)
    archived = [specimens.after(head, state=State.ARCHIVED) for head in heads]
    again = [specimens.after(head, state=State.ACTIVE) for head in archived]
    for old, new in ((heads, archived), (archived, again)):
        moved = [specimens.put(one, over=other) for one, other in zip(new, old, strict=True)]
        await committed(cosmos_provider, specimens.write(PROJECT, *moved))
    assert await recalled(cosmos_provider, PROJECT, term, vector=entries[9].vector) == got


@LARGE
async def test_entries_that_do_not_fit_are_left_to_be_built(
    cosmos_provider: CosmosMemoryProvider,
) -> None:
    """Q-10, 004-83: none is kept, new or old, and that is told; the rest of the commit is there."""
    heads = [specimens.memory(f"r{n:02}") for n in range(20)]
    old = specimens.entry("old", vector=_turned(0))
    await remembered(cosmos_provider, PROJECT, *((head, old) for head in heads))
    draw = random.Random(1)
    entries = [_noisy(draw) for _ in heads[1:]]
    later = [specimens.after(head, "Python.") for head in heads]
    puts = [specimens.put(later[0], over=heads[0])]
    puts += [
        specimens.put(new, over=before, entry=entry)
        for new, before, entry in zip(later[1:], heads[1:], entries, strict=True)
    ]
    await committed(cosmos_provider, specimens.write(PROJECT, *puts))
    await stored(cosmos_provider, PROJECT, *later)
    got = await recalled(cosmos_provider, PROJECT, "old", vector=_turned(0))
    assert (matched(got), near(got), got.unindexed) == (["r00"], ["r00"], 19)
    bare = await unindexed(cosmos_provider, PROJECT)
    assert bare == tuple(later[1:])
    built = tuple(
        EntryPut(record_id=now.record_id, revision_id=now.revision_id, entry=entry)
        for now, entry in zip((each.current for each in bare), entries, strict=True)
    )
    request = IndexRequest(project=PROJECT, entries=built)
    assert await cosmos_provider.index(request, timeout=SECONDS) == 19
    term = next(iter(entries[4].terms.counts))
    assert matched(await recalled(cosmos_provider, PROJECT, term)) == ["r05"]


@LARGE
async def test_many_large_entries_are_put_in_several_batches(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """I-2, 004-83: as few as they fit in, and all else of the heads is as it was."""
    draw = random.Random(3)
    text = "".join(map(chr, draw.choices(range(0x4E00, 0x9FA5), k=5_000)))
    heads = [specimens.memory(f"r{n:02}", f"{text}{n}") for n in range(100)]
    for start in range(0, len(heads), 20):
        await created(cosmos_provider, PROJECT, *heads[start : start + 20])
    puts = tuple(
        EntryPut(record_id=now.record_id, revision_id=now.revision_id, entry=_widest(place))
        for place, now in enumerate(each.current for each in heads)
    )
    memory.server.control.forget()
    request = IndexRequest(project=PROJECT, entries=puts)
    assert await cosmos_provider.index(request, timeout=SECONDS) == len(heads)
    sent = [each for each in memory.server.control.heads() if each["kind"] == "batch"]
    assert len(sent) > 1
    assert sum(each["bytes"] for each in sent) > (len(sent) - 1) * 1_900_000
    assert max(each["bytes"] for each in sent) <= 2_000_000
    await stored(cosmos_provider, PROJECT, *heads)
    got = await recalled(cosmos_provider, PROJECT, *list(puts[42].entry.terms.counts)[:3])
    assert matched(got) == ["r42"]


async def test_an_entry_is_never_put_over_what_others_wrote(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """I-2, Q-10: a head that moves on between read and write keeps what it was given."""
    head = specimens.memory("r1")
    await created(cosmos_provider, PROJECT, head)
    control = memory.server.control
    async with opened(memory) as other:
        control.inject(Fault(kind="batch", delay_ms=800))
        late = asyncio.create_task(index(cosmos_provider, PROJECT, head, specimens.entry("old")))
        while "batch" not in control.counts():  # noqa: ASYNC110 - another process counts
            await asyncio.sleep(0.01)
        later = specimens.after(head, "Python.")
        put = specimens.put(later, over=head, entry=specimens.entry("new"))
        await committed(other, specimens.write(PROJECT, put))
        assert await late == 0
    got = await recalled(cosmos_provider, PROJECT, "old", "new")
    assert got.frequencies == (0, 1)
    await stored(cosmos_provider, PROJECT, later)


async def test_index_gives_up_where_others_always_come_first(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """I-2: never for ever, and it may be repeated."""
    head, entry = specimens.memory("r1"), specimens.entry("java")
    await created(cosmos_provider, PROJECT, head)
    memory.server.control.forget()
    memory.server.control.inject(Fault(kind="batch", inner=412, times=100))
    with pytest.raises(ProviderUnavailableError):
        await index(cosmos_provider, PROJECT, head, entry)
    assert memory.server.control.counts()["batch"] == 5
    memory.server.control.clear()
    assert await index(cosmos_provider, PROJECT, head, entry) == 1

"""How large one write may be: counted before it is sent, and packed closer before it is refused."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from providers.conformance import specimens
from providers.conformance.recall_steps import recalled
from providers.conformance.steps import candidates, commit, committed, pages, search, stored
from providers.conformance.transfer_steps import as_imported, brought, chain_of, exported
from providers.cosmos import keys
from providers.cosmos.batch import Batch
from providers.cosmos.provider import CosmosMemoryProvider
from providers.entries import RECORD_TERMS_MAX, RecallEntry, TermVector
from providers.errors import WriteSetTooLargeError
from providers.model import Kind, ProjectKey, Record, WriteSet
from providers.requests import AlreadyExists
from tests.fixtures.cosmos_resource import CosmosResource

PROJECT = ProjectKey("t1", "p1")
BUNDLE_BYTES = 1_048_576
RECORDS = 25
LARGE = pytest.mark.filterwarnings("ignore:Sending a large body")
ALPHABETS = {
    "letters": "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-",
    "quotes": '"\\',
    "control characters": "".join(map(chr, range(1, 32))),
    "CJK": "".join(map(chr, range(0x4E00, 0x9FA5))),
    "emoji": "".join(map(chr, range(0x1F300, 0x1F64F))),
}


def _text(alphabet: str, size: int, *, seed: int = 0) -> str:
    """Make text of many words, some of them frequent, as real text is; no two seeds alike."""
    draw = random.Random(f"{alphabet}{seed}")
    words = ["".join(draw.choices(alphabet, k=draw.randint(1, 9))) for _ in range(2_000)]
    weights = [1 / (place + 2) for place in range(len(words))]
    text = "".join(draw.choices(words, weights, k=size))
    return text.encode()[:size].decode(errors="ignore")


def _noise(size: int) -> str:
    """Make text that cannot be packed."""
    draw = random.Random(size)
    return "".join(draw.choices(ALPHABETS["CJK"], k=size // 3))


def _entry(seed: int) -> RecallEntry:
    """Make an entry of as many terms as one has, such as texts without spaces have: of pairs."""
    draw = random.Random(seed)
    counts: dict[str, int] = {}
    while len(counts) < RECORD_TERMS_MAX:
        counts["".join(draw.choices(ALPHABETS["CJK"], k=2))] = draw.choice((1, 1, 1, 2, 3))
    numbers = [draw.gauss(0, 1) for _ in range(384)]
    terms = TermVector(counts, sum(counts.values()))
    return RecallEntry(terms, specimens.vector(*numbers))


def _sent(memory: CosmosResource) -> list[dict[str, Any]]:
    return [each for each in memory.server.control.heads() if each["kind"] == "batch"]


@LARGE
@pytest.mark.parametrize("script", ALPHABETS)
async def test_a_bundle_of_large_records_is_one_batch(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource, script: str
) -> None:
    """004-83, C-1: 1 MiB in 25 records of a revision each, with all the terms they may have."""
    texts = [_text(ALPHABETS[script], BUNDLE_BYTES // RECORDS - 64, seed=n) for n in range(RECORDS)]
    moved = [chain_of(specimens.memory(f"r{n:02}", text)) for n, text in enumerate(texts)]
    bare = brought(PROJECT, moved, transfer_expected=0)
    puts = [replace(put, entry=_entry(seed)) for seed, put in enumerate(bare.heads)]
    write = replace(bare, heads=tuple(puts))
    memory.server.control.forget()
    await committed(cosmos_provider, write)
    (sent,) = _sent(memory)
    assert sent["bytes"] <= 2_000_000
    looked = await recalled(cosmos_provider, PROJECT, "java")
    # Beside text that is hard to pack they have no room.
    assert (looked.documents, looked.unindexed) in ((RECORDS, 0), (0, RECORDS))
    assert list(await exported(cosmos_provider, PROJECT)) == as_imported(write)
    heads = [put.record for put in write.heads]
    await stored(cosmos_provider, PROJECT, *heads)
    found = await search(cosmos_provider, PROJECT, text=texts[7][-300:].upper(), limit=100)
    assert found.records == (heads[7],)
    entering = await candidates(cosmos_provider, PROJECT)
    assert sorted(entering.records, key=lambda each: each.current.record_id) == heads
    history = await pages(cosmos_provider, PROJECT, "r00", limit=1)
    assert history == [moved[0][1][0], heads[0].current]


@LARGE
async def test_large_records_grow_on(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """004-88: what a head had in a segment is read there still when the record has moved on."""
    text = _noise(BUNDLE_BYTES // 10)
    records = [specimens.memory(f"r{n}", text + str(n)) for n in range(8)]
    await committed(cosmos_provider, _beside_history(records))
    head = await memory.container.read_item(keys.head_id("r3"), keys.partition_of(PROJECT))
    assert (head["rest"], head["packed"]) == (None, keys.segment_id("r3", 1))
    later = specimens.after(records[3], "short now")
    await committed(
        cosmos_provider, specimens.write(PROJECT, specimens.put(later, over=records[3]))
    )
    await stored(cosmos_provider, PROJECT, later, *records[4:])
    history = await pages(cosmos_provider, PROJECT, "r3")
    assert history == [records[3].current, later.current]
    thief = specimens.memory("thief", revision_id=records[3].current.revision_id)
    outcome = await commit(cosmos_provider, specimens.create(PROJECT, thief))
    assert outcome == AlreadyExists("thief")


async def test_what_is_too_large_is_not_sent(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """004-35: by operations and by bytes; nothing is written, and less at once is."""
    many = [specimens.memory(f"r{n}") for n in range(50)]
    text = _noise(160_000)
    large = [specimens.memory(f"l{n}", text[n:] + text[:n]) for n in range(12)]
    for write in (specimens.create(PROJECT, *many), _beside_history(large)):
        with pytest.raises(WriteSetTooLargeError):
            await commit(cosmos_provider, write)
    assert _sent(memory) == []
    await committed(cosmos_provider, specimens.create(PROJECT, *many[:49]))
    assert [each["operations"] for each in _sent(memory)] == [99]


def _beside_history(records: Sequence[Record]) -> WriteSet:
    """Create records beside one that has a past: without one so much text is not taken (C-15)."""
    past, now = specimens.history("old", 2)
    return specimens.create(PROJECT, *records, now, history=(past.current,))


def _kinds(text: str) -> list[Record]:
    facet = specimens.facet(metadata={"a": text})
    said = specimens.content(text, rationale=text, tags=(text[:100],))
    return [
        specimens.memory("m", content=said, facet=facet, reason=text[:200]),
        specimens.decision("d"),
        specimens.proposal("p"),
        specimens.memory("s", kind=Kind.SESSION_CONTEXT),
    ]


@pytest.mark.parametrize("script", ALPHABETS)
async def test_bytes_are_counted_as_they_are_sent(
    cosmos_provider: CosmosMemoryProvider,
    memory: CosmosResource,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
) -> None:
    """004-83: never fewer than are sent, and not many more."""
    records = _kinds(_text(ALPHABETS[script], 4_000))
    write = specimens.create(
        PROJECT,
        *records,
        tombstones=(specimens.tombstone("grave"),),
        effect=specimens.effect(1),
        **specimens.claiming("m", "claim"),
    )
    counted: list[int] = []
    check = Batch.check

    def seen(batch: Batch) -> None:
        counted.append(batch.size)
        check(batch)

    monkeypatch.setattr(Batch, "check", seen)
    await committed(cosmos_provider, write)
    following = specimens.after(records[0], "more")
    await committed(
        cosmos_provider, specimens.write(PROJECT, specimens.put(following, over=records[0]))
    )
    for each, size in zip(_sent(memory), counted, strict=True):
        assert each["bytes"] <= size <= each["bytes"] + 128 * each["operations"]

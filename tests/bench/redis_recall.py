"""What is recalled while it is measured: as many memories of one agent as may be."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import partial

from providers.conformance import specimens
from providers.entries import RECORD_TERMS_MAX
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, WriteSet
from providers.recall import (
    QUERY_TERMS_MAX,
    Eligible,
    EntryPut,
    IndexRequest,
    RecallRequest,
    TaggedRequest,
    UnindexedRequest,
)
from tests.fixtures.filling import entry, filling

USUAL, WORDY = (ProjectKey("tenant-a", name) for name in ("usual", "wordy"))
"""Memories of 60 words each, and of as many words and numbers as may be."""
HEADS = {USUAL: 10_000, WORDY: 500}
AGENT, SECONDS = "agent-a", 60.0
LARGEST = partial(entry, RECORD_TERMS_MAX, 1_536)
WORDS = tuple(f"word{number:04}" for number in range(0, QUERY_TERMS_MAX * 15, 15))


def prepared() -> Iterator[WriteSet]:
    """Give the write sets that make all of them."""
    for project, entries in ((USUAL, entry), (WORDY, LARGEST)):
        yield from filling(project, HEADS[project], 1, entries=entries, agent_id=AGENT)


def asked(provider: IMemoryProvider) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return what is measured, by name."""
    usual, wordy = (_eligible(project) for project in (USUAL, WORDY))
    near, nearer = entry().vector, LARGEST().vector
    requests = {
        "8 words": RecallRequest(eligible=usual, terms=WORDS[:8]),
        "64 words": RecallRequest(eligible=usual, terms=WORDS),
        "a vector": RecallRequest(eligible=usual, vector=near),
        "8 words and a vector": RecallRequest(eligible=usual, terms=WORDS[:8], vector=near),
        "8 words of 2,048": RecallRequest(eligible=wordy, terms=WORDS[:8]),
        "64 words of 2,048": RecallRequest(eligible=wordy, terms=WORDS),
        "all of 2,048": RecallRequest(eligible=wordy, terms=WORDS, vector=nearer),
    }
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        f"recall by {name}, each stretch": partial(provider.recall, request, timeout=SECONDS)
        for name, request in requests.items()
    }
    most = TaggedRequest(eligible=usual, limit=100)
    none = TaggedRequest(eligible=_eligible(USUAL, tags=("nowhere",)), limit=100)
    bare = UnindexedRequest(project=USUAL, vector_model="another")
    calls["tagged, 100"] = lambda: provider.tagged(most, timeout=SECONDS)
    calls["tagged as nobody, each stretch"] = lambda: provider.tagged(none, timeout=SECONDS)
    calls["unindexed, 100"] = lambda: provider.unindexed(bare, timeout=SECONDS)
    calls["index, 100 of 2,048 words, each part"] = partial(_index, provider)
    return calls


def _eligible(project: ProjectKey, **given: tuple[str, ...]) -> Eligible:
    now = specimens.START + timedelta(minutes=1)
    return Eligible(project=project, agent_id=AGENT, at=now, **given)  # type: ignore[arg-type]


async def _index(provider: IMemoryProvider) -> None:
    bare = UnindexedRequest(project=WORDY, vector_model="another")
    found = await provider.unindexed(bare, timeout=SECONDS)
    puts = [
        EntryPut(record_id=now.record_id, revision_id=now.revision_id, entry=LARGEST())
        for now in (each.current for each in found.records)
    ]
    request = IndexRequest(project=WORDY, entries=tuple(puts))
    assert await provider.index(request, timeout=SECONDS) == len(puts)

"""What many laws do: write, read back, and try again while a store comes back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.errors import (
    OutcomeUnknownError,
    ProviderThrottledError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, ReceiptKey, Record, Revision, RevisionRef, WriteSet
from providers.requests import (
    Candidates,
    CandidatesRequest,
    CommitOutcome,
    Committed,
    Contended,
    Loaded,
    LoadRequest,
    RevisionsPage,
    RevisionsRequest,
    SearchPage,
    SearchPosition,
    SearchRequest,
)

SECONDS = 20.0
"""The time a law gives a call that it expects to end well."""

AGENT = "a1"
PASSING = (
    OutcomeUnknownError,
    ProviderThrottledError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
RECOVERY_SECONDS = 30.0
CONTENDED_MAX = 50
PART = 40

T = TypeVar("T")


async def commit(provider: IMemoryProvider, write_set: WriteSet) -> CommitOutcome:
    """Commit with time enough."""
    return await provider.commit(write_set, timeout=SECONDS)


async def committed(provider: IMemoryProvider, *write_sets: WriteSet) -> None:
    """Commit in turn and expect each to be applied."""
    for each in write_sets:
        expect.equal(await commit(provider, each), Committed(), "a good commit")


async def created(provider: IMemoryProvider, project: ProjectKey, *records: Record) -> None:
    """Write new records, few at a time: in a store whose commits are small too."""
    for start in range(0, len(records), PART):
        part = records[start : start + PART]
        await committed(provider, specimens.create(project, *part))


async def settled(provider: IMemoryProvider, write_set: WriteSet) -> CommitOutcome:
    """Commit, again as long as the store answers Contended, which it may do under contention."""
    for _ in range(CONTENDED_MAX):
        outcome = await commit(provider, write_set)
        if not isinstance(outcome, Contended):
            return outcome
        await asyncio.sleep(0.01)
    raise expect.LawBrokenError(f"still Contended after {CONTENDED_MAX} attempts")


async def load(
    provider: IMemoryProvider, project: ProjectKey, *record_ids: str, **asked: Any
) -> Loaded:
    """Load; ``asked`` are further fields of the request."""
    request = LoadRequest(project=project, record_ids=record_ids, **asked)
    return await provider.load(request, timeout=SECONDS)


async def head(provider: IMemoryProvider, project: ProjectKey, record_id: str) -> Record | None:
    """Load one head."""
    return (await load(provider, project, record_id)).heads.get(record_id)


def present(loaded: Loaded, record_id: str) -> Record:
    """Expect a head among what was loaded."""
    return expect.some(loaded.heads.get(record_id), f"the head of {record_id!r}")


async def stored(provider: IMemoryProvider, project: ProjectKey, *records: Record) -> None:
    """Expect these heads to be stored exactly so, each with its revision."""
    refs = tuple(RevisionRef(each.current.record_id, each.current.revision) for each in records)
    loaded = await load(provider, project, *(each.record_id for each in refs), revisions=refs)
    for each, ref in zip(records, refs, strict=True):
        expect.equal(loaded.heads.get(ref.record_id), each, f"the head of {ref.record_id!r}")
        expect.equal(loaded.revisions.get(ref), each.current, f"revision {ref.revision}")


async def nothing_of(
    provider: IMemoryProvider, write_set: WriteSet, *, known: Iterable[Record] = ()
) -> None:
    """Expect that nothing of a write set was applied: ``known`` heads are as they were."""
    before = {each.current.record_id: each for each in known}
    put = [each.record.current for each in write_set.heads]
    loaded = await load(
        provider,
        write_set.project,
        *(each.record_id for each in put),
        revisions=tuple(RevisionRef(each.record_id, each.revision) for each in put),
        receipt=write_set.receipt.key,
    )
    expect.equal(loaded.receipt, None, "the receipt of a refused commit")
    expect.equal(dict(loaded.heads), before, "the heads after a refused commit")
    ids = {each.revision_id for each in put}
    found = [each for each in loaded.revisions.values() if each.revision_id in ids]
    expect.equal(found, [], "the revisions of a refused commit")


async def page(
    provider: IMemoryProvider,
    project: ProjectKey,
    record_id: str,
    *,
    before: int | None = None,
    limit: int = 100,
    agent_id: str = AGENT,
    **asked: Any,
) -> RevisionsPage:
    """Read one page of a history; ``asked`` are further fields of the request."""
    request = RevisionsRequest(
        project=project,
        agent_id=agent_id,
        record_id=record_id,
        before=before,
        limit=limit,
        **asked,
    )
    return await provider.revisions(request, timeout=SECONDS)


async def pages(
    provider: IMemoryProvider, project: ProjectKey, record_id: str, *, limit: int = 100
) -> list[Revision]:
    """Read a whole history page by page, oldest first."""
    found: list[Revision] = []
    before: int | None = None
    while True:
        got = await page(provider, project, record_id, before=before, limit=limit)
        expect.that(got.found, f"the history of {record_id!r} is found")
        expect.that(len(got.revisions) <= limit, "a page holds at most its limit")
        below = all(before is None or each.revision < before for each in got.revisions)
        expect.that(below, f"every revision of the page is below {before}")
        found += got.revisions
        if not got.more:
            return found[::-1]
        expect.equal(len(got.revisions), limit, "the size of a page that others follow")
        before = got.revisions[-1].revision
        await asyncio.sleep(0)


async def search(
    provider: IMemoryProvider, project: ProjectKey, *, agent_id: str | None = AGENT, **asked: Any
) -> SearchPage:
    """Search one page; ``asked`` are further fields of the request."""
    request = SearchRequest(project=project, agent_id=agent_id, **asked)
    return await provider.search(request, timeout=SECONDS)


async def searched(
    provider: IMemoryProvider, project: ProjectKey, *, limit: int = 100, **asked: Any
) -> list[Record]:
    """Search page after page to the end."""
    found: list[Record] = []
    after: SearchPosition | None = None
    while True:
        got = await search(provider, project, limit=limit, after=after, **asked)
        expect.that(len(got.records) <= limit, "a page holds at most its limit")
        found += got.records
        if not got.more:
            return found
        expect.equal(len(got.records), limit, "the size of a page that others follow")
        after = position(got.records[-1])
        await asyncio.sleep(0)


def position(record: Record) -> SearchPosition:
    """Name where a page ends that ends with this record."""
    return SearchPosition(record.current.create_time, record.current.record_id)


async def candidates(
    provider: IMemoryProvider,
    project: ProjectKey,
    *,
    agent_id: str = AGENT,
    run_id: str = "run-1",
    limit: int = 100,
    **asked: Any,
) -> Candidates:
    """Ask for context candidates; ``asked`` are further fields of the request."""
    request = CandidatesRequest(
        project=project, agent_id=agent_id, run_id=run_id, limit=limit, **asked
    )
    return await provider.candidates(request, timeout=SECONDS)


def names(found: Candidates) -> list[str]:
    """Name candidates in their order."""
    return [each.current.record_id for each in found.records]


def trips(bench: Bench, before: int, call: str) -> None:
    """Expect a call to have taken as many round trips as the store needs for it, and no more."""
    taken, most = bench.round_trips() - before, bench.declaration.trips.get(call, 1)
    expect.that(1 <= taken <= most, f"{call} took {taken} round trips, at most {most}")


async def receipt_of(provider: IMemoryProvider, project: ProjectKey, key: ReceiptKey) -> Loaded:
    """Load a receipt alone."""
    return await load(provider, project, receipt=key)


async def gathered(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Run calls side by side; one that raises fails the law, after all have ended."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for each in results:
        if isinstance(each, BaseException):
            raise each
    return [each for each in results if not isinstance(each, BaseException)]


async def persist(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call while the store is away, as a caller with a receipt key may."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + RECOVERY_SECONDS
    while True:
        try:
            return await call()
        except PASSING as error:
            if loop.time() > deadline:
                raise expect.LawBrokenError("the provider does not recover") from error
            await asyncio.sleep(0.05)

"""What laws of recall do: remember with an entry, recall, and name what came back."""

from datetime import timedelta
from typing import Any

from providers.conformance import expect, specimens
from providers.conformance.steps import AGENT, SECONDS, committed
from providers.entries import RecallEntry, Vector
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, Record
from providers.recall import (
    Eligible,
    EntryPut,
    IndexRequest,
    Recalled,
    RecallRequest,
    TaggedRequest,
    UnindexedRequest,
)
from providers.requests import SearchPage

NOW = specimens.START + timedelta(minutes=1)
"""When laws ask, if they name no time: a little after what they wrote."""

PART = 20
"""How many heads with entries go into one commit: a small store can take them too."""

Remembered = tuple[Record, RecallEntry]


async def remembered(provider: IMemoryProvider, project: ProjectKey, *pairs: Remembered) -> None:
    """Write new heads, each with its entry, few at a time."""
    for start in range(0, len(pairs), PART):
        puts = [specimens.put(head, entry=entry) for head, entry in pairs[start : start + PART]]
        await committed(provider, specimens.write(project, *puts))


async def followed(
    provider: IMemoryProvider,
    project: ProjectKey,
    record: Record,
    *,
    entry: RecallEntry | None = None,
    **changes: Any,
) -> Record:
    """Write the next revision of a head, with an entry or without, and return it."""
    later = specimens.after(record, **changes)
    put = specimens.put(later, over=record, entry=entry)
    await committed(provider, specimens.write(project, put))
    return later


def eligible(project: ProjectKey, **asked: Any) -> Eligible:
    """Say which memories may be given back; ``asked`` are further fields."""
    return Eligible(**{"project": project, "agent_id": AGENT, "at": NOW, **asked})


async def recalled(
    provider: IMemoryProvider,
    project: ProjectKey,
    *terms: str,
    vector: Vector | None = None,
    nearest_max: int = 100,
    **asked: Any,
) -> Recalled:
    """Recall; ``asked`` are fields of what is eligible."""
    request = RecallRequest(
        eligible=eligible(project, **asked), terms=terms, vector=vector, nearest_max=nearest_max
    )
    return await provider.recall(request, timeout=SECONDS)


async def tagged(
    provider: IMemoryProvider, project: ProjectKey, *, limit: int = 100, **asked: Any
) -> SearchPage:
    """Ask for the most important ones; ``asked`` are fields of what is eligible."""
    request = TaggedRequest(eligible=eligible(project, **asked), limit=limit)
    return await provider.tagged(request, timeout=SECONDS)


async def unindexed(
    provider: IMemoryProvider, project: ProjectKey, **asked: Any
) -> tuple[Record, ...]:
    """Ask for a page of memories without an entry; ``asked`` are fields of the request."""
    request = UnindexedRequest(project=project, **asked)
    return (await provider.unindexed(request, timeout=SECONDS)).records


async def index(
    provider: IMemoryProvider, project: ProjectKey, record: Record, entry: RecallEntry
) -> int:
    """Put an entry for a head as it is given here."""
    now = record.current
    put = EntryPut(record_id=now.record_id, revision_id=now.revision_id, entry=entry)
    return await provider.index(IndexRequest(project=project, entries=(put,)), timeout=SECONDS)


def matched(found: Recalled) -> list[str]:
    """Name the matches, sorted, since their order means nothing."""
    return sorted(each.record_id for each in found.matches)


def near(found: Recalled) -> list[str]:
    """Name the nearest in their order."""
    return [each.record_id for each in found.nearest]


def listed(found: SearchPage) -> list[str]:
    """Name the heads of a page in their order."""
    return [each.current.record_id for each in found.records]


def found_by(found: Recalled, record_id: str) -> tuple[tuple[int, ...], int]:
    """Expect a record to match once, and return its counts and its length."""
    matches = [each for each in found.matches if each.record_id == record_id]
    expect.equal(len(matches), 1, f"how often {record_id!r} matches")
    return matches[0].counts, matches[0].length

"""Pages of a search over several resources: one order, cut once (004-69).

The order is that of each resource: update time descending, then record id ascending. Several
resources may hold the same record at the same time, such as copies made by an import. Their keys
are equal, and the position of a page cannot tell them apart: they are one group, on one page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

from broker.domain.errors import ReplyTooLargeError
from broker.domain.paging import REPLY_BYTES_MAX
from broker.domain.reply_size import bytes_at_most
from broker.domain.requests import ProjectHit
from providers.model import Record, ResourceIdentity
from providers.requests import SearchPage

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Key = tuple[timedelta, str]


@dataclass(frozen=True, slots=True)
class Place:
    """One resource that is searched, and the runs pinned to it: ``first_run_id`` is the lowest."""

    resource: ResourceIdentity
    run_ids: frozenset[str]
    first_run_id: str


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """A page in order, and whether more follows it."""

    hits: tuple[ProjectHit, ...]
    more: bool


def merged_page(
    found: Sequence[tuple[Place, SearchPage]], limit: int, *, full: bool
) -> ProjectPage:
    """Return the first ``limit`` of what all resources hold after the same position.

    Each of them was asked for ``limit`` heads. A page holds more than ``limit`` where one group
    alone does. With ``full`` it ends early rather than to pass the largest reply.

    Raises:
        ReplyTooLargeError: one group alone passes the largest reply. Not retryable.
    """
    hits: list[ProjectHit] = []
    room = REPLY_BYTES_MAX
    more = any(page.more for _, page in found)
    for group in _known_groups(found):
        added = _hits(group)
        room -= bytes_at_most(hit.record for hit in added) if full else 0
        if hits and (len(hits) + len(added) > limit or room < 0):
            return ProjectPage(tuple(hits), more=True)
        if room < 0:
            raise ReplyTooLargeError("copies of one record pass the largest reply; take view BASIC")
        hits += added
    return ProjectPage(tuple(hits), more)


def _known_groups(
    found: Sequence[tuple[Place, SearchPage]],
) -> Iterator[list[tuple[Place, Record]]]:
    """Give what has equal keys together, in order, as far as every resource was looked into."""
    ends = [_key(page.records[-1]) for _, page in found if page.more]
    known = sorted(
        ((place, record) for place, page in found for record in page.records),
        key=lambda one: (_key(one[1]), one[0].first_run_id),
    )
    for key, group in groupby(known, key=lambda one: _key(one[1])):
        if any(key > end for end in ends):
            return
        yield list(group)


def _hits(group: Sequence[tuple[Place, Record]]) -> list[ProjectHit]:
    """Return a hit for each resource; what one resource gave twice, by two ids, is one hit."""
    held: dict[tuple[ResourceIdentity, str], list[tuple[Place, Record]]] = {}
    for place, record in group:
        revision_id = record.current.revision_id
        held.setdefault((place.resource, revision_id), []).append((place, record))
    return [
        ProjectHit(same[0][1], _access_run(same[0][1], [place for place, _ in same]))
        for same in held.values()
    ]


def _access_run(record: Record, places: Sequence[Place]) -> str:
    source = record.current.source_run_id
    if source is not None and any(source in place.run_ids for place in places):
        return source
    return min(place.first_run_id for place in places)


def _key(record: Record) -> _Key:
    current = record.current
    return _EPOCH - current.create_time, current.record_id

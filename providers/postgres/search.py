"""Search: each page is one statement, of the two that can find it."""

import re
from collections.abc import Iterable, Iterator

from providers.folding import folded, search_tag
from providers.marker import check_marker
from providers.model import ResourceIdentity
from providers.postgres.connections import Connection
from providers.postgres.rows import SNAPSHOT_WIDTH, to_record
from providers.postgres.statements import (
    MARKER,
    SEARCH_AGENT,
    SEARCH_PROJECT,
    SEARCH_TEXT_AGENT,
    SEARCH_TEXT_PROJECT,
)
from providers.requests import SearchPage, SearchRequest
from providers.rules import is_storable

_HEAD_WIDTH = 4
_MORE = 3
_WILDCARD = re.compile(r"[\\%_]")
# What has trigrams in every database, inside a text and as a whole tag; which letters count beyond
# these is for the database's locale to say.
_TRIGRAM = re.compile("[a-z0-9]{3}")
_TRIGRAM_OF_TAG = re.compile("[a-z0-9]")


async def search(
    link: Connection, resource: ResourceIdentity, request: SearchRequest
) -> SearchPage:
    """See ``IMemoryProvider.search``."""
    if not all(map(is_storable, _named(request))):
        marker = await link.fetchrow(MARKER)
        check_marker(resource, *(marker or (None, None)))
        return SearchPage((), more=False)
    statement, arguments = _query(request)
    rows = await link.fetch(statement, *arguments)
    if not rows:
        check_marker(resource, None, None)
    check_marker(resource, rows[0][0], rows[0][1])
    found = [row for row in rows if row[_HEAD_WIDTH] is not None]
    records = tuple(
        to_record(row[_HEAD_WIDTH : _HEAD_WIDTH + SNAPSHOT_WIDTH], row[2], brief=request.brief)
        for row in found
    )
    return SearchPage(records, more=bool(rows[-1][_MORE]))


def _named(request: SearchRequest) -> Iterator[str]:
    """Give every text that is to be found."""
    yield request.project.tenant_id
    yield request.project.project_id
    yield request.agent_id or ""
    yield request.text or ""
    yield from request.tags
    if request.after is not None:
        yield request.after.record_id


def _query(request: SearchRequest) -> tuple[str, tuple[object, ...]]:
    """Return the statement that suits a request, and its arguments."""
    after = request.after
    text = folded(request.text) if request.text else None
    tags = [search_tag(tag) for tag in request.tags]
    given = (
        request.project.tenant_id,
        request.project.project_id,
        _listed(request.kinds),
        _listed(request.states),
        _listed(request.trusts),
        [_pattern(tag) for tag in tags],
        request.importance_min,
        request.importance_max,
        request.updated_from,
        request.updated_before,
        None if after is None else after.update_time,
        None if after is None else after.record_id,
        request.limit + 1,
        text,
        request.agent_id,
        request.brief,
        request.bytes_max,
    )
    one_agent = request.agent_id is not None
    indexed = [tag for tag in tags if _TRIGRAM_OF_TAG.search(tag)]
    if text is not None and _TRIGRAM.search(text):
        indexed.append(text)
    if indexed:
        statement = SEARCH_TEXT_AGENT if one_agent else SEARCH_TEXT_PROJECT
        return statement, (*given, _pattern(max(indexed, key=len)))
    return SEARCH_AGENT if one_agent else SEARCH_PROJECT, given


def _listed(values: Iterable[str]) -> list[str] | None:
    return [str(value) for value in values] or None


def _pattern(text: str) -> str:
    """Return the pattern that holds for whatever this text stands in, as it is."""
    literal = _WILDCARD.sub(r"\\\g<0>", text)
    return f"%{literal}%"

"""How the reference searches: it looks at every head, field by field, and sorts what fits."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from providers.conformance.reference_pages import brief_record, within
from providers.folding import folded
from providers.model import Content, Record, State
from providers.requests import SearchPage, SearchPosition, SearchRequest

LATEST = datetime.max.replace(tzinfo=UTC)


def page(fitting: Iterable[Record], request: SearchRequest) -> SearchPage:
    """Return the page of these heads that a request asks for."""
    found = sorted(fitting, key=_place_of)
    if request.after is not None:
        end = _place(request.after)
        found = [each for each in found if _place_of(each) > end]
    held = within([each.current for each in found[: request.limit]], request.bytes_max)
    records = map(brief_record, found[:held]) if request.brief else found[:held]
    return SearchPage(tuple(records), more=len(found) > held)


def fits(record: Record, request: SearchRequest) -> bool:
    """Tell whether a head of the project passes every filter."""
    now = record.current
    return (
        now.state is not State.FORGOTTEN
        and request.agent_id in (None, now.agent_id)
        and (not request.kinds or now.kind in request.kinds)
        and (not request.states or now.state in request.states)
        and (not request.trusts or now.trust in request.trusts)
        and holds_text(now.content, request.text or "")
        and has_tags(now.content, request.tags)
        and importance_within(now.content, request)
        and (request.updated_from is None or now.create_time >= request.updated_from)
        and (request.updated_before is None or now.create_time < request.updated_before)
    )


def holds_text(content: Content, text: str) -> bool:
    """Tell whether a text stands in one of the fields that are searched."""
    fields = (content.type, content.title or "", content.content, *content.tags)
    return any(folded(text) in folded(field) for field in fields)


def has_tags(content: Content, tags: Iterable[str]) -> bool:
    """Tell whether every one of the tags is there."""
    return {*map(folded, tags)} <= {*map(folded, content.tags)}


def importance_within(content: Content, request: SearchRequest) -> bool:
    """Tell whether the importance is inside the bounds."""
    low, high = request.importance_min, request.importance_max
    return (low is None or content.importance >= low) and (
        high is None or content.importance <= high
    )


def _place(position: SearchPosition) -> tuple[timedelta, str]:
    """Return what sorts newest first, then by id."""
    return LATEST - position.update_time, position.record_id


def _place_of(record: Record) -> tuple[timedelta, str]:
    return _place(SearchPosition(record.current.create_time, record.current.record_id))

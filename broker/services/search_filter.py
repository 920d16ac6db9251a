"""The filters and positions of searches: checked, told to a provider, and bound to page tokens."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeVar

from broker.domain.errors import Violation
from broker.domain.fields import (
    FILTER_MAX,
    TAG_MAX,
    TAGS_MAX,
    Violations,
    check_text,
    check_unit,
    normal_tags,
)
from broker.domain.paging import REPLY_BYTES_MAX, checked_view, moment_of, moment_token
from broker.domain.requests import SearchInput, Unknown
from providers.model import ProjectKey, Record, State
from providers.requests import SearchPosition, SearchRequest

QUERY_MAX: Final = 256

Word = TypeVar("Word")


def check_filters(violations: Violations, request: SearchInput) -> bool:
    """Check every filter; return whether whole records are asked for."""
    check_text(violations, "query", request.query.strip(), QUERY_MAX)
    for name in ("kinds", "states", "trusts"):
        if len(getattr(request, name)) > FILTER_MAX:
            violations.append(Violation(name, f"must be at most {FILTER_MAX}"))
        for index, word in enumerate(getattr(request, name)):
            if word is None or isinstance(word, Unknown):
                violations.append(Violation(f"{name}[{index}]", "must be a known value"))
            elif word is State.FORGOTTEN:
                violations.append(Violation(f"{name}[{index}]", "must not be FORGOTTEN"))
    if len(request.tags) > TAGS_MAX:
        violations.append(Violation("tags", f"must be at most {TAGS_MAX}"))
    for index, tag in enumerate(request.tags[:TAGS_MAX]):
        if not tag.strip():
            violations.append(Violation(f"tags[{index}]", f"must be 1-{TAG_MAX} code points"))
        check_text(violations, f"tags[{index}]", tag.strip(), TAG_MAX, controls=False)
    for name in ("importance_min", "importance_max"):
        value = getattr(request, name)
        if value is not None:
            check_unit(violations, name, value)
    check_times(violations, request, ("updated_from", "updated_before"))
    return checked_view(violations, request.full)


def check_times(violations: Violations, request: SearchInput, names: Iterable[str]) -> None:
    """Check fields that hold a time or nothing."""
    for name in names:
        if isinstance(getattr(request, name), Unknown):
            violations.append(Violation(name, "must be a valid time"))


def wanted(
    request: SearchInput,
    *,
    project: ProjectKey,
    agent_id: str | None,
    after: SearchPosition | None,
    limit: int,
    full: bool,
) -> SearchRequest:
    """Return what a provider is asked; the filters were checked.

    Without ``full`` it reads what view BASIC shows; else no more than may fit into a reply.
    """
    return SearchRequest(
        project=project,
        agent_id=agent_id,
        text=request.query.strip() or None,
        kinds=_known(request.kinds),
        states=_known(request.states) or frozenset({State.ACTIVE}),
        trusts=_known(request.trusts),
        tags=normal_tags(request.tags),
        importance_min=request.importance_min,
        importance_max=request.importance_max,
        updated_from=known_time(request.updated_from),
        updated_before=known_time(request.updated_before),
        after=after,
        limit=limit,
        brief=not full,
        bytes_max=REPLY_BYTES_MAX if full else None,
    )


def filter_parts(request: SearchInput) -> tuple[object, ...]:
    """Return what a page token is bound to beside scope and method: all but size and place."""
    return (
        request.query.strip(),
        sorted(_known(request.kinds)),
        sorted(_known(request.states)),
        sorted(_known(request.trusts)),
        normal_tags(request.tags),
        request.importance_min,
        request.importance_max,
        known_time(request.updated_from),
        known_time(request.updated_before),
        request.full,
    )


def known_time(given: datetime | Unknown | None) -> datetime | None:
    """Return a time that was checked."""
    return None if isinstance(given, Unknown) else given


def token_after(bound_to: str, record: Record) -> str:
    """Return the token of the position after a record."""
    current = record.current
    return moment_token(bound_to, current.create_time, current.record_id)


def position(token: str, bound_to: str) -> SearchPosition | None:
    """Return the position that a token holds, or ``None`` for the first page.

    Raises:
        PageTokenInvalidError: malformed, or of another request. Not retryable.
    """
    moment = moment_of(token, bound_to)
    return None if moment is None else SearchPosition(*moment)


def _known(words: Iterable[Word | Unknown | None]) -> frozenset[Word]:
    return frozenset(word for word in words if word is not None and not isinstance(word, Unknown))

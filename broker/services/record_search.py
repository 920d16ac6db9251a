"""The use case that searches the records of one agent."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import PageTokenInvalidError, Violation
from broker.domain.fields import (
    FILTER_MAX,
    TAG_MAX,
    TAGS_MAX,
    Violations,
    check_scope,
    check_text,
    check_unit,
    normal_tags,
    refuse_if_any,
)
from broker.domain.paging import (
    check_token_syntax,
    checked_view,
    digest,
    page_limit,
    page_token,
    position_of,
)
from broker.domain.reply_size import cut_records
from broker.domain.requests import Found, SearchRecords, Unknown
from broker.services.access import Access, AccessPath
from providers.capabilities import Capability
from providers.model import Record, State
from providers.requests import SearchPosition, SearchRequest

SEARCH: Final = "SearchRecords"
QUERY_MAX: Final = 256
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

Word = TypeVar("Word")


class RecordSearch:
    """Searches records behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath) -> None:
        """Take the path of checks."""
        self._access = access

    async def search(self, call: Call, request: SearchRecords) -> Found:
        """Return a page of heads, those updated last first (004-66, 004-67)."""
        check_scope(request.scope)
        check_token_syntax(request.page_token)
        violations: Violations = []
        limit = page_limit(violations, request.page_size)
        refuse_if_any(violations)
        authorized = await self._access.authorize(call, request.scope)
        full = _checked(request)
        bound_to = _page_digest(authorized, request)
        after = _position(request.page_token, bound_to)
        access = await self._access.enter(authorized, Capability.SEARCH)
        wanted = _wanted(access, request, after, limit)
        page = await self._access.read(
            access, lambda provider, timeout: provider.search(wanted, timeout=timeout)
        )
        records = cut_records(page.records) if full else page.records
        more = page.more or len(records) < len(page.records)
        token = page_token(bound_to, _reached(records[-1])) if more else ""
        return Found(request.scope.project_id, records, token, full)


def _checked(request: SearchRecords) -> bool:
    """Check every filter; return whether whole records are asked for."""
    violations: Violations = []
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
    for name in ("updated_from", "updated_before"):
        if isinstance(getattr(request, name), Unknown):
            violations.append(Violation(name, "must be a valid time"))
    full = checked_view(violations, request.full)
    refuse_if_any(violations)
    return full


def _wanted(
    access: Access, request: SearchRecords, after: SearchPosition | None, limit: int
) -> SearchRequest:
    return SearchRequest(
        project=access.project,
        agent_id=request.scope.agent_id,
        text=request.query.strip() or None,
        kinds=_known(request.kinds),
        states=_known(request.states) or frozenset({State.ACTIVE}),
        trusts=_known(request.trusts),
        tags=normal_tags(request.tags),
        importance_min=request.importance_min,
        importance_max=request.importance_max,
        updated_from=_time(request.updated_from),
        updated_before=_time(request.updated_before),
        after=after,
        limit=limit,
    )


def _known(words: Iterable[Word | Unknown | None]) -> frozenset[Word]:
    return frozenset(word for word in words if word is not None and not isinstance(word, Unknown))


def _time(given: datetime | Unknown | None) -> datetime | None:
    return None if isinstance(given, Unknown) else given


def _page_digest(authorized: Authorized, request: SearchRecords) -> str:
    """Bind a token to everything of the request but the page's size and place."""
    scope = request.scope
    return digest(
        SEARCH,
        authorized.tenant_id,
        scope.project_id,
        scope.run_id,
        scope.agent_id,
        request.query.strip(),
        sorted(_known(request.kinds)),
        sorted(_known(request.states)),
        sorted(_known(request.trusts)),
        normal_tags(request.tags),
        request.importance_min,
        request.importance_max,
        _time(request.updated_from),
        _time(request.updated_before),
        request.full,
    )


def _reached(record: Record) -> list[str | int]:
    current = record.current
    return [(current.create_time - _EPOCH) // _MICROSECOND, current.record_id]


def _position(token: str, bound_to: str) -> SearchPosition | None:
    match position_of(token, bound_to):
        case None:
            return None
        case [int(microseconds), str(record_id)]:
            try:
                return SearchPosition(_EPOCH + microseconds * _MICROSECOND, record_id)
            except OverflowError as error:
                raise PageTokenInvalidError from error
        case _:
            raise PageTokenInvalidError

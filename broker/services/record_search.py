"""The use case that searches the records of one agent."""

from typing import Final

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.fields import Violations, check_scope, refuse_if_any
from broker.domain.paging import check_token_syntax, digest, page_limit
from broker.domain.reply_size import cut_records
from broker.domain.requests import Found, SearchRecords
from broker.services.access import AccessPath
from broker.services.search_filter import check_filters, filter_parts, position, token_after, wanted
from providers.capabilities import Capability

SEARCH: Final = "SearchRecords"


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
        full = check_filters(violations, request)
        refuse_if_any(violations)
        bound_to = _page_digest(authorized, request)
        after = position(request.page_token, bound_to)
        access = await self._access.enter(authorized, Capability.SEARCH)
        asked = wanted(
            request,
            project=access.project,
            agent_id=request.scope.agent_id,
            after=after,
            limit=limit,
            full=full,
        )
        page = await self._access.read(
            access, lambda provider, timeout: provider.search(asked, timeout=timeout)
        )
        records = cut_records(page.records) if full else page.records
        more = page.more or len(records) < len(page.records)
        token = token_after(bound_to, records[-1]) if more else ""
        return Found(request.scope.project_id, records, token, full)


def _page_digest(authorized: Authorized, request: SearchRecords) -> str:
    """Bind a token to everything of the request but the page's size and place."""
    scope = request.scope
    return digest(
        SEARCH,
        authorized.tenant_id,
        scope.project_id,
        scope.run_id,
        scope.agent_id,
        *filter_parts(request),
    )

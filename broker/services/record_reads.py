"""The reading use cases of RecordService."""

from functools import partial
from typing import Final

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import (
    PageTokenInvalidError,
    RecordNotFoundError,
    RevisionNotFoundError,
    Violation,
)
from broker.domain.fields import (
    BATCH_MAX,
    Violations,
    check_identifier,
    check_positive,
    check_scope,
    refuse_if_any,
)
from broker.domain.paging import (
    REPLY_BYTES_MAX,
    check_token_syntax,
    checked_view,
    digest,
    page_limit,
    page_token,
    position_of,
)
from broker.domain.records import visible
from broker.domain.reply_size import cut_to_reply
from broker.domain.requests import (
    BatchGetRecords,
    GetRecord,
    GetRevision,
    ListRevisions,
    Read,
    ReadMany,
    RevisionsListed,
)
from broker.services.access import AccessPath
from providers.capabilities import Capability
from providers.interface import IMemoryProvider
from providers.model import (
    Revision,
    RevisionRef,
)
from providers.requests import Loaded, LoadRequest, RevisionsRequest, new_load_request

LIST_REVISIONS: Final = "ListRevisions"


class RecordReads:
    """Reads records and their histories behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath) -> None:
        """Take the path of checks."""
        self._access = access

    async def get(self, call: Call, request: GetRecord) -> Read:
        """Return a head (004-56)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        violations: Violations = []
        check_identifier(violations, "record_id", request.record_id)
        refuse_if_any(violations)
        access = await self._access.enter(authorized, Capability.READ)
        wanted = new_load_request(project=access.project, record_ids=(request.record_id,))
        loaded = await self._access.read(access, partial(_load, request=wanted))
        record = visible(loaded.heads.get(request.record_id), request.scope.agent_id)
        return Read(request.scope.project_id, record)

    async def batch_get(self, call: Call, request: BatchGetRecords) -> ReadMany:
        """Return several heads in the order asked for, all of them or none (004-56)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        violations: Violations = []
        if not 1 <= len(request.record_ids) <= BATCH_MAX:
            violations.append(Violation("record_ids", f"must be 1-{BATCH_MAX} ids"))
        for index, record_id in enumerate(request.record_ids[:BATCH_MAX]):
            check_identifier(violations, f"record_ids[{index}]", record_id)
        refuse_if_any(violations)
        access = await self._access.enter(authorized, Capability.READ)
        wanted = LoadRequest(
            project=access.project, record_ids=tuple(dict.fromkeys(request.record_ids))
        )
        loaded = await self._access.read(access, partial(_load, request=wanted))
        records = tuple(
            visible(loaded.heads.get(record_id), request.scope.agent_id)
            for record_id in request.record_ids
        )
        return ReadMany(request.scope.project_id, records)

    async def get_revision(self, call: Call, request: GetRevision) -> Revision:
        """Return one revision of a record; the agent is matched first (004-56)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        violations: Violations = []
        check_identifier(violations, "record_id", request.record_id)
        check_positive(violations, "revision", request.revision)
        refuse_if_any(violations)
        access = await self._access.enter(authorized, Capability.REVISIONS)
        ref = RevisionRef(request.record_id, request.revision)
        wanted = LoadRequest(
            project=access.project, record_ids=(request.record_id,), revisions=(ref,)
        )
        loaded = await self._access.read(access, partial(_load, request=wanted))
        visible(loaded.heads.get(request.record_id), request.scope.agent_id)
        if ref not in loaded.revisions:
            raise RevisionNotFoundError
        return loaded.revisions[ref]

    async def list_revisions(self, call: Call, request: ListRevisions) -> RevisionsListed:
        """Return a page of history, newest first (004-68)."""
        check_scope(request.scope)
        check_token_syntax(request.page_token)
        violations: Violations = []
        limit = page_limit(violations, request.page_size)
        refuse_if_any(violations)
        authorized = await self._access.authorize(call, request.scope)
        check_identifier(violations, "record_id", request.record_id)
        full = checked_view(violations, request.full)
        refuse_if_any(violations)
        bound_to = _page_digest(authorized, request)
        before = _position(request.page_token, bound_to)
        access = await self._access.enter(authorized, Capability.REVISIONS)
        wanted = RevisionsRequest(
            project=access.project,
            agent_id=request.scope.agent_id,
            record_id=request.record_id,
            before=before,
            limit=limit,
            brief=not full,
            bytes_max=REPLY_BYTES_MAX if full else None,
        )
        page = await self._access.read(
            access, lambda provider, timeout: provider.revisions(wanted, timeout=timeout)
        )
        if not page.found:
            raise RecordNotFoundError
        revisions = cut_to_reply(page.revisions) if full else page.revisions
        more = page.more or len(revisions) < len(page.revisions)
        token = page_token(bound_to, [revisions[-1].revision]) if more else ""
        return RevisionsListed(revisions, token, full)


async def _load(provider: IMemoryProvider, timeout: float, *, request: LoadRequest) -> Loaded:
    return await provider.load(request, timeout=timeout)


def _page_digest(authorized: Authorized, request: ListRevisions) -> str:
    scope = request.scope
    return digest(
        LIST_REVISIONS,
        authorized.tenant_id,
        scope.project_id,
        scope.run_id,
        scope.agent_id,
        request.record_id,
        request.full,
    )


def _position(token: str, bound_to: str) -> int | None:
    match position_of(token, bound_to):
        case None:
            return None
        case [int(revision)] if revision > 0:
            return revision
        case _:
            raise PageTokenInvalidError

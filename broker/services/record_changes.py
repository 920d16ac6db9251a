"""The use cases that change a record's state or trust."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from broker.domain import lifecycle
from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import RevisionNotFoundError, Violation
from broker.domain.facets import tier_cap
from broker.domain.fields import (
    Violations,
    check_identifier,
    check_positive,
    check_scope,
    refuse_if_any,
)
from broker.domain.lifecycle import Verb
from broker.domain.records import Stamp
from broker.domain.requests import (
    ChangeRecord,
    RejectKind,
    RejectRecord,
    RestoreRecord,
    SupersedeDecision,
    Written,
)
from broker.domain.supersession import superseded
from broker.memory.admission import has_flag, marked, refuse_secret, screened
from broker.memory.holding import REFUTING
from broker.services.access import Access, AccessPath
from broker.services.head_writer import (
    Admit,
    HeadWrite,
    HeadWriter,
    check_change,
    expected_head,
)
from providers.capabilities import Capability
from providers.model import HeadPut, Record, RevisionRef
from providers.requests import Loaded

ARCHIVE: Final = "ArchiveRecord"
UNARCHIVE: Final = "UnarchiveRecord"
SUPERSEDE: Final = "SupersedeDecision"
RESTORE: Final = "RestoreRecord"
APPROVE: Final = "ApproveRecord"
REJECT: Final = "RejectRecord"
REOPEN: Final = "ReopenRecord"

Check = Callable[[Violations], None]
Change = Callable[[Record, Stamp], HeadPut]


class RecordChanges:
    """Changes states and trust behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath, writer: HeadWriter) -> None:
        """Take the path of checks and what writes heads."""
        self._access = access
        self._writer = writer

    async def archive(self, call: Call, request: ChangeRecord) -> Written:
        """Put a memory, session context or decision aside."""
        access = await self._enter(call, request)
        return await self._change(
            access,
            request,
            ARCHIVE,
            lambda record, stamp: lifecycle.archived(record, reason=_reason(request), stamp=stamp),
        )

    async def unarchive(self, call: Call, request: ChangeRecord) -> Written:
        """Take a memory or session context back."""
        access = await self._enter(call, request)
        return await self._change(
            access,
            request,
            UNARCHIVE,
            lambda record, stamp: lifecycle.unarchived(
                record, reason=_reason(request), stamp=stamp
            ),
        )

    async def supersede(self, call: Call, request: SupersedeDecision) -> Written:
        """Replace a decision by another one (004-57..60)."""

        def check(violations: Violations) -> None:
            check_identifier(violations, "replacement_record_id", request.replacement_record_id)

        access = await self._enter(call, request, check)

        def decide(loaded: Loaded, _: Authorized) -> HeadPut:
            return superseded(
                expected_head(loaded, request),
                request.replacement_record_id,
                loaded.chain,
                reason=_reason(request),
                stamp=self._writer.stamp(call),
                replacement=loaded.heads.get(request.replacement_record_id),
            )

        ids = (request.record_id, request.replacement_record_id)
        fields = {"replacement_record_id": request.replacement_record_id}
        return await self._writer.write(
            access,
            HeadWrite(
                method=SUPERSEDE,
                scope=request.scope,
                idempotency_key=request.idempotency_key,
                fields=_fields(request) | fields,
                decide=decide,
                record_ids=tuple(dict.fromkeys(ids)),
                chain_from=request.replacement_record_id,
                graph=True,
            ),
        )

    async def restore(self, call: Call, request: RestoreRecord) -> Written:
        """Bring the content set of an earlier revision back as a new head."""
        access = await self._enter(
            call,
            request,
            lambda violations: check_positive(
                violations, "source_revision", request.source_revision
            ),
        )
        source = RevisionRef(request.record_id, request.source_revision)

        def decide(loaded: Loaded, second: Authorized) -> HeadPut:
            record = expected_head(loaded, request)
            lifecycle.check_allowed(record.current, Verb.RESTORE)
            if source not in loaded.revisions:
                raise RevisionNotFoundError
            earlier = loaded.revisions[source]
            put = lifecycle.restored(
                record,
                replace(earlier, content=screened(earlier.content)),
                reason=_reason(request),
                tier_cap=tier_cap(second),
                stamp=self._writer.stamp(call),
            )
            return marked(put, record.current, told=has_flag(earlier))

        return await self._writer.write(
            access,
            HeadWrite(
                method=RESTORE,
                scope=request.scope,
                idempotency_key=request.idempotency_key,
                fields=_fields(request) | {"source_revision": request.source_revision},
                decide=decide,
                record_ids=(request.record_id,),
                revisions=(source,),
            ),
        )

    async def approve(self, call: Call, request: ChangeRecord) -> Written:
        """Confirm a memory or decision."""
        access = await self._enter(call, request)
        return await self._change(
            access,
            request,
            APPROVE,
            lambda record, stamp: lifecycle.approved(record, reason=_reason(request), stamp=stamp),
            admit=lifecycle.check_may_judge,
        )

    async def reject(self, call: Call, request: RejectRecord) -> Written:
        """Refuse a memory, decision or proposal."""
        kind = request.reject_kind if isinstance(request.reject_kind, RejectKind) else None

        def check(violations: Violations) -> None:
            if request.reject_kind is not None and kind is None:
                violations.append(Violation("reject_kind", "must be a known value"))

        access = await self._enter(call, request, check)
        return await self._change(
            access,
            request,
            REJECT,
            lambda record, stamp: lifecycle.rejected(
                record, reject_kind=kind, reason=_reason(request), stamp=stamp
            ),
            admit=lifecycle.check_may_judge,
            fields={"reject_kind": kind},
            graph=kind in REFUTING,
        )

    async def reopen(self, call: Call, request: ChangeRecord) -> Written:
        """Take trust back to pending."""
        access = await self._enter(call, request)
        return await self._change(
            access,
            request,
            REOPEN,
            lambda record, stamp: lifecycle.reopened(record, reason=_reason(request), stamp=stamp),
            admit=lifecycle.check_may_judge,
        )

    async def _enter(self, call: Call, request: ChangeRecord, check: Check | None = None) -> Access:
        """Lead a call to its provider: scope, check ①, fields, binding."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        violations: Violations = []
        check_change(violations, request)
        if check is not None:
            check(violations)
        refuse_if_any(violations)
        refuse_secret("reason", request.reason)
        return await self._access.enter(authorized, Capability.WRITE)

    async def _change(
        self,
        access: Access,
        request: ChangeRecord,
        method: str,
        change: Change,
        *,
        admit: Admit = lambda _revision, _authorized: None,
        fields: dict[str, object] | None = None,
        graph: bool = False,
    ) -> Written:
        """Write the head that a pure change makes of the one expected."""

        def decide(loaded: Loaded, second: Authorized) -> HeadPut:
            record = expected_head(loaded, request)
            admit(record.current, second)
            return change(record, self._writer.stamp(access.call))

        return await self._writer.write(
            access,
            HeadWrite(
                method=method,
                scope=request.scope,
                idempotency_key=request.idempotency_key,
                fields=_fields(request) | (fields or {}),
                decide=decide,
                admit=admit,
                record_ids=(request.record_id,),
                graph=graph,
            ),
        )


def _reason(request: ChangeRecord) -> str | None:
    return request.reason or None


def _fields(request: ChangeRecord) -> dict[str, object]:
    return {
        "record_id": request.record_id,
        "expected_revision": request.expected_revision,
        "reason": request.reason,
    }

"""The writing use cases of RecordService."""

from collections.abc import Callable
from typing import Final

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import (
    SourceNotAllowedError,
    Violation,
)
from broker.domain.facets import (
    changed_facet,
    check_facet,
    check_mask,
    claims_operator,
    named_fields,
    new_facet,
)
from broker.domain.fields import (
    IDEMPOTENCY_KEY_MAX,
    IMPORTANCE_DEFAULT,
    REASON_MAX,
    Violations,
    check_identifier,
    check_positive,
    check_scope,
    check_text,
    checked_content,
    refuse_if_any,
)
from broker.domain.idempotency import fingerprint, receipt_for
from broker.domain.ports import Clock
from broker.domain.records import Stamp, check_expected, created, updated, visible
from broker.domain.requests import (
    CreateRecord,
    FacetInput,
    ScopeInput,
    UpdateRecord,
    Written,
)
from broker.services.access import Access, AccessPath, Settled, Write
from providers.capabilities import Capability
from providers.errors import StoredDataInvalidError
from providers.model import (
    Content,
    HeadPut,
    Kind,
    OriginTier,
    ReceiptKey,
    Record,
    RevisionRef,
    WriteSet,
)
from providers.requests import Loaded, LoadRequest

CREATE: Final = "CreateRecord"
UPDATE: Final = "UpdateRecord"
_CREATABLE: Final = frozenset({Kind.MEMORY, Kind.SESSION_CONTEXT})


class RecordWrites:
    """Creates and changes records behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath, clock: Clock, new_id: Callable[[], str]) -> None:
        """Take the path of checks, the clock, and a source of UUIDs (version 7)."""
        self._access = access
        self._clock = clock
        self._new_id = new_id

    async def create(self, call: Call, request: CreateRecord) -> Written:
        """Create a memory or session context (004-46, 004-51)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        kind, content = _checked_create(request)
        operator = claims_operator(request.facet)
        if operator:
            _require_operator(authorized)
        access = await self._access.enter(authorized, Capability.WRITE)

        def decide(_: Loaded, second: Authorized) -> HeadPut:
            if operator:
                _require_operator(second)
            return created(
                kind=kind,
                agent_id=request.scope.agent_id,
                run_id=request.scope.run_id,
                content=content,
                facet=new_facet(request.facet),
                stamp=self._stamp(call),
            )

        return await self._write(
            access,
            scope=request.scope,
            key=request.idempotency_key,
            method=CREATE,
            fields={"kind": kind, "content": content, "facet": request.facet},
            record_ids=(),
            decide=decide,
        )

    async def update(self, call: Call, request: UpdateRecord) -> Written:
        """Replace the content set of a record and, where masked, fields of its facet (004-52)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        facet = named_fields(request.facet, request.facet_mask)
        content = _checked_update(request, facet)
        operator = claims_operator(facet)
        if operator:
            _require_operator(authorized)
        access = await self._access.enter(authorized, Capability.WRITE)

        def decide(loaded: Loaded, second: Authorized) -> HeadPut:
            if operator:
                _require_operator(second)
            record = visible(loaded.heads.get(request.record_id), request.scope.agent_id)
            check_expected(record, request.expected_revision)
            return updated(
                record,
                content=content,
                facet=changed_facet(record.current.facet, facet, request.facet_mask),
                reason=request.reason or None,
                tier_cap=_tier_cap(second),
                stamp=self._stamp(call),
            )

        return await self._write(
            access,
            scope=request.scope,
            key=request.idempotency_key,
            method=UPDATE,
            fields={
                "record_id": request.record_id,
                "expected_revision": request.expected_revision,
                "content": content,
                "reason": request.reason,
                "facet": facet,
                "facet_mask": sorted(set(request.facet_mask or ())),
            },
            record_ids=(request.record_id,),
            decide=decide,
        )

    def _stamp(self, call: Call) -> Stamp:
        return Stamp(self._clock.now(), self._new_id, call.caller.actor_fingerprint)

    async def _write(
        self,
        access: Access,
        *,
        scope: ScopeInput,
        key: str,
        method: str,
        fields: dict[str, object],
        record_ids: tuple[str, ...],
        decide: Callable[[Loaded, Authorized], HeadPut],
    ) -> Written:
        """Write one head; reply with it, or with the revision that an earlier request left."""
        receipt_key = ReceiptKey(access.call.caller.actor_fingerprint, key)
        request_print = fingerprint(method, scope, fields)

        def decide_set(loaded: Loaded, second: Authorized) -> WriteSet:
            put = decide(loaded, second)
            after = put.record.current
            receipt = receipt_for(
                key=receipt_key,
                method=method,
                fingerprint=request_print,
                refs=(RevisionRef(after.record_id, after.revision),),
                create_time=after.create_time,
            )
            return WriteSet(project=access.project, receipt=receipt, heads=(put,))

        settled = await self._access.write(
            access,
            Write(
                method=method,
                key=receipt_key,
                fingerprint=request_print,
                load=LoadRequest(
                    project=access.project, record_ids=record_ids, receipt=receipt_key
                ),
                decide=decide_set,
            ),
        )
        return Written(scope.project_id, _head_left(settled), replayed=settled.write_set is None)


def _head_left(settled: Settled) -> Record:
    """Return the one head a write left, as it was then."""
    if settled.write_set is not None:
        return settled.write_set.heads[0].record
    try:
        ref = settled.receipt.refs[0]
        return Record(
            settled.loaded.revisions[ref], settled.loaded.heads[ref.record_id].create_time
        )
    except LookupError as error:
        raise StoredDataInvalidError("a receipt names no revision that is there") from error


def _checked_create(request: CreateRecord) -> tuple[Kind, Content]:
    violations: Violations = []
    check_identifier(violations, "idempotency_key", request.idempotency_key, IDEMPOTENCY_KEY_MAX)
    kind = request.kind if isinstance(request.kind, Kind) else Kind.DECISION
    if kind not in _CREATABLE:
        violations.append(Violation("kind", "must be MEMORY or SESSION_CONTEXT"))
    content = checked_content(violations, request.content, importance_default=IMPORTANCE_DEFAULT)
    if request.facet is not None:
        check_facet(violations, request.facet)
    refuse_if_any(violations)
    return kind, content


def _checked_update(request: UpdateRecord, facet: FacetInput | None) -> Content:
    violations: Violations = []
    check_identifier(violations, "idempotency_key", request.idempotency_key, IDEMPOTENCY_KEY_MAX)
    check_identifier(violations, "record_id", request.record_id)
    check_positive(violations, "expected_revision", request.expected_revision)
    content = checked_content(violations, request.content, importance_default=None)
    check_text(violations, "reason", request.reason, REASON_MAX, controls=False)
    if facet is not None:
        check_facet(violations, facet)
    check_mask(violations, request.facet, request.facet_mask)
    refuse_if_any(violations)
    return content


def _may_speak_for_operators(authorized: Authorized) -> bool:
    return authorized.grants_write and not authorized.call.caller.bound


def _require_operator(authorized: Authorized) -> None:
    if not _may_speak_for_operators(authorized):
        raise SourceNotAllowedError(
            "facet.source_type OPERATOR and MANUAL need an unbound token and WriteProjects"
        )


def _tier_cap(authorized: Authorized) -> OriginTier:
    return OriginTier.OPERATOR if _may_speak_for_operators(authorized) else OriginTier.AGENT

"""The use cases that create and edit records."""

from typing import Final

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import Violation
from broker.domain.facets import (
    changed_facet,
    check_facet,
    check_mask,
    claims_operator,
    named_fields,
    new_facet,
    require_operator,
    tier_cap,
)
from broker.domain.fields import (
    IDEMPOTENCY_KEY_MAX,
    IMPORTANCE_DEFAULT,
    Violations,
    check_identifier,
    check_scope,
    checked_content,
    refuse_if_any,
)
from broker.domain.records import created, updated
from broker.domain.requests import CreateRecord, FacetInput, UpdateRecord, Written
from broker.services.access import AccessPath
from broker.services.head_writer import HeadWrite, HeadWriter, check_change, expected_head
from providers.capabilities import Capability
from providers.model import Content, HeadPut, Kind
from providers.requests import Loaded

CREATE: Final = "CreateRecord"
UPDATE: Final = "UpdateRecord"
_CREATABLE: Final = frozenset({Kind.MEMORY, Kind.SESSION_CONTEXT})


class RecordWrites:
    """Creates and edits records behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath, writer: HeadWriter) -> None:
        """Take the path of checks and what writes heads."""
        self._access = access
        self._writer = writer

    async def create(self, call: Call, request: CreateRecord) -> Written:
        """Create a memory or session context (004-46, 004-51)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        kind, content = _checked_create(request)
        operator = claims_operator(request.facet)
        if operator:
            require_operator(authorized)
        access = await self._access.enter(authorized, Capability.WRITE)

        def decide(_: Loaded, second: Authorized) -> HeadPut:
            if operator:
                require_operator(second)
            return created(
                kind=kind,
                agent_id=request.scope.agent_id,
                run_id=request.scope.run_id,
                content=content,
                facet=new_facet(request.facet),
                stamp=self._writer.stamp(call),
            )

        return await self._writer.write(
            access,
            HeadWrite(
                method=CREATE,
                scope=request.scope,
                idempotency_key=request.idempotency_key,
                fields={"kind": kind, "content": content, "facet": request.facet},
                decide=decide,
            ),
        )

    async def update(self, call: Call, request: UpdateRecord) -> Written:
        """Replace the content set of a record and, where masked, fields of its facet (004-52)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        facet = named_fields(request.facet, request.facet_mask)
        content = _checked_update(request, facet)
        operator = claims_operator(facet)
        if operator:
            require_operator(authorized)
        access = await self._access.enter(authorized, Capability.WRITE)

        def decide(loaded: Loaded, second: Authorized) -> HeadPut:
            if operator:
                require_operator(second)
            record = expected_head(loaded, request)
            return updated(
                record,
                content=content,
                facet=changed_facet(record.current.facet, facet, request.facet_mask),
                reason=request.reason or None,
                tier_cap=tier_cap(second),
                stamp=self._writer.stamp(call),
            )

        return await self._writer.write(
            access,
            HeadWrite(
                method=UPDATE,
                scope=request.scope,
                idempotency_key=request.idempotency_key,
                fields={
                    "record_id": request.record_id,
                    "expected_revision": request.expected_revision,
                    "content": content,
                    "reason": request.reason,
                    "facet": facet,
                    "facet_mask": sorted(set(request.facet_mask or ())),
                },
                decide=decide,
                record_ids=(request.record_id,),
            ),
        )


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
    check_change(violations, request)
    content = checked_content(violations, request.content, importance_default=None)
    if facet is not None:
        check_facet(violations, facet)
    check_mask(violations, request.facet, request.facet_mask)
    refuse_if_any(violations)
    return content

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
from broker.memory.admission import marked, refuse_secret, screened
from broker.memory.keys import content_key
from broker.services.access import AccessPath
from broker.services.head_writer import HeadWrite, HeadWriter, check_change, expected_head
from providers.capabilities import Capability
from providers.model import Content, HeadPut, Kind, MemoryFacet
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
        kind, said = _checked_create(request)
        facet = new_facet(request.facet)
        content = screened(said, facet)
        operator = claims_operator(request.facet)
        if operator:
            require_operator(authorized)
        access = await self._access.enter(authorized, Capability.WRITE)

        def decide(_: Loaded, second: Authorized) -> HeadPut:
            if operator:
                require_operator(second)
            return marked(
                created(
                    kind=kind,
                    agent_id=request.scope.agent_id,
                    run_id=request.scope.run_id,
                    content=content,
                    facet=facet,
                    stamp=self._writer.stamp(call),
                )
            )

        return await self._writer.write(
            access,
            HeadWrite(
                method=CREATE,
                scope=request.scope,
                idempotency_key=request.idempotency_key,
                fields={"kind": kind, "content": said, "facet": request.facet},
                decide=decide,
                keys=(_key(request, facet, content),),
                # A memory finds out by its claim who says the same; other kinds look at the key.
                # The right to name an operator is judged again only where there is no replay.
                blind=kind is Kind.MEMORY and not operator,
            ),
        )

    async def update(self, call: Call, request: UpdateRecord) -> Written:
        """Replace the content set of a record and, where masked, fields of its facet (004-52)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        facet = named_fields(request.facet, request.facet_mask)
        said = _checked_update(request, facet)
        named = new_facet(facet)
        content = screened(said, named)
        operator = claims_operator(facet)
        if operator:
            require_operator(authorized)
        access = await self._access.enter(authorized, Capability.WRITE)

        def decide(loaded: Loaded, second: Authorized) -> HeadPut:
            if operator:
                require_operator(second)
            record = expected_head(loaded, request)
            put = updated(
                record,
                content=content,
                facet=changed_facet(record.current.facet, facet, request.facet_mask),
                reason=request.reason or None,
                tier_cap=tier_cap(second),
                stamp=self._writer.stamp(call),
            )
            return marked(put, record.current)

        return await self._writer.write(
            access,
            HeadWrite(
                method=UPDATE,
                scope=request.scope,
                idempotency_key=request.idempotency_key,
                fields={
                    "record_id": request.record_id,
                    "expected_revision": request.expected_revision,
                    "content": said,
                    "reason": request.reason,
                    "facet": facet,
                    "facet_mask": sorted(set(request.facet_mask or ())),
                },
                decide=decide,
                keys=(_key(request, named, content),),
                record_ids=(request.record_id,),
            ),
        )


def _key(request: CreateRecord | UpdateRecord, facet: MemoryFacet | None, content: Content) -> str:
    """Return the key of a text. An update that names no namespace is taken to be in none."""
    namespace = None if facet is None else facet.namespace
    return content_key(request.scope.agent_id, namespace, content.content)


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
    refuse_secret("reason", request.reason)
    return content

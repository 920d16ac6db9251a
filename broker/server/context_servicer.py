"""ContextService on the wire: one screen per method, no rule of its own."""

from typing import Any, Protocol

from broker.api.v1 import context_service_pb2 as pb
from broker.api.v1 import context_service_pb2_grpc
from broker.domain.call import Call
from broker.domain.compilations import Compilation, CompilationSummary
from broker.domain.context import (
    NAMESPACES_MAX,
    CompileContext,
    ContextBudget,
    ContextItem,
    IgnoredDecision,
    OmittedItem,
)
from broker.domain.context_log import (
    CompilationsListed,
    ContextCompiled,
    GetCompilation,
    ListCompilations,
    Proved,
)
from broker.server.app import ServedService
from broker.server.convert import optional_bound, scope_input
from broker.server.exchange import current_call
from broker.server.vocabulary import (
    CONTEXT_KINDS,
    OMISSION_CAUSES,
    ORIGIN_TIERS,
    SENSITIVITIES,
    VERDICTS,
)
from broker.server.wellknown import put_time


class ContextsPort(Protocol):
    """What compiles and proves. Refusals are BrokerErrors and ProviderErrors."""

    async def compile(self, call: Call, request: CompileContext) -> ContextCompiled:
        """Compile a context."""
        ...

    async def list(self, call: Call, request: ListCompilations) -> CompilationsListed:
        """Return a page of the log."""
        ...

    async def get(self, call: Call, request: GetCompilation) -> Proved:
        """Return a compilation and its proof."""
        ...


class ContextServicer(context_service_pb2_grpc.ContextServiceServicer):
    """Reads requests, asks the use cases, writes replies."""

    def __init__(self, contexts: ContextsPort) -> None:
        """Ask ``contexts``."""
        self._contexts = contexts

    async def CompileContext(
        self, request: pb.CompileContextRequest, context: object
    ) -> pb.CompileContextResponse:
        """Compile a context (004-89..98)."""
        made = await self._contexts.compile(current_call(), _compile_request(request))
        compiled = made.compiled
        return pb.CompileContextResponse(
            text=compiled.text,
            items=map(_item, compiled.items),
            omitted=map(_omitted, compiled.omitted),
            ignored=map(_ignored, compiled.ignored),
            omitted_memory_count=compiled.omitted_memory_count,
            omitted_session_count=compiled.omitted_session_count,
            ignored_decision_count=compiled.ignored_decision_count,
            causes=map(OMISSION_CAUSES.number, compiled.causes),
            budget=_budget(compiled.budget),
            compilation_id=made.compilation_id,
        )

    async def ListCompilations(
        self, request: pb.ListCompilationsRequest, context: object
    ) -> pb.ListCompilationsResponse:
        """Return a page of the log, newest first (000-38)."""
        listed = await self._contexts.list(
            current_call(),
            ListCompilations(
                project_id=request.project_id,
                run_id=request.run_id,
                record_id=request.record_id,
                revision=request.revision,
                compiled_from=optional_bound(request, "compiled_from"),
                compiled_before=optional_bound(request, "compiled_before"),
                page_size=request.page_size,
                page_token=request.page_token,
            ),
        )
        return pb.ListCompilationsResponse(
            compilations=map(_summary, listed.compilations),
            next_page_token=listed.next_page_token,
        )

    async def GetCompilation(
        self, request: pb.GetCompilationRequest, context: object
    ) -> pb.GetCompilationResponse:
        """Return a compilation and its proof (004-100)."""
        proved = await self._contexts.get(
            current_call(),
            GetCompilation(
                project_id=request.project_id,
                run_id=request.run_id,
                compilation_id=request.compilation_id,
            ),
        )
        logged = proved.compilation
        return pb.GetCompilationResponse(
            compilation=_summary(logged),
            items=map(_item, logged.items),
            omitted=map(_omitted, logged.left_out),
            verdict=VERDICTS.number(proved.verdict),
            text=proved.text,
        )


def _compile_request(request: pb.CompileContextRequest) -> CompileContext:
    return CompileContext(
        scope=scope_input(request.scope),
        query=_optional(request, "query"),
        max_items=_optional(request, "max_items"),
        max_tokens=_optional(request, "max_tokens"),
        include_pending=_optional(request, "include_pending"),
        min_origin_tier=ORIGIN_TIERS.word(request.min_origin_tier),
        namespaces=tuple(request.namespaces[: NAMESPACES_MAX + 1]),
        sensitivity_ceiling=SENSITIVITIES.word(request.sensitivity_ceiling),
        skip_oversized=request.skip_oversized,
        dry_run=request.dry_run,
    )


def _optional(request: pb.CompileContextRequest, name: Any) -> Any:
    return getattr(request, name) if request.HasField(name) else None


def _item(item: ContextItem) -> pb.ContextItem:
    return pb.ContextItem(
        kind=CONTEXT_KINDS.number(item.kind),
        record_id=item.record_id,
        revision=item.revision,
        revision_id=item.revision_id,
    )


def _omitted(item: OmittedItem) -> pb.OmittedItem:
    return pb.OmittedItem(
        kind=CONTEXT_KINDS.number(item.kind),
        record_id=item.record_id,
        revision=item.revision,
        cause=OMISSION_CAUSES.number(item.cause),
    )


def _ignored(decision: IgnoredDecision) -> pb.IgnoredDecision:
    return pb.IgnoredDecision(record_id=decision.record_id, type=decision.type)


def _budget(budget: ContextBudget) -> pb.ContextBudget:
    return pb.ContextBudget(
        tokens=budget.tokens, items=budget.items, characters_used=budget.characters_used
    )


def _summary(logged: CompilationSummary | Compilation) -> pb.CompilationSummary:
    message = pb.CompilationSummary(
        compilation_id=logged.compilation_id,
        project_id=logged.project_id,
        run_id=logged.run_id,
        agent_id=logged.agent_id,
        actor_fingerprint=logged.actor_fingerprint,
        query_hash=logged.query_hash or "",
        budget=pb.ContextBudget(
            tokens=logged.tokens, items=logged.item_limit, characters_used=logged.characters_used
        ),
        text_hash=logged.text_hash or "",
        render_version=logged.render_version,
        item_count=logged.item_count,
    )
    if logged.create_time is not None:
        put_time(message.compile_time, logged.create_time)
    return message


def context_service(contexts: ContextsPort) -> ServedService:
    """Return ContextService, ready to be served."""
    return ServedService(
        pb.DESCRIPTOR.services_by_name["ContextService"],
        context_service_pb2_grpc.add_ContextServiceServicer_to_server,
        ContextServicer(contexts),
    )

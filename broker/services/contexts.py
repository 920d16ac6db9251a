"""The use cases of ContextService."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from broker.context.compiler import compile_context, is_heavy
from broker.context.limits import ContextLimits, narrowed
from broker.context.render import rendered_again
from broker.domain.authority import KNOWLEDGE, WHOLE_PROJECT, Authorized, Need
from broker.domain.call import Call
from broker.domain.compilations import (
    Compilation,
    CompilationLog,
    CompilationPage,
    CompilationQuery,
)
from broker.domain.context import CompileContext, Compiled, check_compile
from broker.domain.context_errors import CompilationNotFoundError
from broker.domain.context_log import (
    CompilationsListed,
    ContextCompiled,
    GetCompilation,
    ListCompilations,
    Proved,
    Verdict,
)
from broker.domain.errors import Violation
from broker.domain.fields import Violations, check_identifier, check_scope, refuse_if_any
from broker.domain.paging import (
    check_token_syntax,
    digest,
    moment_of,
    moment_token,
    page_limit,
)
from broker.domain.ports import Clock
from broker.domain.requests import ScopeInput, Unknown
from broker.services.access import Access, AccessPath
from broker.services.turns import Turns
from providers.capabilities import Capability
from providers.model import RevisionRef
from providers.requests import Candidates, CandidatesRequest, LoadRequest

LIST: Final = "ListCompilations"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Contexts:
    """Compiles contexts behind the checks of ``AccessPath``, logs them, and proves them later."""

    def __init__(
        self,
        access: AccessPath,
        log: CompilationLog,
        limits: ContextLimits,
        *,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        """Take the path of checks, the log, the configured limits, the clock, and ids (UUID 7)."""
        self._access = access
        self._log = log
        self._limits = limits
        self._clock = clock
        self._new_id = new_id
        self._turns = Turns()

    async def compile(self, call: Call, request: CompileContext) -> ContextCompiled:
        """Compile a context and log it before it is told (004-89..98, 000-38)."""
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        violations: Violations = []
        check_compile(violations, request)
        refuse_if_any(violations)
        cap = authorized.selected().max_prompt_tokens
        limits = narrowed(self._limits, request, prompt_cap=cap)
        access = await self._access.enter(authorized, Capability.COMPOSE)
        wanted = CandidatesRequest(
            project=access.project,
            agent_id=request.scope.agent_id,
            run_id=request.scope.run_id,
            limit=limits.candidates + 1,
        )
        found = await self._access.read(
            access, lambda provider, timeout: provider.candidates(wanted, timeout=timeout)
        )
        compiled = await self._compiled(call, request, found, limits)
        if request.dry_run or compiled.text is None:
            return ContextCompiled(compiled, "")
        logged = await self._log.append(self._entry(access, request, compiled))
        return ContextCompiled(compiled, logged.compilation_id)

    async def list(self, call: Call, request: ListCompilations) -> CompilationsListed:
        """Return a page of the log (000-38)."""
        violations: Violations = []
        check_identifier(violations, "project_id", request.project_id)
        if request.run_id:
            check_identifier(violations, "run_id", request.run_id)
        check_token_syntax(request.page_token)
        limit = page_limit(violations, request.page_size)
        refuse_if_any(violations)
        authorized, need = await self._admitted(call, request)
        bound_to = _page_digest(authorized, request)
        after = moment_of(request.page_token, bound_to)
        try:
            page = await self._log.list(_query(authorized, request, after, limit))
        except Exception:
            await self._access.confirm(authorized, need)
            raise
        await self._access.confirm(authorized, need)
        return CompilationsListed(page.compilations, _next_token(page, bound_to))

    async def get(self, call: Call, request: GetCompilation) -> Proved:
        """Return a compilation, rendered again from the revisions that entered (004-100)."""
        violations: Violations = []
        check_identifier(violations, "project_id", request.project_id)
        check_identifier(violations, "run_id", request.run_id)
        refuse_if_any(violations)
        authorized = await self._access.authorize(call, _run(request.project_id, request.run_id))
        check_identifier(violations, "compilation_id", request.compilation_id)
        refuse_if_any(violations)
        access = await self._access.enter(authorized, Capability.READ, create=False)
        try:
            logged = await self._log.find(
                authorized.tenant_id, request.project_id, request.run_id, request.compilation_id
            )
        except Exception:
            await self._access.confirm(authorized, KNOWLEDGE)
            raise
        if logged is None:
            await self._access.confirm(authorized, KNOWLEDGE)
            raise CompilationNotFoundError
        return await self._proved(access, logged)

    async def _compiled(
        self, call: Call, request: CompileContext, found: Candidates, limits: ContextLimits
    ) -> Compiled:
        """Compile, in a thread and one at a time where it would hold up the other calls."""
        now = self._clock.now()

        def work() -> Compiled:
            return compile_context(
                request, found.records, truncated=found.truncated_bytes, limits=limits, now=now
            )

        return await self._turns.run(call, work) if is_heavy(found.records) else work()

    def _entry(self, access: Access, request: CompileContext, compiled: Compiled) -> Compilation:
        text = compiled.text
        return Compilation(
            compilation_id=self._new_id(),
            tenant_id=access.project.tenant_id,
            project_id=access.project.project_id,
            run_id=request.scope.run_id,
            agent_id=request.scope.agent_id,
            actor_fingerprint=access.call.caller.actor_fingerprint,
            query_hash=None if request.query is None else _sha256(request.query),
            tokens=compiled.budget.tokens,
            item_limit=compiled.budget.items,
            characters_used=compiled.budget.characters_used,
            text_hash=None if text is None else _sha256(text),
            render_version=compiled.render_version,
            items=compiled.items,
            left_out=compiled.omitted,
            omitted_memory_count=compiled.omitted_memory_count,
            omitted_session_count=compiled.omitted_session_count,
            ignored_decision_count=compiled.ignored_decision_count,
        )

    async def _admitted(self, call: Call, request: ListCompilations) -> tuple[Authorized, Need]:
        """Check ① of a list: of a run, which has to be pinned, or of the whole project."""
        if request.run_id:
            scope = _run(request.project_id, request.run_id)
            authorized, need = await self._access.authorize(call, scope), KNOWLEDGE
        else:
            need = WHOLE_PROJECT
            authorized = await self._access.authorize_project(call, request.project_id, need)
        _check_list(request)
        if request.run_id:
            await self._access.enter(authorized, None, create=False)
        return authorized, need

    async def _proved(self, access: Access, logged: Compilation) -> Proved:
        wanted = LoadRequest(
            project=access.project,
            revisions=tuple(RevisionRef(item.record_id, item.revision) for item in logged.items),
        )
        loaded = await self._access.read(
            access, lambda provider, timeout: provider.load(wanted, timeout=timeout)
        )
        text = rendered_again(
            logged.render_version, logged.items, loaded.revisions, agent_id=logged.agent_id
        )
        if text is None:
            return Proved(logged, Verdict.UNVERIFIABLE, None)
        if _sha256(text) != logged.text_hash:
            return Proved(logged, Verdict.MISMATCH, None)
        return Proved(logged, Verdict.VERIFIED, text)


def _run(project_id: str, run_id: str) -> ScopeInput:
    return ScopeInput(project_id, run_id, "")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _check_list(request: ListCompilations) -> None:
    violations: Violations = []
    if request.record_id:
        check_identifier(violations, "record_id", request.record_id)
    if request.revision < 0:
        violations.append(Violation("revision", "must not be negative"))
    if request.revision and not request.record_id:
        violations.append(Violation("revision", "needs record_id"))
    for name in ("compiled_from", "compiled_before"):
        if isinstance(getattr(request, name), Unknown):
            violations.append(Violation(name, "must be a valid time"))
    refuse_if_any(violations)


def _query(
    authorized: Authorized,
    request: ListCompilations,
    after: tuple[datetime, str] | None,
    limit: int,
) -> CompilationQuery:
    return CompilationQuery(
        tenant_id=authorized.tenant_id,
        project_id=request.project_id,
        run_id=request.run_id or None,
        record_id=request.record_id or None,
        revision=request.revision or None,
        compiled_from=_time(request.compiled_from),
        compiled_before=_time(request.compiled_before),
        after=after,
        limit=limit,
    )


def _time(given: datetime | Unknown | None) -> datetime | None:
    return None if isinstance(given, Unknown) else given


def _page_digest(authorized: Authorized, request: ListCompilations) -> str:
    return digest(
        LIST,
        authorized.tenant_id,
        request.project_id,
        request.run_id,
        request.record_id,
        request.revision,
        _time(request.compiled_from),
        _time(request.compiled_before),
    )


def _next_token(page: CompilationPage, bound_to: str) -> str:
    if not page.more:
        return ""
    last = page.compilations[-1]
    return moment_token(bound_to, last.create_time or _EPOCH, last.compilation_id)

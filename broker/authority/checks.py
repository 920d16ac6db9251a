"""The two authority checks of a call. Fulfils ``broker.domain.ports.RunsAuthorityPort``.

Both judge in the same order, and the first rule broken gives the refusal:

1. the token against the request: purpose, bounds, whether it must be unbound. This needs no owner,
   so none is asked;
2. one owner RPC; its status and size;
3. the form of the owner's statement about the caller;
4. the statement against the token (check ②: against check ① as well);
5. permissions: AccessPrivateKnowledge, WriteProjects, ReadRunSelection;
6. the run selection: check ① keeps it or its refusal, so that the other fields of the request are
   judged before it; check ② compares it.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from broker.authority.context import Context, disagreement, read_context
from broker.authority.permissions import (
    first_of,
    held,
    judge_grants,
    judge_purpose,
    judge_token,
)
from broker.authority.selection import SelectionReader, check_entries, read_selection
from broker.domain.authority import Authorized, Need, Permission, RunSelection, RunSelections
from broker.domain.call import Call, ProjectScope, RunScope
from broker.domain.errors import (
    AuthorityChangedError,
    AuthorityResponseInvalidError,
    BrokerError,
    OfRunError,
    RunSelectionChangedError,
    RunSelectionNotFoundError,
)
from broker.domain.pace import Pace
from broker.owners.v1 import projects_config_service_pb2 as owners
from providers.making import maker

RUNS_MAX: Final = 500
"""How many runs one question may name."""

QUESTIONS_MAX: Final = 4
"""How many questions of one call may be open at the same time."""

_authorized: Final = maker(Authorized)
_Selections = Mapping[str, RunSelection | BrokerError]
_Answer = owners.GetRunAuthorityResponse | owners.GetProjectAuthorityResponse


class AuthoritySource(Protocol):
    """Answers what the owner says now. ``broker.authority.client.OwnerClient`` does."""

    async def run_authority(
        self, call: Call, scope: RunScope, permission: str
    ) -> owners.GetRunAuthorityResponse:
        """Ask once about a run; errors as there."""
        ...

    async def project_authority(
        self, call: Call, scope: ProjectScope, permission: str
    ) -> owners.GetProjectAuthorityResponse:
        """Ask once about a project and the runs that the scope names; errors as there."""
        ...

    async def caller_authority(
        self, call: Call, permission: str
    ) -> owners.GetCallerAuthorityResponse:
        """Ask once about the caller; errors as there."""
        ...


class OwnerAuthority:
    """Judges every call by what the owner says at that moment; keeps no state (004-01)."""

    def __init__(self, owner: AuthoritySource) -> None:
        self._owner = owner
        self._pace = Pace()

    async def check(self, call: Call, scope: RunScope | ProjectScope, need: Need) -> Authorized:
        """Check ①: one owner round trip (004-05..13).

        Raises:
            TokenPurposeBoundError, TokenBindingMismatchError, TokenBoundError: judged without the
                owner. Not retryable.
            TokenRejectedByOwnerError, PermissionMissingError: not retryable.
            AuthorityResponseInvalidError: the owner's answer is malformed or does not fit the
                token. Not retryable.
            AuthorityUnavailableError: retryable.
            DeadlineExceededError: the call's time ran out.
        """
        answer = await self._ask(call, scope, need)
        context = read_context(answer)
        _agree(context, call)
        return _judged(answer, context, need, call, scope)

    async def check_caller(self, call: Call) -> str:
        """Return the tenant of a caller who names no project: one owner round trip (004-81).

        Raises:
            TokenPurposeBoundError: judged without the owner. Not retryable.
            TokenRejectedByOwnerError, PermissionMissingError, AuthorityResponseInvalidError: not
                retryable.
            AuthorityUnavailableError: retryable.
            DeadlineExceededError: the call's time ran out.
        """
        judge_purpose(call.caller)
        answer = await self._owner.caller_authority(call, Permission.WRITE_PROJECTS)
        context = read_context(answer)
        _agree(context, call)
        return context.tenant_id

    async def recheck(self, first: Authorized, need: Need) -> Authorized:
        """Check ②: one more owner round trip, and nothing may have changed (004-15..17).

        ``need`` may ask for more than check ① did. The membership revision may have moved, and
        WriteProjects may have come or gone: the answer tells what holds now.

        Raises:
            What ``check`` raises.
            AuthorityChangedError: issuer, actor, tenant, bounds or purpose differ. Not retryable.
            RunSelectionChangedError: the selection differs in any field. Not retryable.
        """
        answer = await self._ask(first.call, first.scope, need)
        if answer == first.answer:  # so is all that was read from it
            judge_grants(first.grants, need)
            return first
        context = read_context(answer)
        _demand_same_caller(first, context)
        second = _judged(answer, context, need, first.call, first.scope)
        if not _same(first.selection, second.selection):
            raise RunSelectionChangedError("the run selection changed during the call")
        return second

    async def check_runs(
        self, first: Authorized, need: Need, run_ids: Sequence[str]
    ) -> RunSelections:
        """Ask for the selections of runs of a project: a round trip for every 500 (004-69).

        Each answer is judged as one of check ② is. No run: nothing is asked.

        Raises:
            What ``check`` raises.
            AuthorityChangedError: issuer, actor, tenant, bounds or purpose differ. Not retryable.
        """
        reader = SelectionReader(first.tenant_id, first.scope.project_id)
        selections: dict[str, RunSelection | BrokerError] = {}
        for some in _rounds(first.scope.project_id, run_ids):
            for said in await self._answered(first, need, some, reader):
                selections.update(said)
        return selections

    async def recheck_runs(self, first: Authorized, need: Need, selections: RunSelections) -> None:
        """Check ② of a call about many runs: everything again, and nothing may have changed.

        Raises:
            What ``recheck`` raises.
            OfRunError: the selection of a run differs in any field: RunSelectionChangedError. Not
                retryable.
        """
        if not selections:
            await self.recheck(first, need)
            return
        reader = SelectionReader(first.tenant_id, first.scope.project_id)
        changed: list[str] = []
        for some in _rounds(first.scope.project_id, tuple(selections)):
            for said in await self._answered(first, need, some, reader):
                changed += await self._changed(selections, said)
        if changed:
            raise OfRunError(
                changed[0], RunSelectionChangedError("a run selection changed during the call")
            )

    async def _changed(self, first: RunSelections, second: _Selections) -> list[str]:
        """Return the runs whose selections differ."""

        def same(run_id: str) -> bool:
            return _same(first[run_id], second[run_id])

        run_ids = tuple(second)
        alike = await self._pace.each(same, run_ids)
        return [run_id for run_id, one in zip(run_ids, alike, strict=True) if not one]

    async def _answered(
        self, first: Authorized, need: Need, some: Sequence[ProjectScope], reader: SelectionReader
    ) -> list[_Selections]:
        """Ask some questions at the same time, wait for all, and raise the first failure."""
        outcomes = await asyncio.gather(
            *(self._selections(first, need, scope, reader) for scope in some),
            return_exceptions=True,
        )
        answers: list[_Selections] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            answers.append(outcome)
        return answers

    async def _selections(
        self, first: Authorized, need: Need, scope: ProjectScope, reader: SelectionReader
    ) -> _Selections:
        judge_token(first.call.caller, scope, need)
        answer = await self._owner.project_authority(first.call, scope, first_of(need))
        context = read_context(answer)
        _demand_same_caller(first, context)
        judge_grants(held(context, scope.project_id), need)
        check_entries(answer, scope.run_ids)
        said = await self._pace.each(reader.read, answer.selections)
        return dict(zip(scope.run_ids, said, strict=True))

    async def _ask(self, call: Call, scope: RunScope | ProjectScope, need: Need) -> _Answer:
        judge_token(call.caller, scope, need)
        permission = first_of(need)
        if isinstance(scope, RunScope):
            return await self._owner.run_authority(call, scope, permission)
        return await self._owner.project_authority(call, scope, permission)


def _rounds(project_id: str, run_ids: Sequence[str]) -> Iterator[list[ProjectScope]]:
    """Put the questions about runs together that may be open at the same time."""
    questions = [
        ProjectScope(project_id, tuple(run_ids[start : start + RUNS_MAX]))
        for start in range(0, len(run_ids), RUNS_MAX)
    ]
    for start in range(0, len(questions), QUESTIONS_MAX):
        yield questions[start : start + QUESTIONS_MAX]


def _agree(context: Context, call: Call) -> None:
    field = disagreement(context, call.caller)
    if field is not None:
        raise AuthorityResponseInvalidError(f"the owner's answer does not fit: {field}")


def _demand_same_caller(first: Authorized, context: Context) -> None:
    if context.tenant_id != first.tenant_id or disagreement(context, first.call.caller):
        raise AuthorityChangedError("the caller's identity changed during the call")


def _judged(
    answer: _Answer,
    context: Context,
    need: Need,
    call: Call,
    scope: RunScope | ProjectScope,
) -> Authorized:
    """Judge the permissions, and put together what the broker may know."""
    grants = held(context, scope.project_id)
    judge_grants(grants, need)
    selection: RunSelection | BrokerError
    if isinstance(answer, owners.GetRunAuthorityResponse) and isinstance(scope, RunScope):
        selection = read_selection(answer, context.tenant_id, scope)
    else:
        selection = RunSelectionNotFoundError("the call names no run")
    return _authorized(
        call=call,
        scope=scope,
        tenant_id=context.tenant_id,
        membership_revision=context.membership_revision,
        grants=grants,
        selection=selection,
        answer=answer,
    )


def _same(first: RunSelection | BrokerError, second: RunSelection | BrokerError) -> bool:
    if isinstance(first, BrokerError):
        return type(first) is type(second)
    return first == second

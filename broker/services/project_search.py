"""The use case that searches the records of all agents of a project (004-69)."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final, TypeVar

from broker.domain.authority import WHOLE_PROJECT, Authorized, RunSelections
from broker.domain.call import Call, ProjectScope
from broker.domain.errors import (
    BindingMissingError,
    BrokerError,
    DeadlineExceededError,
    OfRunError,
    ProjectTooLargeError,
    Violation,
)
from broker.domain.fields import Violations, check_identifier, refuse_if_any
from broker.domain.pace import Pace
from broker.domain.paging import check_token_syntax, digest, page_limit
from broker.domain.ports import (
    Bound,
    Pin,
    PinQuery,
    ProjectBindings,
    ProjectPins,
    RunsAuthorityPort,
)
from broker.domain.project_pages import Place, merged_page
from broker.domain.requests import ProjectFound, SearchProject
from broker.services.gate import Gate
from broker.services.search_filter import (
    check_filters,
    check_times,
    filter_parts,
    known_time,
    position,
    token_after,
    wanted,
)
from providers.capabilities import Capability
from providers.errors import ProviderError
from providers.model import ProjectKey, ResourceIdentity
from providers.requests import SearchPage, SearchRequest

SEARCH_PROJECT: Final = "SearchProject"
RUN_IDS_MAX: Final = 500
RUNS_MAX: Final = 10_000
PLACES_MAX: Final = 16
MANY_RUNS: Final = 500
"""A call that looks at more runs waits until few such calls run in the process."""

T = TypeVar("T")


class _Group:
    """The runs that are pinned to one resource by one provider id.

    A resource is held against the first pin of each set of capabilities: it judges the others of
    the set alike.
    """

    def __init__(self, first: Bound) -> None:
        self.first = first
        self.kinds: dict[frozenset[str], Bound] = {}
        self._run_ids: list[str] = []

    def add(self, bound: Bound) -> None:
        self.kinds.setdefault(bound.pin.capabilities, bound)
        self._run_ids.append(bound.pin.run_id)

    def place(self) -> Place:
        return Place(self.first.pin.resource, frozenset(self._run_ids), min(self._run_ids))


class ProjectSearch:
    """Searches over the providers of all pinned runs of a project; pins none.

    What is found out after check ① has passed, good or bad, is told after check ② alone: first of
    the store of pins, then of selections, pins and providers.
    """

    def __init__(
        self,
        authority: RunsAuthorityPort,
        pins: ProjectPins,
        bindings: ProjectBindings,
        gate: Gate,
    ) -> None:
        """Take the three ports, and what lets few calls at a time look at many runs."""
        self._authority = authority
        self._pins = pins
        self._bindings = bindings
        self._gate = gate
        self._pace = Pace()

    async def search(self, call: Call, request: SearchProject) -> ProjectFound:
        """Return a page of heads of all agents, those updated last first (004-69)."""
        limit = _checked_first(request)
        scope = ProjectScope(request.project_id)
        authorized = await self._authority.check(call, scope, WHOLE_PROJECT)
        full = _checked_fields(request)
        bound_to = _page_digest(authorized, request)
        asked = wanted(
            request,
            project=ProjectKey(authorized.tenant_id, request.project_id),
            agent_id=None,
            after=position(request.page_token, bound_to),
            limit=limit,
            full=full,
        )
        if not await self._or_refused(authorized, {}, self._many(authorized, request)):
            found = await self._searched(authorized, request, asked)
        else:
            async with self._gate.place(authorized.tenant_id, call):
                found = await self._searched(authorized, request, asked)
        page = merged_page(found, limit, full=full)
        token = token_after(bound_to, page.hits[-1].record) if page.more else ""
        return ProjectFound(request.project_id, page.hits, token, full)

    async def _searched(
        self, authorized: Authorized, request: SearchProject, asked: SearchRequest
    ) -> list[tuple[Place, SearchPage]]:
        """Return what each resource gave, after check ②."""
        pins = await self._or_refused(authorized, {}, self._pinned(authorized, request))
        selections = await self._authority.check_runs(
            authorized, WHOLE_PROJECT, [pin.run_id for pin in pins]
        )
        found = await self._or_refused(
            authorized, selections, self._found(authorized.call, pins, selections, asked)
        )
        await self._authority.recheck_runs(authorized, WHOLE_PROJECT, selections)
        return found

    async def _or_refused(
        self, authorized: Authorized, selections: RunSelections, work: Awaitable[T]
    ) -> T:
        """Do work whose failure is told only after check ② has passed."""
        try:
            return await work
        except Exception:
            await self._authority.recheck_runs(authorized, WHOLE_PROJECT, selections)
            raise

    async def _many(self, authorized: Authorized, request: SearchProject) -> bool:
        """Tell whether more runs are asked for than a call may look at beside any others."""
        if request.run_ids:
            return len(request.run_ids) > MANY_RUNS
        query = _query(authorized, request, MANY_RUNS + 1)
        return await self._pins.count(query) > MANY_RUNS

    async def _pinned(self, authorized: Authorized, request: SearchProject) -> tuple[Pin, ...]:
        """Return the pins asked for, by run id."""
        since, before = known_time(request.pinned_from), known_time(request.pinned_before)
        pins = await self._pins.list(_query(authorized, request, RUNS_MAX + 1))
        if len(pins) > RUNS_MAX:
            raise _too_large("runs", RUNS_MAX)
        missing = set(request.run_ids) - {pin.run_id for pin in pins}
        if missing:
            raise OfRunError(
                min(missing), BindingMissingError("the run is not pinned to a provider yet")
            )
        return tuple(
            pin
            for pin in pins
            if pin.create_time is not None
            and (since is None or since <= pin.create_time)
            and (before is None or pin.create_time < before)
        )

    async def _found(
        self,
        call: Call,
        pins: Sequence[Pin],
        selections: RunSelections,
        asked: SearchRequest,
    ) -> list[tuple[Place, SearchPage]]:
        """Judge every run, then search each resource, all of them side by side."""
        groups: dict[tuple[str, ResourceIdentity], _Group] = {}

        def judge(pin: Pin) -> None:
            key = (pin.provider_id, pin.resource)
            bound = self._bound(pin, selections)
            groups.setdefault(key, _Group(bound)).add(bound)

        await self._pace.each(judge, pins)
        if len(groups) > PLACES_MAX:
            raise _too_large("resources", PLACES_MAX)
        remaining = _remaining(call)
        await _side_by_side(
            self._bindings.verify(tuple(group.kinds.values()), timeout=remaining)
            for group in groups.values()
        )
        remaining = _remaining(call)
        pages = await _side_by_side(
            _search(group.first, asked, remaining) for group in groups.values()
        )
        places = [group.place() for group in groups.values()]
        return list(zip(places, pages, strict=True))

    def _bound(self, pin: Pin, selections: RunSelections) -> Bound:
        selection = selections[pin.run_id]
        try:
            if isinstance(selection, BrokerError):
                raise selection
            bound = self._bindings.bound(pin, selection)
            bound.require(Capability.SEARCH)
        except BrokerError as error:
            raise OfRunError(pin.run_id, error) from error
        return bound


async def _search(bound: Bound, asked: SearchRequest, timeout: float) -> SearchPage:
    try:
        return await bound.provider.search(asked, timeout=timeout)
    except ProviderError as error:
        raise OfRunError(bound.pin.run_id, error) from error


def _query(authorized: Authorized, request: SearchProject, limit: int) -> PinQuery:
    named = bool(request.run_ids)
    return PinQuery(
        tenant_id=authorized.tenant_id,
        project_id=request.project_id,
        run_ids=request.run_ids,
        committed_from=None if named else known_time(request.pinned_from),
        committed_before=None if named else known_time(request.pinned_before),
        limit=limit,
    )


async def _side_by_side(works: Iterable[Awaitable[T]]) -> list[T]:
    """Do all at the same time, wait for all, and raise the first failure in their order."""
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    results: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results


def _remaining(call: Call) -> float:
    remaining = call.remaining()
    if remaining <= 0.0:
        raise DeadlineExceededError(outcome_unknown=False)
    return remaining


def _too_large(what: str, most: int) -> ProjectTooLargeError:
    return ProjectTooLargeError(
        f"more than {most} {what} are pinned; narrow the search by run_ids or time",
        metadata={"limit": what, "most": str(most)},
    )


def _checked_first(request: SearchProject) -> int:
    """Check what goes to the owner, and paging; return how many hits a page may hold."""
    violations: Violations = []
    check_identifier(violations, "project_id", request.project_id)
    if len(request.run_ids) > RUN_IDS_MAX:
        violations.append(Violation("run_ids", f"must be at most {RUN_IDS_MAX}"))
    seen: set[str] = set()
    for index, run_id in enumerate(request.run_ids[:RUN_IDS_MAX]):
        check_identifier(violations, f"run_ids[{index}]", run_id)
        if run_id in seen:
            violations.append(Violation(f"run_ids[{index}]", "must not be there twice"))
        seen.add(run_id)
    refuse_if_any(violations)
    check_token_syntax(request.page_token)
    limit = page_limit(violations, request.page_size)
    refuse_if_any(violations)
    return limit


def _checked_fields(request: SearchProject) -> bool:
    """Check the other fields; return whether whole records are asked for."""
    violations: Violations = []
    check_times(violations, request, ("pinned_from", "pinned_before"))
    full = check_filters(violations, request)
    refuse_if_any(violations)
    return full


def _page_digest(authorized: Authorized, request: SearchProject) -> str:
    """Bind a token to everything of the request but the page's size and place."""
    return digest(
        SEARCH_PROJECT,
        authorized.tenant_id,
        request.project_id,
        sorted(request.run_ids),
        known_time(request.pinned_from),
        known_time(request.pinned_before),
        *filter_parts(request),
    )

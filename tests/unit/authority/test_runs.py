"""Selections of many runs, with an owner that counts what is asked at the same time (004-69)."""

import asyncio
from collections.abc import Callable

import pytest

from broker.authority.checks import OwnerAuthority
from broker.domain.authority import WHOLE_PROJECT, Authorized, RunSelection
from broker.domain.call import Call, ProjectScope, RunScope
from broker.domain.errors import (
    AuthorityUnavailableError,
    BrokerError,
    OfRunError,
    RunSelectionChangedError,
    RunSelectionNotFoundError,
    TokenBoundError,
)
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.owner_answers import answer, caller, selection

PROJECT = ProjectScope("project-a")
Bend = Callable[[owners.GetProjectAuthorityResponse], None]


class RunsOwner:
    """Answers about any runs; ``bends`` and ``refusals`` are by the number of the question."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.open = self.most = 0
        self.bends: dict[int, Bend] = {}
        self.refusals: dict[int, BrokerError] = {}

    async def run_authority(
        self, call: Call, scope: RunScope, permission: str
    ) -> owners.GetRunAuthorityResponse:
        raise AssertionError

    async def caller_authority(
        self, call: Call, permission: str
    ) -> owners.GetCallerAuthorityResponse:
        raise AssertionError

    async def project_authority(
        self, call: Call, scope: ProjectScope, permission: str
    ) -> owners.GetProjectAuthorityResponse:
        self.asked.append(scope.run_ids)
        number = len(self.asked)
        self.open += 1
        self.most = max(self.most, self.open)
        for _ in range(5):
            await asyncio.sleep(0)
        self.open -= 1
        if number in self.refusals:
            raise self.refusals[number]
        given = owners.GetProjectAuthorityResponse(context=answer().context)
        for run_id in scope.run_ids:
            said = selection()
            said.run_id = run_id
            given.selections.add(run_id=run_id, selection=said)
        if number in self.bends:
            self.bends[number](given)
        return given


async def first_of(owner: RunsOwner, **said: str) -> tuple[OwnerAuthority, Authorized]:
    authority = OwnerAuthority(owner)
    deadline = asyncio.get_running_loop().time() + 60
    call = Call(caller=caller(**said), request_id="request-1", deadline=deadline)
    return authority, await authority.check(call, PROJECT, WHOLE_PROJECT)


def names(count: int) -> list[str]:
    return [f"run-{number:05}" for number in range(count)]


async def test_questions_of_500_four_at_a_time() -> None:
    """004-69: every run once, in order, and never more than four questions open."""
    owner = RunsOwner()
    authority, first = await first_of(owner)
    found = await authority.check_runs(first, WHOLE_PROJECT, names(2_501))
    assert list(found) == names(2_501)
    assert all(isinstance(one, RunSelection) and one.run_id == run for run, one in found.items())
    assert [len(asked) for asked in owner.asked] == [0, 500, 500, 500, 500, 500, 1]
    assert owner.most == 4
    await authority.recheck_runs(first, WHOLE_PROJECT, found)
    assert owner.asked[7:] == owner.asked[1:7]


async def test_no_run() -> None:
    """004-16, 004-69: nothing is asked about no run; check two asks about the caller alone."""
    owner = RunsOwner()
    authority, first = await first_of(owner)
    assert await authority.check_runs(first, WHOLE_PROJECT, ()) == {}
    assert owner.asked == [()]
    await authority.recheck_runs(first, WHOLE_PROJECT, {})
    assert owner.asked == [(), ()]


async def test_one_question_fails() -> None:
    """004-14, 004-69: the first failure in order is told, and nothing is left running."""
    owner = RunsOwner()
    authority, first = await first_of(owner)
    owner.refusals = {4: AuthorityUnavailableError("later"), 3: AuthorityUnavailableError("sooner")}
    with pytest.raises(AuthorityUnavailableError, match="sooner"):
        await authority.check_runs(first, WHOLE_PROJECT, names(3_000))
    assert (len(owner.asked), owner.open) == (5, 0)


async def test_a_refused_selection_is_kept_and_compared() -> None:
    """004-17, 004-69: a run without a selection is the run's own refusal, until it changes."""
    owner = RunsOwner()
    authority, first = await first_of(owner)
    owner.bends[2] = owner.bends[3] = lambda said: said.selections[1].ClearField("selection")
    found = await authority.check_runs(first, WHOLE_PROJECT, names(3))
    assert isinstance(found["run-00001"], RunSelectionNotFoundError)
    assert isinstance(found["run-00002"], RunSelection)
    await authority.recheck_runs(first, WHOLE_PROJECT, found)
    with pytest.raises(OfRunError) as told:
        await authority.recheck_runs(first, WHOLE_PROJECT, found)
    assert told.value.run_id == "run-00001"
    assert isinstance(told.value.cause, RunSelectionChangedError)


async def test_a_bound_token() -> None:
    """004-69: the token alone decides, whatever runs are asked for."""
    owner = RunsOwner()
    with pytest.raises(TokenBoundError):
        await first_of(owner, bound_project_id="project-a")
    assert owner.asked == []

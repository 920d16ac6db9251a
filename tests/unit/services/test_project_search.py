"""In what order a search through a project asks, and what it does at the same time (004-69)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from broker.domain.authority import Authorized, Need, RunSelections
from broker.domain.call import Call, Caller, ProjectScope, RunScope
from broker.domain.errors import (
    AuthorityChangedError,
    BrokerError,
    DeadlineExceededError,
    OfRunError,
    StorageUnavailableError,
)
from broker.domain.ports import Bound, Pin, PinQuery
from broker.domain.requests import SearchProject
from broker.services.gate import Gate
from broker.services.project_search import ProjectSearch
from providers.capabilities import Capability
from providers.errors import ProviderUnavailableError
from providers.model import ResourceIdentity
from providers.requests import SearchPage, SearchRequest
from tests.unit.binding.test_binder import SELECTION, ScriptedProvider
from tests.unit.services.world import PIN

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Surroundings:
    """All ports of the use case; ``events`` notes what is asked, in order."""

    events: list[str] = field(default_factory=list)
    pins: list[Pin] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    searching: int = 0
    most: int = 0
    both: asyncio.Event = field(default_factory=asyncio.Event)
    gate: Gate = field(default_factory=Gate)

    def note(self, event: str) -> None:
        self.events.append(event)
        if event in self.failures:
            raise self.failures[event]

    async def check(self, call: Call, scope: RunScope | ProjectScope, need: Need) -> Authorized:
        self.note("check")
        assert need.unbound and len(need.permissions) == 2
        return Authorized(
            call=call,
            scope=scope,
            tenant_id="tenant",
            membership_revision=1,
            grants={},
            selection=SELECTION,
        )

    async def recheck(self, first: Authorized, need: Need) -> Authorized:
        raise AssertionError

    async def check_runs(
        self, first: Authorized, need: Need, run_ids: Sequence[str]
    ) -> RunSelections:
        self.note(f"runs {len(run_ids)}")
        return {run_id: SELECTION._replace(run_id=run_id) for run_id in run_ids}

    async def recheck_runs(self, first: Authorized, need: Need, selections: RunSelections) -> None:
        self.note(f"again {len(selections)}")

    async def list(self, query: PinQuery) -> tuple[Pin, ...]:
        self.note("pins")
        return tuple(self.pins)

    async def count(self, query: PinQuery) -> int:
        self.note("count")
        return min(len(self.pins), query.limit)

    def bound(self, pin: Pin, selection: Any) -> Bound:
        self.note(f"bound {pin.run_id}")
        return Bound(Searched(self, pin), pin.provider_id, frozenset(Capability), pin)

    async def verify(self, bound: Sequence[Bound], *, timeout: float) -> None:
        self.note(f"verify {bound[0].pin.run_id}")

    async def search(self, seconds: float = 10.0, **changes: Any) -> Any:
        given: dict[str, Any] = {
            "project_id": "project",
            "run_ids": (),
            "pinned_from": None,
            "pinned_before": None,
            "query": "",
            "kinds": (),
            "states": (),
            "trusts": (),
            "tags": (),
            "importance_min": None,
            "importance_max": None,
            "updated_from": None,
            "updated_before": None,
            "page_size": 0,
            "page_token": "",
            "full": False,
        }
        caller = Caller(issuer="https://i", subject="s", bearer="Bearer x")
        call = Call(caller, "request", asyncio.get_running_loop().time() + seconds)
        request = SearchProject(**(given | changes))
        return await ProjectSearch(self, self, self, self.gate).search(call, request)


class Searched(ScriptedProvider):
    """Notes its searches and how many of them run at the same time."""

    def __init__(self, around: Surroundings, pin: Pin) -> None:
        super().__init__()
        self.around, self.pin = around, pin

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        around = self.around
        assert request.agent_id is None and 0.0 < timeout <= 10.0
        around.searching += 1
        around.most = max(around.most, around.searching)
        if around.most == 2:
            around.both.set()
        try:
            await asyncio.sleep(0.01)
            around.note(f"search {self.pin.run_id}")
        finally:
            around.searching -= 1
        return SearchPage((), more=False)


def pin(run_id: str, resource: str = "resource") -> Pin:
    return replace(PIN, run_id=run_id, resource=ResourceIdentity(resource, 1), create_time=NOW)


def three() -> Surroundings:
    return Surroundings(pins=[pin("a"), pin("b", "other"), pin("c")])


async def test_the_order_of_questions() -> None:
    """004-15, 004-69: owner, pins, owner, judgement, resources side by side, owner."""
    around = three()
    await around.search()
    assert around.events == [
        "check",
        "count",
        "pins",
        "runs 3",
        *("bound a", "bound b", "bound c"),
        *("verify a", "verify b"),
        *("search a", "search b"),
        "again 3",
    ]
    assert around.most == 2


@pytest.mark.parametrize(
    ("at", "error", "last"),
    [
        ("check", AuthorityChangedError("no"), "check"),
        ("count", StorageUnavailableError("down"), "again 0"),
        ("pins", StorageUnavailableError("down"), "again 0"),
        ("runs 3", AuthorityChangedError("no"), "runs 3"),
        ("bound c", BrokerError("bad pin"), "again 3"),
        ("verify b", OfRunError("b", BrokerError("bad resource")), "again 3"),
        ("search b", ProviderUnavailableError("down"), "again 3"),
    ],
)
async def test_what_failed_is_told_after_check_two(at: str, error: Exception, last: str) -> None:
    """004-15, 004-69: but for what the owner itself said; a lost right is told instead."""
    around = three()
    around.failures[at] = error
    with pytest.raises(type(error) if at in {"check", "count", "pins", "runs 3"} else OfRunError):
        await around.search()
    assert around.events[-1] == last
    assert around.searching == 0
    if last.startswith("again"):
        around.failures[last] = AuthorityChangedError("somebody else")
        with pytest.raises(AuthorityChangedError):
            await around.search()


async def test_the_first_of_several_failures() -> None:
    """004-69: the resource of the lowest run, whichever failed sooner; all have ended then."""
    around = three()
    around.failures = {f"search {run}": ProviderUnavailableError() for run in "ab"}
    with pytest.raises(OfRunError) as told:
        await around.search()
    assert (told.value.run_id, around.searching) == ("a", 0)


async def test_no_time_left() -> None:
    """004-69: a call without time touches no resource."""
    around = three()
    with pytest.raises(DeadlineExceededError):
        await around.search(seconds=0.0)
    assert not [event for event in around.events if event.startswith(("verify", "search"))]


async def test_a_caller_who_left() -> None:
    """004-69: a cancelled call leaves no search running and asks nobody any more."""
    around = three()
    task = asyncio.ensure_future(around.search())
    await around.both.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert around.searching == 0
    assert around.events[-1] == "verify b"

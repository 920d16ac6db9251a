"""What fails a search through a project: one bad run, one bad answer, one lost right.

Nothing is asked of a provider before the owner's word and every pin fit, and nothing is told before
check two has passed.
"""

from typing import Any, Final

import pytest

from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.authority_rows import (
    granting,
    projects_grant,
)
from tests.fixtures.record_calls import SEARCH_PROJECT
from tests.fixtures.two_resources import TwoResources, pin_runs
from tests.fixtures.wide import A, B, Bend, C, Wide, candidate, of_b, selected, wide

__all__ = ["wide"]

KNOWLEDGE: Final = owners.PERMISSION_ACCESS_PRIVATE_KNOWLEDGE
SELECTION: Final = owners.PERMISSION_READ_RUN_SELECTION
REVOKED: Final = (
    "PERMISSION_DENIED",
    "PERMISSION_MISSING",
    {"permission": "AccessPrivateKnowledge"},
)
UNFIT: Final = "FAILED_PRECONDITION"
READ_ONLY: Final = {"capabilities": ["memory.records.read"]}


# -------------------- tokens and rights


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"project_id": True}, "TOKEN_BOUND"),
        ({"project_id": True, "run_id": A}, "TOKEN_BOUND"),
        ({"project_id": True, "run_id": "run-x"}, "TOKEN_BOUND"),
        ({"project_id": "elsewhere"}, "TOKEN_BINDING_MISMATCH"),
        ({"purpose": "export"}, "TOKEN_PURPOSE_BOUND"),
    ],
)
async def test_bound_tokens(wide: Wide, claims: dict[str, Any], reason: str) -> None:
    """004-10, 004-11, 004-69: only a token that is bound to nothing; no owner is asked."""
    given = {key: wide.project if value is True else value for key, value in claims.items()}
    cost = await wide.cost(given)
    assert (cost.told, cost.questions, cost.work) == (("PERMISSION_DENIED", reason, {}), 0, {})


async def test_knowledge_on_the_tenant(wide: Wide) -> None:
    """004-06, 004-09, 004-69: knowledge counts on the tenant too, selections on the project."""
    tenant = (owners.RESOURCE_TYPE_TENANT, "tenant-a", (KNOWLEDGE,))
    wide.script(granting(tenant, projects_grant(SELECTION)))
    assert (await wide.cost()).work == {"negotiate": 2, "search": 2}


# -------------------- one bad pin


def changed_field(field: str) -> tuple[str, dict[str, str]]:
    """What a pin that differs from its selection is refused with."""
    return "RUN_SELECTION_CHANGED", {"run_id": "second-x", "field": field}


BAD_PINS: Final[dict[str, tuple[dict[str, Any], tuple[str, dict[str, str]], int]]] = {
    "resource": ({"resource_id": "another"}, ("BINDING_MISMATCH", {"run_id": "second-x"}), 3),
    "generation": ({"resource_generation": 2}, ("BINDING_MISMATCH", {"run_id": "second-x"}), 3),
    "provider": ({"provider_id": "another"}, changed_field("provider_id"), 0),
    "revision": ({"project_revision": 2}, changed_field("project_revision"), 0),
    "context": ({"context_revision": "context-v2"}, changed_field("context_revision"), 0),
    "capability": (
        READ_ONLY,
        (
            "CAPABILITY_MISSING",
            {"run_id": "second-x", "capability": "memory.records.search"},
        ),
        0,
    ),
}


@pytest.mark.parametrize("name", BAD_PINS)
async def test_one_bad_pin(wide: Wide, name: str) -> None:
    """004-29, 004-69: it fails the call and is named; without it the rest is found."""
    changes, (reason, metadata), negotiations = BAD_PINS[name]
    await wide.made(content="there")
    await pin_runs(wide.stand, wide.project, ("second-x",), **changes)
    cost = await wide.cost()
    assert cost.told == (UNFIT, reason, metadata)
    assert cost.questions == 3, "told only after check two"
    assert cost.work == ({"negotiate": negotiations} if negotiations else {})
    assert await wide.contents(run_ids=[A, B, C]) == ["there"]


async def test_a_run_without_a_pin(wide: Wide) -> None:
    """004-30, 004-69: a run that is named must be pinned; it is not pinned now."""
    longest = "a" * 256
    cost = await wide.cost(run_ids=["b", A, longest])
    assert cost.told == (UNFIT, "BINDING_MISSING", {"run_id": longest})
    assert (cost.questions, cost.work) == (2, {})
    assert await wide.stand.rows("knowledge.pins", wide.project) == 3


async def test_too_large(two_resources: TwoResources) -> None:
    """004-69: 10,000 runs and 16 resources are searched, more are to be narrowed."""
    stand = two_resources.first
    async with stand.channel() as channel:
        wide = Wide(stand, channel, stand.project(), two_resources)
        await pin_runs(stand, wide.project, [f"run-{n:05}" for n in range(10_001)])
        cost = await wide.cost()
        limit = {"limit": "runs", "most": "10000"}
        assert cost.told == (UNFIT, "PROJECT_TOO_LARGE", limit)
        assert (cost.questions, cost.work) == (2, {})
        await wide.made(run="run-00007", content="there")
        assert await wide.contents(run_ids=["run-00001"]) == ["there"]
        many = Wide(stand, channel, stand.project(), two_resources)
        for n in range(16):
            await pin_runs(stand, many.project, (f"run-{n:02}",), resource_generation=n + 1)
        cost = await many.cost()
        assert cost.told == (UNFIT, "BINDING_MISMATCH", {"run_id": "run-01"})
        assert cost.work == {"negotiate": 16}
        await pin_runs(stand, many.project, (C,))
        cost = await many.cost()
        assert cost.told == (UNFIT, "PROJECT_TOO_LARGE", {"limit": "resources", "most": "16"})
        assert cost.work == {}


# -------------------- one bad selection


def doubled_candidate(entry: owners.RunSelectionEntry) -> None:
    """Select two providers."""
    some = entry.selection.providers[0].candidates
    some.append(some[0])


BAD_SELECTIONS: Final[dict[str, tuple[Bend, str, str, dict[str, str]]]] = {
    "none": (of_b(lambda e: e.ClearField("selection")), "NOT_FOUND", "RUN_SELECTION_NOT_FOUND", {}),
    "tenant": (selected(tenant_id="tenant-b"), "INTERNAL", "RUN_SELECTION_INVALID", {}),
    "project": (selected(project_id="elsewhere"), "INTERNAL", "RUN_SELECTION_INVALID", {}),
    "run": (selected(run_id=A), "INTERNAL", "RUN_SELECTION_INVALID", {}),
    "malformed": (selected(context_revision=""), "INTERNAL", "RUN_SELECTION_INVALID", {}),
    "two": (of_b(doubled_candidate), UNFIT, "PROVIDER_SELECTION_INVALID", {}),
    "hosting": (
        candidate(hosting="elsewhere"),
        UNFIT,
        "PROVIDER_SELECTION_INVALID",
        {"field": "hosting"},
    ),
    "moved": (
        selected(project_configuration_revision=2),
        UNFIT,
        "RUN_SELECTION_CHANGED",
        {"field": "project_configuration_revision"},
    ),
    "another": (
        candidate(provider_id="second"),
        UNFIT,
        "RUN_SELECTION_CHANGED",
        {"field": "provider_id"},
    ),
}


@pytest.mark.parametrize("name", BAD_SELECTIONS)
async def test_one_bad_selection(wide: Wide, name: str) -> None:
    """004-21, 004-23, 004-29, 004-69: it fails the call and is named; no provider is asked."""
    bend, code, reason, metadata = BAD_SELECTIONS[name]
    wide.script(bend)
    cost = await wide.cost()
    assert cost.told == (code, reason, {"run_id": B, **metadata})
    assert (cost.questions, cost.work) == (3, {})


# -------------------- nothing before check two


async def _no_pin(wide: Wide) -> dict[str, Any]:
    return {"run_ids": ["absent"]}


async def _bad_pin(wide: Wide) -> dict[str, Any]:
    await pin_runs(wide.stand, wide.project, ("second-x",), **READ_ONLY)
    return {}


async def _bad_resource(wide: Wide) -> dict[str, Any]:
    await pin_runs(wide.stand, wide.project, ("second-x",), resource_id="another")
    return {}


async def _too_many(wide: Wide) -> dict[str, Any]:
    for n in range(16):
        await pin_runs(wide.stand, wide.project, (f"run-{n}",), resource_generation=n + 2)
    return {}


async def _nothing_wrong(wide: Wide) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("wrong", [_no_pin, _bad_pin, _bad_resource, _too_many, _nothing_wrong])
async def test_whoever_lost_the_right_is_told_nothing(wide: Wide, wrong: Any) -> None:
    """004-15, 004-16, 004-69: whatever was found out, only that the right is gone is told."""
    changes = await wrong(wide)
    wide.script(granting(), at=2 if "run_ids" in changes else 3)
    assert (await wide.cost(**changes)).told == REVOKED


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_a_resource_that_was_swapped(wide: Wide) -> None:
    """004-29, 004-69: a restored resource fails the call, after check two; the rest is not told."""
    await wide.made(content="there")
    async with wide.two.second.memory.renewed():
        cost = await wide.cost()
        wide.script(granting(), at=3)
        revoked = await wide.cost()
    wide.stand.owner.scripts.pop(wide.project)
    assert cost.told == (UNFIT, "BINDING_MISMATCH", {"run_id": C})
    assert (cost.questions, cost.work) == (3, {"negotiate": 2})
    assert revoked.told == REVOKED
    assert await wide.contents() == ["there"]


@pytest.mark.memories("postgres", "redis", "cosmos")
async def test_a_resource_that_is_away(wide: Wide) -> None:
    """004-69: a provider that is down fails the call, and says whose run that is; retry helps."""
    await wide.made(content="there")
    async with wide.two.second.memory.away():
        cost = await wide.cost()
    assert cost.told == ("UNAVAILABLE", "PROVIDER_UNAVAILABLE", {"run_id": C})
    assert cost.reply.retry and cost.questions == 3
    assert (await wide.call(SEARCH_PROJECT)).hits


# -------------------- what it costs


@pytest.mark.parametrize(("runs", "questions"), [(0, 2), (1, 3), (500, 3), (501, 5), (2_100, 11)])
async def test_cost(two_resources: TwoResources, runs: int, questions: int) -> None:
    """004-69: two questions more for every 500 runs; two trips for each resource, however many."""
    stand = two_resources.first
    async with stand.channel() as channel:
        wide = Wide(stand, channel, stand.project(), two_resources)
        names = [(f"run-{n}", f"second-{n}")[n % 2] for n in range(runs)]
        await pin_runs(stand, wide.project, names)
        cost = await wide.cost()
        asked = [
            len(each.request.run_ids)
            for each in stand.owner.questions[wide.project]
            if isinstance(each.request, owners.GetProjectAuthorityRequest)
        ]
    resources = min(runs, 2)
    assert cost.reply.hits == []
    assert cost.questions == questions
    assert max(asked) <= 500 and sum(asked) == 2 * runs
    assert cost.work == ({"negotiate": resources, "search": resources} if resources else {})

"""How laws are chosen for a backend, and how it is told what came of it."""

from dataclasses import replace

import pytest

from providers.capabilities import Capability
from providers.conformance.declaration import Hazard, StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import Law, law
from providers.conformance.plan import Result, law_id, plan_for, report
from tests.conformance import linked_harness, reference_harness

REFERENCE = replace(
    reference_harness.DECLARATION,
    capabilities=frozenset(Capability) - {Capability.COMPOSE},
    absent_capabilities={Capability.COMPOSE: "this one does not go so far"},
)
LINKED = linked_harness.DECLARATION


async def _judge(bench: Bench) -> None:
    """Judge nothing."""


def _law(name: str, capability: Capability = Capability.READ, **needs: object) -> Law:
    made = law("C-1", capability=capability, name=name)(_judge)
    return replace(made, **needs)  # type: ignore[arg-type]


PLAIN = _law("plain")
DURABLE = _law("durable", facts=frozenset({StoreFact.DURABLE}))
COMPOSING = _law("composing", Capability.COMPOSE)
CLUSTERED = _law("clustered", hazard=Hazard.CLUSTER)
IDENTITY = _law("identity", hazard=Hazard.IDENTITY)
LACKING = _law("lacking", needs_gap=True)


def test_each_law_is_chosen_or_a_gap_or_foreign() -> None:
    laws = [PLAIN, DURABLE, COMPOSING, CLUSTERED, IDENTITY, LACKING]
    plan = plan_for(REFERENCE, laws)
    assert plan.laws == (PLAIN, IDENTITY, LACKING)
    assert {gap.law: gap.reason for gap in plan.gaps} == {
        DURABLE: "durable: it lives in one process's memory",
        COMPOSING: "memory.context.compose: this one does not go so far",
    }
    assert plan.foreign == (CLUSTERED,)


def test_a_law_about_gaps_is_foreign_where_there_is_none() -> None:
    whole = replace(REFERENCE, capabilities=frozenset(Capability), absent_capabilities={})
    assert plan_for(whole, [LACKING]).foreign == (LACKING,)


def test_a_law_about_a_bound_is_foreign_where_there_is_none() -> None:
    bounded, free = _law("bounded", bounded=True), _law("free", bounded=False)
    assert plan_for(replace(REFERENCE, recall_records_max=200), [bounded, free]).laws == (bounded,)
    assert plan_for(replace(REFERENCE, recall_records_max=None), [bounded, free]).laws == (free,)


@pytest.mark.parametrize(
    ("results", "cell"),
    [
        ({}, "ran 0 of 2"),
        ({PLAIN: Result.PASSED}, "ran 1 of 2"),
        ({PLAIN: Result.PASSED, DURABLE: Result.PASSED}, "FULL 2"),
        ({PLAIN: Result.PASSED, DURABLE: Result.FAILED}, "FAILED 1 of 2"),
    ],
)
def test_report_tells_full_from_partial(results: dict[Law, Result], cell: str) -> None:
    plan = plan_for(LINKED, [PLAIN, DURABLE])
    lines = report([plan], {("linked", law_id(each)): how for each, how in results.items()})
    assert f"{Capability.READ}".ljust(34) + cell in lines


def test_report_tells_gaps_and_absences_with_their_reasons() -> None:
    passed = {("reference", law_id(PLAIN)): Result.PASSED}
    lines = report([plan_for(REFERENCE, [PLAIN, DURABLE, COMPOSING])], passed)
    told = "\n".join(lines)
    assert "1 passed, gaps 1" in told
    assert f"{Capability.COMPOSE} absent: this one does not go so far" in told
    assert f"gap (durable: it lives in one process's memory): {law_id(DURABLE)}" in told
    assert any(line.endswith("no laws yet") for line in lines)


@pytest.mark.parametrize(
    "changes",
    [
        {"absent_capabilities": {}},
        {"absent_facts": {**REFERENCE.absent_facts, StoreFact.DURABLE: " "}},
        {"facts": frozenset(StoreFact)},
        {"capabilities": frozenset({Capability.READ})},
    ],
)
def test_a_declaration_explains_what_it_leaves_out(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="reference"):
        replace(REFERENCE, **changes)  # type: ignore[arg-type]

"""Backend by law: one test for each, named ``<backend>-<area>-<law>``."""

from collections.abc import Callable

import pytest

from providers.conformance.law import Law, run
from providers.conformance.laws import all_laws
from providers.conformance.plan import Plan, law_id, plan_for
from tests.conformance.backends import BACKENDS
from tests.conformance.closing_report import PROPERTY

PLANS = [plan_for(backend.declaration) for backend in BACKENDS.values()]
CASES = [
    pytest.param(plan.declaration.backend, law, id=f"{plan.declaration.backend}-{law_id(law)}")
    for plan in PLANS
    for law in plan.laws
]


@pytest.mark.parametrize(("backend", "law"), CASES)
async def test_law(
    backend: str,
    law: Law,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    record_property(PROPERTY, (backend, law_id(law)))
    await run(law, BACKENDS[backend].harness(request))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.declaration.backend)
def test_every_law_is_run_or_accounted_for(plan: Plan) -> None:
    named = [*plan.laws, *plan.foreign, *(gap.law for gap in plan.gaps)]
    assert sorted(map(law_id, named)) == sorted(map(law_id, all_laws()))
    assert all(gap.reason.strip() for gap in plan.gaps)


def test_backends_are_registered_under_their_own_names() -> None:
    assert {name: each.declaration.backend for name, each in BACKENDS.items()} == {
        name: name for name in BACKENDS
    }

"""Backend by law: one test for each, named ``<backend>-<area>-<law>``."""

from collections.abc import Callable, Iterator

import pytest

from providers.conformance.law import Law, run
from providers.conformance.plan import law_id, plan_for
from tests.conformance.backends import BACKENDS

PLANS = [plan_for(backend.declaration) for backend in BACKENDS.values()]


def _cases() -> Iterator[object]:
    for plan in PLANS:
        backend = plan.declaration.backend
        for law in plan.laws:
            yield pytest.param(backend, law, id=f"{backend}-{law_id(law)}")


@pytest.mark.parametrize(("backend", "law"), list(_cases()))
async def test_law(
    backend: str,
    law: Law,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("law", (backend, law_id(law)))
    await run(law, BACKENDS[backend].harness(request))

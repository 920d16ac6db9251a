"""Every backend the laws judge. One that cannot be had fails the run; nothing is skipped."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from broker.devstack.redis import Flavour
from providers.conformance.declaration import Declaration
from providers.conformance.harness import Harness
from tests.conformance import cosmos_harness, postgres_harness, redis_harness, reference_harness


@dataclass(frozen=True)
class Backend:
    """What it declares, and how its harness is made once a law is about to run."""

    declaration: Declaration
    harness: Callable[[pytest.FixtureRequest], Harness]


BACKENDS: Mapping[str, Backend] = {
    "reference": Backend(
        reference_harness.DECLARATION, lambda _request: reference_harness.ReferenceHarness()
    ),
    "postgres": Backend(postgres_harness.DECLARATION, postgres_harness.from_request),
    cosmos_harness.DECLARATION.backend: Backend(
        cosmos_harness.DECLARATION, cosmos_harness.from_request
    ),
    **{
        str(flavour): Backend(
            redis_harness.declaration(flavour), redis_harness.from_request(flavour)
        )
        for flavour in Flavour
    },
}

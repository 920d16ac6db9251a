"""Every shipped settings example advertises all that the adapter can do.

A run pins what was advertised when it was first used, for ever: what an example leaves out is lost
to every run that was begun with it.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from broker.devstack import playground
from providers.postgres.negotiate import CAPABILITIES
from tests.deploy.files import readme_blocks, settings
from tests.fixtures.memory import CAPABILITIES as STAND


def readme() -> Iterator[dict[str, Any]]:
    """The providers of every settings file in the README."""
    for text in readme_blocks("toml"):
        yield from tomllib.loads(text).get("providers", [])


EXAMPLES = {
    "README": [each["advertised_capabilities"] for each in readme()],
    "k8s": [each["advertised_capabilities"] for each in settings()["providers"]],
    # compose.yaml runs `broker dev`, and so has the same catalog
    "playground": [
        each["capabilities"] for each in yaml.safe_load(playground.template())["catalog"].values()
    ],
    "stand of the tests": [STAND],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_advertises_what_the_adapter_can_do(name: str) -> None:
    """004-32: the catalog says what a provider can do."""
    assert EXAMPLES[name]
    for advertised in EXAMPLES[name]:
        assert sorted(advertised) == sorted(CAPABILITIES)

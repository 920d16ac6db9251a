"""What every run of the tests takes part in."""

import pytest

from tests.conformance.closing_report import ClosingReport

pytest_plugins = ["tests.fixtures.postgres"]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ClosingReport(), "conformance-report")

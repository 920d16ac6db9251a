"""What every run of the tests takes part in."""

import pytest

pytest_plugins = ["tests.fixtures.postgres", "tests.fixtures.broker", "tests.fixtures.own_broker"]


def pytest_configure(config: pytest.Config) -> None:
    # Not at the top: what this imports holds plugins, which pytest has to import first.
    from tests.conformance.closing_report import ClosingReport

    config.pluginmanager.register(ClosingReport(), "conformance-report")

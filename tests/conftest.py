"""What every run of the tests takes part in."""

import os

import pytest

pytest_plugins = [
    "tests.fixtures.postgres",
    "tests.fixtures.redis",
    "tests.fixtures.memory",
    "tests.fixtures.cosmos_account",
    "tests.fixtures.cosmos",
    "tests.fixtures.cosmos_resource",
    "tests.fixtures.broker",
    "tests.fixtures.own_broker",
    "tests.fixtures.two_resources",
]

# gRPC runs in this process while servers are started from it. What it does at a fork by default can
# end the child before it becomes the program it should.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"


def pytest_configure(config: pytest.Config) -> None:
    # Not at the top: what this imports holds plugins, which pytest has to import first.
    from tests.conformance.closing_report import ClosingReport

    config.pluginmanager.register(ClosingReport(), "conformance-report")

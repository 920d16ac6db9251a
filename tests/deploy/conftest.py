"""A server for each test that makes roles: they belong to a whole server, and have fixed names."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.devstack.postgres import PostgresServer
from tests.deploy.operator import ROLES, Operator


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Operator]:
    """An operator with a new server and nothing on it."""
    with (
        tempfile.TemporaryDirectory(prefix="broker-runbook-") as directory,
        PostgresServer(Path(directory) / "data", settings={"fsync": "on"}) as server,
    ):
        yield Operator(server, tmp_path)


@pytest.fixture
def operator(newcomer: Operator) -> Operator:
    """An operator who has made the roles, migrated, and written the marker."""
    newcomer.run("roles")
    for role in ROLES:
        newcomer.set_password(role)
    newcomer.run("migrate")
    return newcomer

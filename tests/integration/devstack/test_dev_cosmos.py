"""``broker dev --provider cosmos``: a whole stack that keeps memory in the stand-in."""

from __future__ import annotations

import re
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from broker.devstack.banner import STAND_IN
from broker.devstack.cosmos import CosmosServer
from providers.cosmos.container import definition
from providers.cosmos.options import CosmosOptions
from providers.cosmos.provider import CosmosMemoryProvider
from tests.fixtures.cosmos import cosmos_client
from tests.fixtures.dev_stack import Stack, printed
from tests.fixtures.postgres import Database

COSMOS = ("--provider", "cosmos")
WARNING = STAND_IN.splitlines()


@contextmanager
def running(directory: Path) -> Iterator[Stack]:
    stack = Stack(directory, 0, "", *COSMOS, real=True)
    try:
        yield stack.ready()
    finally:
        stack.stop()
    assert stack.process.returncode == 0, "\n".join(stack.output)


def provider(stack: Stack) -> dict[str, Any]:
    """The one provider of the settings that the broker was started with."""
    (only,) = stack.settings["providers"]
    found: dict[str, Any] = only
    return found


def tour(stack: Stack, tool: str = "buf") -> str:
    """Takes the tour, but for who is refused; returns what it printed."""
    *commands, _ = printed(stack, tool)
    done = stack.bash("set -e", *commands)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tour_works_and_the_data_stay(directory: Path) -> None:
    """004-34: through the adapter, and over a start of all."""
    with running(directory) as first:
        told = first.line(r"Memory is kept in (.*) on https://127\.0\.0\.1:\d+/ \(adapter (.*)\)\.")
        assert told.groups() == ("a STAND-IN for Azure Cosmos DB", "cosmos.memory")
        assert provider(first)["adapter"] == "cosmos.memory"
        assert "refreshed on Tuesdays" in tour(first)
        assert "permission_denied" in first.bash(*printed(first, "buf")).stderr
        resource = provider(first)["options"]["resource_id"]
    with running(directory) as second:
        assert provider(second)["options"]["resource_id"] == resource
        assert tour(second, "grpcurl").count('"replayed": true') == 2


def test_that_it_is_a_stand_in_is_the_first_and_the_last_that_is_told(directory: Path) -> None:
    with running(directory) as stack:
        stack.read_until(WARNING[1])
        assert not any("Stopp" in line for line in stack.output)
    assert stack.output[: len(WARNING)] == WARNING
    ready = stack.output.index("Ctrl-C stops everything; the data stay.")
    assert stack.output[ready + 2 : ready + 2 + len(WARNING)] == WARNING
    assert "NOT AZURE COSMOS DB" in STAND_IN


def test_other_stores_are_real_and_say_nothing_of_it(directory: Path) -> None:
    stack = Stack(directory, 0, "", real=True).ready()
    assert stack.stop() == 0
    assert not set(WARNING) & set(stack.output)


async def test_memory_is_in_the_container_and_pins_are_in_postgres(directory: Path) -> None:
    """004-34: the container is as negotiation wants it, and the marker is in it."""
    with running(directory) as stack:
        tour(stack)
        connection = await asyncpg.connect(stack.settings["store"]["dsn"])
        try:
            assert await connection.fetchval("SELECT count(*) FROM knowledge.pins") == 1
            assert await connection.fetchval("SELECT to_regnamespace('memory')") is None
        finally:
            await connection.close()
        given = provider(stack)
        options = CosmosOptions(**given["options"], options_revision=given["options_revision"])
        fit = CosmosMemoryProvider(options)
        assert (await fit.negotiate(timeout=20)).resource.resource_id == options.resource_id
        await fit.close()
    with CosmosServer(directory / "cosmos") as server:
        async with cosmos_client(server) as client:
            container = client.get_database_client("knowledge").get_container_client("memory")
            read = await container.read()
            assert definition().items() <= read.items()
            assert "defaultTtl" not in read


def test_the_key_is_shown_to_nobody(directory: Path) -> None:
    with running(directory) as stack:
        tour(stack)
        assert stat.S_IMODE((directory / "broker.toml").stat().st_mode) == 0o600
        assert stat.S_IMODE((directory / "cosmos" / "key").stat().st_mode) == 0o600
        key = provider(stack)["options"]["key"]
    assert key not in "\n".join(stack.output)


def test_parts_stop_in_order(directory: Path) -> None:
    with running(directory) as stack:
        pass
    ends = [line for line in stack.output if re.match(r"(Stopp|[\w -]+: stopping)", line)]
    assert ends == [
        "Stopping.",
        "Broker: stopping",
        "Cosmos DB stand-in: stopping",
        "PostgreSQL: stopping",
        "Stopped.",
    ]


def test_signal_during_the_start_stops_what_was_started(directory: Path) -> None:
    early = Stack(directory, 0, "", *COSMOS, real=True)
    early.read_until("Cosmos DB stand-in: starting")
    assert early.stop(signal.SIGINT) == 0
    assert early.output[-3:] == [
        "Cosmos DB stand-in: stopping",
        "PostgreSQL: stopping",
        "Stopped.",
    ]


def test_killed_stack_leaves_nothing_in_the_way(directory: Path) -> None:
    first = Stack(directory, 0, "", *COSMOS, real=True).ready()
    tour(first)
    first.stop(signal.SIGKILL)
    with running(directory) as second:
        assert tour(second).count('"replayed": true') == 2


@pytest.mark.parametrize(("begun", "other"), [("postgres", "cosmos"), ("cosmos", "redis")])
def test_a_directory_stays_with_the_provider_it_was_begun_with(
    directory: Path, begun: str, other: str
) -> None:
    first = Stack(directory, 0, "", "--provider", begun, real=True).ready()
    assert first.stop() == 0
    second = Stack(directory, 0, "", "--provider", other, real=True)
    assert second.end() == 1
    assert second.output == [
        f"broker: {directory} was begun with --provider {begun}; name another directory with --data"
    ]


def test_a_given_postgres_is_refused_in_one_line(
    directory: Path, postgres_database: Database
) -> None:
    dsn = postgres_database.runtime_dsn
    given = Stack(directory, 0, "", *COSMOS, real=True, BROKER_DEV_POSTGRES_DSN=dsn)
    assert given.end() == 1
    (line,) = given.output
    assert line == ("broker: a given PostgreSQL keeps memory itself: leave out --provider cosmos")
    assert not directory.exists()


def test_a_stand_in_that_is_served_by_somebody_else_is_left_alone(directory: Path) -> None:
    with CosmosServer(directory / "cosmos") as server:
        failed = Stack(directory, 0, "", *COSMOS, real=True)
        assert failed.end() == 1
        assert "PostgreSQL: stopping" in failed.output
        held = f"{directory}/cosmos is in use by a server with pid {server.pid}"
        assert held in failed.output[-1]
        assert server.is_running


def test_a_stand_in_that_cannot_start_is_told_and_the_rest_is_stopped(directory: Path) -> None:
    (directory / "cosmos" / "key").mkdir(parents=True)
    failed = Stack(directory, 0, "", *COSMOS, real=True)
    assert failed.end() == 1
    assert "PostgreSQL: stopping" in failed.output
    assert "broker: the stand-in ended while starting" in "\n".join(failed.output)

"""``broker dev --provider redis``: a whole stack that keeps memory in a Redis of its own."""

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
import redis

from broker.devstack.redis import Flavour
from tests.fixtures.dev_stack import Stack, printed
from tests.fixtures.postgres import Database

REDIS = ("--provider", "redis")
NO_PROGRAMS = {"PATH": "/nowhere"}
"""What makes a machine one without Redis; all else is found by its full path."""


@contextmanager
def running(directory: Path, flavour: Flavour = Flavour.REDIS) -> Iterator[Stack]:
    environment = NO_PROGRAMS if flavour is Flavour.VALKEY else {}
    stack = Stack(directory, 0, "", *REDIS, real=True, **environment)
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


def client(stack: Stack) -> redis.Redis:
    """A client with what the broker was given."""
    options = provider(stack)["options"]
    host, _, port = options["endpoint"].removeprefix("rediss://").partition(":")
    return redis.Redis(
        host,
        int(port),
        username=options["username"],
        password=options["password"],
        ssl=True,
        ssl_ca_certs=options["ca_file"],
    )


@pytest.mark.parametrize("flavour", [*Flavour])
def test_the_tour_works_and_the_data_stay(directory: Path, flavour: Flavour) -> None:
    with running(directory, flavour) as first:
        assert (
            first.line(r"Memory is kept in (\w+) on rediss://localhost:\d+ \(adapter (.*)\)")[1]
            == str(flavour).title()
        )
        assert provider(first)["adapter"] == "redis.memory"
        *tour, outsider = printed(first, "buf")
        done = first.bash("set -e", *tour)
        assert done.returncode == 0, done.stderr
        assert "refreshed on Tuesdays" in done.stdout
        assert "permission_denied" in first.bash(*tour, outsider).stderr
        resource = provider(first)["options"]["resource_id"]
    with running(directory, flavour) as second:
        assert provider(second)["options"]["resource_id"] == resource
        *tour, _ = printed(second, "grpcurl")
        done = second.bash("set -e", *tour)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count('"replayed": true') == 2


async def test_memory_is_in_redis_and_pins_are_in_postgres(directory: Path) -> None:
    with running(directory) as stack:
        *tour, _ = printed(stack, "buf")
        assert stack.bash("set -e", *tour).returncode == 0
        dsn = stack.settings["store"]["dsn"]
        connection = await asyncpg.connect(dsn)
        try:
            assert await connection.fetchval("SELECT count(*) FROM knowledge.pins") == 1
            assert await connection.fetchval("SELECT to_regnamespace('memory')") is None
        finally:
            await connection.close()
        info: Any = client(stack).info("keyspace")
        assert info["db0"]["keys"] > 1


def test_the_broker_has_the_rights_it_needs_and_no_password_is_shown(directory: Path) -> None:
    with running(directory) as stack:
        with pytest.raises(redis.exceptions.NoPermissionError):
            client(stack).set("agentweaver:knowledge:mine", "1")
        assert stat.S_IMODE((directory / "broker.toml").stat().st_mode) == 0o600
        password = provider(stack)["options"]["password"]
    assert password not in "\n".join(stack.output)


def test_parts_stop_in_order(directory: Path) -> None:
    with running(directory) as stack:
        pass
    ends = [line for line in stack.output if re.match(r"(Stopp|\w+: stopping)", line)]
    assert ends == [
        "Stopping.",
        "Broker: stopping",
        "Redis: stopping",
        "PostgreSQL: stopping",
        "Stopped.",
    ]


def test_signal_during_the_start_stops_what_was_started(directory: Path) -> None:
    early = Stack(directory, 0, "", *REDIS, real=True)
    early.read_until("Redis: starting")
    assert early.stop(signal.SIGINT) == 0
    assert early.output[-3:] == ["Redis: stopping", "PostgreSQL: stopping", "Stopped."]


def test_killed_stack_leaves_nothing_in_the_way(directory: Path) -> None:
    first = Stack(directory, 0, "", *REDIS, real=True).ready()
    *tour, _ = printed(first, "buf")
    assert first.bash("set -e", *tour).returncode == 0
    first.stop(signal.SIGKILL)
    with running(directory) as second:
        done = second.bash("set -e", *printed(second, "buf")[:-1])
        assert done.stdout.count('"replayed": true') == 2


@pytest.mark.parametrize("begun", ["postgres", "redis"])
def test_a_directory_stays_with_the_provider_it_was_begun_with(directory: Path, begun: str) -> None:
    first = Stack(directory, 0, "", "--provider", begun, real=True).ready()
    assert first.stop() == 0
    (other,) = {"postgres", "redis"} - {begun}
    second = Stack(directory, 0, "", "--provider", other, real=True)
    assert second.end() == 1
    assert second.output == [
        f"broker: {directory} was begun with --provider {begun}; name another directory with --data"
    ]


def test_what_does_not_go_together_is_told_in_one_line(
    directory: Path, postgres_database: Database
) -> None:
    unknown = Stack(directory, 0, "", "--provider", "mongo", real=True)
    assert unknown.end() == 1
    (line,) = unknown.output
    assert line == "broker: --provider: there is no 'mongo'; there are: postgres, redis, cosmos"
    given = Stack(
        directory,
        0,
        "",
        *REDIS,
        real=True,
        BROKER_DEV_POSTGRES_DSN=postgres_database.runtime_dsn,
    )
    assert given.end() == 1
    (line,) = given.output
    assert line.startswith("broker: a given PostgreSQL keeps memory itself")
    assert not directory.exists()


def test_redis_that_cannot_start_is_told_and_the_rest_is_stopped(directory: Path) -> None:
    (directory / "redis").mkdir(parents=True)
    (directory / "redis" / "flavour").write_text("valkey")
    (directory / "redis" / "data").touch()
    failed = Stack(directory, 0, "", *REDIS, real=True)
    assert failed.end() == 1
    assert "PostgreSQL: stopping" in failed.output
    assert failed.output[-1].startswith("broker: cannot start the server: ")

"""A whole development stack, as a process of its own, with the broker or a stand-in for it."""

from __future__ import annotations

import fcntl
import json
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import grpc
import pytest

from broker.devstack import banner
from broker.devstack.data import DataDirectory
from broker.devstack.tokens import TokenIssuer
from broker.owners.v1.events_service_pb2_grpc import EventsServiceStub
from tests.fixtures.dev_stack import Stack, printed
from tests.fixtures.events_calls import admission


@pytest.fixture
def stack(directory: Path) -> Iterator[Stack]:
    running = Stack(directory)
    try:
        yield running.ready()
    finally:
        running.stop()


@pytest.mark.parametrize("real", [False, True], ids=["stand-in", "broker"])
def test_printed_commands_work_when_pasted(directory: Path, real: bool) -> None:
    """The newcomer's tour, pasted twice into bash, in any working directory, with both tools."""
    stack = Stack(directory, real=real).ready()
    try:
        for tool, denied in (("buf", "permission_denied"), ("grpcurl", "PermissionDenied")):
            *tour, outsider = printed(stack, tool)
            assert sum(command.startswith(tool) for command in tour) == 4
            first, second = (stack.bash("set -e", *tour) for _ in range(2))
            for done in (first, second):
                assert done.returncode == 0, done.stderr
                assert "refreshed on Tuesdays" in done.stdout
            assert second.stdout.count('"replayed": true') == 2
            refused = stack.bash(*tour, outsider)
            assert refused.returncode != 0
            assert denied in refused.stderr
    finally:
        assert stack.stop() == 0


def test_data_and_tokens_of_the_broker_survive_a_restart(directory: Path) -> None:
    first = Stack(directory, real=True).ready()
    *tour, _ = printed(first, "buf")
    assert first.bash("set -e", *tour).returncode == 0
    assert first.stop() == 0
    token = first.line(r"export TOKEN=.*")[0]
    second = Stack(directory, real=True).ready()
    try:
        *again, _ = printed(second, "buf")
        done = second.bash("set -e", *again[:-4], token, *again[-4:])
        assert done.returncode == 0, done.stderr
        assert '"revision": "2"' in done.stdout
    finally:
        assert second.stop() == 0


def test_stop_is_clean_and_in_order_and_the_data_stay(directory: Path) -> None:
    first = Stack(directory).ready()
    token = TokenIssuer(directory / "keys").mint("olga")
    assert first.stop(signal.SIGTERM) == 0
    assert first.output[-5:] == [
        "Stopping.",
        "Broker: stopping",
        "drained",
        "PostgreSQL: stopping",
        "Stopped.",
    ]
    database = first.line(r"PostgreSQL: ready on 127\.0\.0\.1:(\d+)")
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(database[1]))) != 0
    second = Stack(directory).ready()
    try:
        assert second.line(r"starts: (\d+)")[1] == "2"
        address = second.line(r"serves on (\S+)")[1]
        create, *_ = banner.buf_steps(address, DataDirectory(directory))
        path = second.line(r"export PATH=.*")[0]
        assert second.bash(path, f"TOKEN={token}", create.command).returncode == 0
    finally:
        assert second.stop(signal.SIGINT) == 0


def test_second_stack_on_the_same_directory_is_refused(stack: Stack) -> None:
    second = Stack(stack.data)
    assert second.end() == 1
    (message,) = second.output
    assert f"{stack.data} is in use" in message
    assert str(stack.process.pid) in message
    assert stack.process.poll() is None
    *tour, _ = printed(stack, "buf")
    assert stack.bash("set -e", *tour).returncode == 0


def test_killed_stack_leaves_nothing_in_the_way(directory: Path) -> None:
    first = Stack(directory).ready()
    first.stop(signal.SIGKILL)
    second = Stack(directory).ready()
    assert second.line(r"starts: (\d+)")[1] == "2"
    assert second.stop() == 0


def test_port_in_use_is_refused_before_anything_starts(directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = Stack(directory, port=taken.getsockname()[1])
        assert refused.end() == 1
    (message,) = refused.output
    assert "choose another with --port" in message


@pytest.mark.parametrize("trouble", ["port", "place", "in use", "playground"])
def test_what_a_person_can_mend_is_told_in_one_line(directory: Path, trouble: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, ExitStack() as held:
        port = taken.getsockname()[1] if trouble == "port" else 0
        if trouble == "place":
            directory.touch()
        elif trouble == "in use":
            directory.mkdir()
            fcntl.flock(held.enter_context((directory / "lock").open("w")), fcntl.LOCK_EX)
        elif trouble == "playground":
            directory.mkdir()
            (directory / "playground.yaml").write_text("tenants: 1\nmore: 2\n")
        refused = Stack(directory, port, real=True)
        assert refused.end() == 1
    (line,) = refused.output
    assert line.startswith("broker: ")
    assert directory.exists() is (trouble != "port")


def test_invalid_playground_is_told_entry_by_entry(directory: Path) -> None:
    directory.mkdir()
    (directory / "playground.yaml").write_text("catalog: {}\ntenants: {acme: {projcts: {}}}\n")
    refused = Stack(directory)
    assert refused.end() == 1
    assert "tenants.acme.projcts" in "\n".join(refused.output)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("unprepared", "cannot be prepared"),
        ("no-start", "the broker did not start: no good settings"),
        ("dies", "the broker ended by itself"),
    ],
)
def test_trouble_of_the_broker_ends_everything(directory: Path, trouble: str, message: str) -> None:
    failed = Stack(directory, trouble=trouble)
    assert failed.end() == 1
    assert f"broker dev: {message}" in failed.output[-1]
    assert "PostgreSQL: stopping" in failed.output


def test_signal_during_the_start_stops_what_was_started(directory: Path) -> None:
    early = Stack(directory)
    early.read_until("PostgreSQL: starting")
    assert early.stop(signal.SIGINT) == 0
    assert early.output[-2:] == ["PostgreSQL: stopping", "Stopped."]
    hanging = Stack(directory, trouble="never-ready")
    hanging.read_until("hanging")
    assert hanging.stop(signal.SIGTERM) == 0
    assert hanging.output[-1] == "Stopped."


def test_secrets_are_for_the_owner_of_the_directory_only(stack: Stack) -> None:
    for name in (
        "records/memory.json",
        "playground.yaml",
        "secrets.json",
        "broker.toml",
        "keys/signing-key.pem",
    ):
        assert stat.S_IMODE((stack.data / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((stack.data / "records").stat().st_mode) == 0o700
    secrets = json.loads((stack.data / "secrets.json").read_text())
    printed_text = "\n".join(stack.output)
    assert not any(secret in printed_text for secret in secrets.values())


async def test_the_events_service_reads_back_from_the_broker_that_was_started(stack: Stack) -> None:
    """004-80: a stand-in serves no receipts, which is another answer than not to be reached."""
    address = stack.line(r"Events service: ready on (\S+)")[1]
    assert stack.line(r"facts of the Events service on (\S+)")[1] == address
    token = TokenIssuer(stack.data / "keys").mint("olga")
    async with grpc.aio.insecure_channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await EventsServiceStub(channel).AdmitAcceptedEffect(
                admission("receipt-1"), metadata=(("authorization", f"Bearer {token}"),)
            )
    told = tuple(refused.value.trailing_metadata())
    assert told == (("x-events-code", "knowledge_receipt_invalid"),)
    assert stack.settings["events"]["address"] == address


async def test_the_role_of_events_is_a_plain_login_with_one_schema(stack: Stack) -> None:
    """004-80: it sees nothing of what the broker keeps."""
    secrets = json.loads((stack.data / "secrets.json").read_text())
    place = urlsplit(stack.settings["store"]["dsn"])
    netloc = f"broker_events:{secrets['events_password']}@{place.netloc.rpartition('@')[2]}"
    connection = await asyncpg.connect(urlunsplit(place._replace(netloc=netloc)))
    try:
        owned = await connection.fetchval(
            "SELECT array_agg(nspname::text) FROM pg_namespace"
            " WHERE nspowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)"
        )
        assert owned == ["events"]
        for statement in (
            "CREATE TABLE public.mine ()",
            "CREATE TEMPORARY TABLE mine ()",
            "CREATE SCHEMA mine",
            "SELECT * FROM starts",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
    finally:
        await connection.close()


async def test_runtime_role_is_a_plain_login(stack: Stack) -> None:
    """What it may do beyond connecting is for the grants beside the migrations."""
    connection = await asyncpg.connect(stack.settings["store"]["dsn"])
    try:
        role = await connection.fetchrow("SELECT * FROM pg_roles WHERE rolname = current_user")
        assert role is not None
        assert role["rolcanlogin"]
        powers = ("super", "createdb", "createrole", "replication", "bypassrls")
        assert not any(role[f"rol{power}"] for power in powers)
        for statement in (
            "CREATE TABLE public.mine ()",
            "CREATE TEMPORARY TABLE mine ()",
            "CREATE SCHEMA mine",
            "SELECT * FROM starts",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
    finally:
        await connection.close()


def test_embeddings_are_asked_for_on_the_command_line(directory: Path) -> None:
    stack = Stack(directory, 0, "", "--embeddings", "local", real=True).ready()
    assert stack.settings["embeddings"] == {"provider": "local"}
    assert stack.stop() == 0, "\n".join(stack.output)

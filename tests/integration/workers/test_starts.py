"""How several workers start, and what ends a start: one readable line, once."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.broker import Stand
from tests.fixtures.own_broker import Settings, write_settings
from tests.fixtures.postgres import Database
from tests.integration.workers.crew import Crew, settings_for, two_free_ports

END_SECONDS = 60


def said(settings: Settings, directory: Path, *options: str) -> tuple[int, list[str], list[str]]:
    """Start a broker that must not serve; return its code, the lines for people, and the log."""
    file = write_settings(directory, settings)
    ended = subprocess.run(
        [sys.executable, "-m", "broker", "serve", "--config", str(file), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=END_SECONDS,
        check=False,
    )
    lines = ended.stdout.splitlines()
    logged = [line for line in lines if line.startswith("{")]
    return ended.returncode, [line for line in lines if line not in logged], logged


@pytest.fixture
def settings(stand: Stand, postgres_database: Database) -> Settings:
    """Settings that two workers can be started with."""
    return settings_for(stand, postgres_database)


def test_settings_are_refused_before_any_worker(settings: Settings, tmp_path: Path) -> None:
    settings["server"]["listen"] = "0.0.0.0:0"
    code, told, logged = said(settings, tmp_path)
    assert (code, logged) == (1, [])
    assert told == ["broker: server.listen beyond loopback needs a certificate"]


@pytest.mark.parametrize("options", [(), ("--workers", "3")])
def test_what_the_workers_must_not_serve_ends_them_all(
    options: tuple[str, ...], settings: Settings, postgres_database: Database, tmp_path: Path
) -> None:
    """Each worker finds the resource unfit by itself; the operator reads it once."""
    asyncio.run(postgres_database.fetchval("UPDATE memory.resource SET generation = 2"))
    code, told, logged = said(settings, tmp_path, *options)
    assert code == 1
    (line,) = told
    assert line.startswith("broker: providers: native: ")
    starts = [line for line in logged if "process_started" in line]
    assert len(starts) == 1 + (3 if options else 2)  # the health process, and nobody twice


@pytest.mark.parametrize("setting", ["listen", "health_listen"])
def test_a_port_that_is_taken_is_refused(setting: str, settings: Settings, tmp_path: Path) -> None:
    """By a program that shares nothing, and by one that would."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings["server"][setting] = f"127.0.0.1:{taken.getsockname()[1]}"
        code, told, logged = said(settings, tmp_path)
    assert (code, logged) == (1, [])
    assert told == [
        f"broker: server.{setting}: {settings['server'][setting]} cannot be listened on: "
        "address already in use"
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_a_metrics_port_of_any_worker_that_is_taken_is_refused(
    number: int, settings: Settings, tmp_path: Path
) -> None:
    """Before any worker is started, and with the address that is taken."""
    first = two_free_ports()
    settings["server"]["metrics_listen"] = f"127.0.0.1:{first}"
    with socket.create_server(("127.0.0.1", first + number)):
        code, told, logged = said(settings, tmp_path)
    assert (code, logged) == (1, [])
    assert told == [
        f"broker: server.metrics_listen: 127.0.0.1:{first + number} cannot be listened on: "
        "address already in use"
    ]


def test_a_second_broker_does_not_share_the_port_of_the_first(
    crew: Crew, settings: Settings, tmp_path: Path
) -> None:
    settings["server"]["listen"] = crew.broker.address
    code, told, _ = said(settings, tmp_path)
    assert code == 1
    assert told[0].endswith("address already in use")


def test_the_supervisor_stays_small(crew: Crew) -> None:
    """It never loads gRPC, nor what reaches databases: neither survives in a process that forks."""
    loaded = Path(f"/proc/{crew.supervisor()}/maps").read_text()
    assert "libpython" in loaded or "python" in loaded
    assert not any(name in loaded for name in ("cygrpc", "asyncpg", "uvloop"))
    worker = Path(f"/proc/{crew.serving()[0]}/maps").read_text()
    assert all(name in worker for name in ("cygrpc", "asyncpg", "uvloop"))


def test_a_worker_has_no_secret_where_others_look(crew: Crew) -> None:
    """Settings go over the line: neither the command nor the environment holds an address."""
    for pid in crew.serving().values():
        process = Path(f"/proc/{pid}")
        shown = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        assert b"postgresql://" not in shown


def test_one_worker_without_a_health_port_is_one_process(stand: Stand) -> None:
    assert stand.broker.process is not None
    children: Any = Path(f"/proc/{stand.broker.process.pid}/task").glob("*/children")
    assert "".join(file.read_text() for file in children) == ""

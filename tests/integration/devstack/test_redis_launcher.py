"""The launcher of Redis-compatible servers against both of them."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.exceptions import NoPermissionError

from broker.devstack.authority import LocalAuthority
from broker.devstack.processes.errors import ServerError, ServerInUseError, ServerStartError
from broker.devstack.processes.lock import is_alive
from broker.devstack.redis import Flavour
from tests.fixtures.processes import parent_of, wait_until
from tests.fixtures.redis_clients import Make, client_of, servers_of

pytestmark = pytest.mark.parametrize("flavour", [*Flavour])

BOTH = "redis.call('SET', KEYS[1], ARGV[1]); redis.call('SET', KEYS[2], ARGV[1])"


@pytest.fixture
def make(tmp_path: Path, flavour: Flavour) -> Iterator[Make]:
    """Makes servers of the flavour on one data directory, and stops them afterwards."""
    with servers_of(tmp_path / "a place" / "data") as any_flavour:
        yield lambda *place, **options: any_flavour(*place, **({"flavour": flavour} | options))


def config(client: redis.Redis, name: str) -> str:
    return str(client.config_get(name)[name])


def listening(pid: int) -> set[tuple[str, int]]:
    """The TCP addresses that a process listens on, as the kernel knows them."""
    held = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in held:
                host, _, port = local.partition(":")
                found.add((socket.inet_ntoa(bytes.fromhex(host)[::-1]), int(port, 16)))
    return found


def touch(host: str, port: int) -> None:
    """Connects and waits for what becomes of that."""
    with socket.create_connection((host, port)) as connection:
        connection.recv(1)


def test_data_are_kept_between_starts(make: Make, flavour: Flavour) -> None:
    with make() as first:
        client_of(first).set("kept", "42")
        pid, sockets = first.pid, first.socket_path.parent
    assert not is_alive(pid)
    assert not sockets.exists()
    with make(flavour=None) as second:
        assert second.flavour is flavour
        assert client_of(second).get("kept") == b"42"


def test_acknowledged_means_on_disk_unless_somebody_says_otherwise(make: Make) -> None:
    promised = {
        "appendonly": "yes",
        "appendfsync": "always",
        "no-appendfsync-on-rewrite": "no",
        "maxmemory-policy": "noeviction",
        "save": "",
    }
    with make() as server:
        assert {name: config(client_of(server), name) for name in promised} == promised
    changed = {"appendfsync": "everysec", "maxmemory-policy": "allkeys-lru", "databases": 3}
    with make(settings=changed) as server:
        shown = {name: config(client_of(server), name) for name in promised | changed}
        assert shown == promised | {name: str(value) for name, value in changed.items()}


def test_only_tls_is_served_and_only_on_loopback(
    make: Make, flavour: Flavour, tmp_path: Path
) -> None:
    with make() as server:
        assert server.endpoint == f"rediss://localhost:{server.port}"
        assert client_of(server, host="127.0.0.1").ping()
        with pytest.raises(redis.ConnectionError):
            client_of(server, ssl=False, ssl_ca_certs=None).ping()
        stranger = LocalAuthority(tmp_path / "stranger").ca_file
        with pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            client_of(server, ssl_ca_certs=str(stranger)).ping()
        mine = {("127.0.0.1", server.port)} if flavour.speaks_tls else set()
        assert listening(server.pid) == mine


def test_nobody_else_logs_in(make: Make) -> None:
    with make() as server:
        for user, password in (
            (None, None),
            ("default", ""),
            (server.runtime_user, "wrong"),
            (server.runtime_user, server.superuser_password),
            ("somebody", server.runtime_password),
        ):
            with pytest.raises((redis.AuthenticationError, redis.ResponseError)):
                client_of(server, username=user, password=password).ping()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(unix_socket_path=str(server.socket_path)).ping()
        with pytest.raises(NoPermissionError):
            client_of(server).config_set("appendonly", "no")
        superuser = {"username": server.superuser, "password": server.superuser_password}
        assert client_of(server, **superuser).config_set("maxmemory", "1gb")
        assert server.execute("CONFIG", "GET", "maxmemory") == {b"maxmemory": b"1073741824"}
        with pytest.raises(ServerError, match="unknown command"):
            server.execute("NONSENSE")


def test_rules_of_the_runtime_user_hold_at_once_and_after_a_crash(make: Make) -> None:
    with make(acl="~mine:* +get +set +ping") as server:
        client = client_of(server)
        assert client.set("mine:1", "one")
        for refused in (lambda: client.set("other", "1"), lambda: client.delete("mine:1")):
            with pytest.raises(NoPermissionError):
                refused()
        server.set_acl("~mine:* +get +ping")
        with pytest.raises(NoPermissionError):
            client.set("mine:1", "two")
        with pytest.raises(ServerError, match="ACL"):
            server.set_acl("+nonsense")
        server.kill()
        server.start()
        assert client.get("mine:1") == b"one"
        with pytest.raises(NoPermissionError):
            client.set("mine:1", "two")


def test_secrets_are_for_this_account_only(make: Make) -> None:
    with make() as server:
        secrets = [server.superuser_password, server.runtime_password]
        for closed in (server.data_dir, server.socket_path.parent, server.data_dir / "data"):
            assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        for private in ("redis.conf", "tls/server.key", "server.log", "lock"):
            assert stat.S_IMODE((server.data_dir / private).stat().st_mode) == 0o600
        assert stat.S_IMODE(server.socket_path.stat().st_mode) == 0o700
        files = [path for path in server.data_dir.rglob("*") if path.is_file()]
        assert {"redis.conf", "server.log"} <= {path.name for path in files}
        told = [Path(f"/proc/{pid}/cmdline") for pid in (server.pid, parent_of(server.pid))]
        for place in (*files, *told):
            assert not any(secret.encode() in place.read_bytes() for secret in secrets), place


def test_killed_server_is_refused_and_comes_back_with_everything(make: Make) -> None:
    server = make().start()
    client, port, pid = client_of(server), server.port, server.pid
    for number in range(100):
        client.set(f"key {number}", number)
    client.eval(BOTH, 2, "one of two", "two of two", "written together")
    server.kill()
    assert not is_alive(pid)
    assert not server.is_running
    for _ in range(3):
        with pytest.raises((ConnectionRefusedError, ConnectionResetError)):
            touch(server.host, port)
    with pytest.raises(ServerError, match="not started"):
        server.execute("PING")
    server.start()
    assert (server.port, server.pid) != (port, pid)
    assert server.port == port
    assert client.dbsize() == 102
    assert client.get("key 99") == b"99"
    assert client.get("two of two") == b"written together"


def test_dead_server_is_noticed(make: Make) -> None:
    server = make().start()
    client_of(server).set("kept", "42")
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not server.is_running, "the death is noticed")
    server.kill()
    assert client_of(server.start()).get("kept") == b"42"


def test_frozen_server_keeps_its_connections(make: Make) -> None:
    with make() as server:
        connection: Any = client_of(server).connection_pool.get_connection()
        server.freeze()
        connection.send_command("PING")
        assert not connection.can_read(timeout=0.2)
        server.thaw()
        assert connection.read_response() == b"PONG"


def test_frozen_server_shuts_down_as_others_do(make: Make) -> None:
    server = make().start()
    client_of(server).set("kept", "42")
    server.freeze()
    server.stop()
    assert "bye bye" in server.log_file.read_text()
    assert client_of(server.start()).get("kept") == b"42"


def test_full_disk_fails_a_write_and_does_not_kill_by_signal(make: Make) -> None:
    """Issue 6: a limit on the size of files is how tests fill the disk."""
    server = make().start()
    client = client_of(server)
    client.set("before", "42")
    limit = max(path.stat().st_size for path in (server.data_dir / "data").rglob("*.aof"))
    limit = max(limit, server.log_file.stat().st_size) + 4096
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (limit, limit))
    with pytest.raises(redis.RedisError):
        client.set("beyond", "x" * 100_000)
    wait_until(lambda: not server.is_running, "who cannot write the log at once, ends")
    assert "AOF write error" in server.log_file.read_text()
    server.start()
    assert client.get("before") == b"42"
    assert client.get("beyond") is None


def test_starting_and_stopping_twice_is_once(make: Make) -> None:
    server = make()
    with pytest.raises(ServerError, match="never started"):
        _ = server.endpoint
    server.stop()
    pid = server.start().pid
    assert server.start().pid == pid
    server.stop()
    server.stop()
    assert not server.is_running


def test_second_launcher_is_refused_and_harms_nothing(make: Make) -> None:
    with make() as server:
        with pytest.raises(ServerInUseError, match=f"pid {server.pid}, started by") as refusal:
            make().start()
        assert refusal.value.pid == server.pid
        assert client_of(server).ping()
        server.kill()
        assert client_of(server.start()).ping()


def test_start_failure_is_readable_and_leaves_nothing(make: Make) -> None:
    server = make(settings={"maxmemory": "a lot"})
    with pytest.raises(ServerStartError, match=r"(?s)ended while starting.*maxmemory"):
        server.start()
    assert not server.is_running
    assert not list(server.data_dir.glob("sockets/*"))
    with make() as working:
        assert client_of(working).ping()


def test_taken_port(make: Make) -> None:
    server = make().start()
    port = server.port
    server.stop()
    with socket.create_server((server.host, port)):
        with pytest.raises(ServerStartError, match=f"port {port} cannot be used"):
            make(port=port).start()
        with server:
            assert server.port != port
            assert client_of(server).ping()
    with make(port=port) as there:
        assert there.port == port
        assert client_of(there).ping()


def test_port_of_a_killed_server_is_given_to_nobody(make: Make) -> None:
    with make() as server:
        server.kill()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((server.host, server.port))


def test_many_start_at_once(make: Make, tmp_path: Path) -> None:
    servers = [make(tmp_path / str(number)) for number in range(6)]
    with ThreadPoolExecutor(6) as at_once:
        for server in at_once.map(lambda each: each.start(), servers):
            assert client_of(server).ping()
    assert len({server.port for server in servers}) == 6
    assert len({server.runtime_password for server in servers}) == 6


def test_data_of_the_other_flavour_are_left_alone(make: Make, flavour: Flavour) -> None:
    (other,) = set(Flavour) - {flavour}
    with make() as server:
        client_of(server).set("kept", "42")
    with pytest.raises(ServerStartError, match=f"holds the data of {flavour}"):
        make(flavour=other).start()
    assert client_of(server.start()).get("kept") == b"42"


def test_asynchronous_use(make: Make) -> None:
    async def use() -> int:
        async with make() as server:
            assert client_of(server).ping()
            return server.pid

    assert not is_alive(asyncio.run(use()))


def test_cancelled_start_leaves_no_server(make: Make) -> None:
    async def start_and_cancel() -> None:
        server = make()
        starting = asyncio.create_task(server.__aenter__())
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not server.is_running

    asyncio.run(start_and_cancel())
    with make() as server:
        assert client_of(server).ping()

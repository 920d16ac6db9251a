"""A server whose owner, watchdog or proxy ends goes too, and is no obstacle to the next."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.devstack.processes.errors import ServerInUseError
from broker.devstack.processes.lock import is_alive
from broker.devstack.redis import Flavour
from tests.fixtures.processes import PATIENCE, parent_of, wait_until
from tests.fixtures.redis_clients import Make, client_of, servers_of

ROOT = Path(__file__).resolve().parents[3]

OWNER = """
import json, os, sys
from broker.devstack.redis import Flavour, RedisServer
server = RedisServer(sys.argv[1], flavour=Flavour(sys.argv[2])).start()
server.execute("SET", "kept", "42")
if sys.argv[3] == "leaving a child behind" and os.fork() == 0:
    os.close(1)
    sys.stdin.read()
    os._exit(0)
if sys.argv[3] == "with a frozen server":
    server.freeze()
print(json.dumps([server.pid, server.port, str(server.socket_path.parent)]), flush=True)
sys.stdin.readline()
"""

pytestmark = pytest.mark.parametrize("flavour", [*Flavour])


@pytest.fixture
def make(tmp_path: Path, flavour: Flavour) -> Iterator[Make]:
    """Makes servers of the flavour on one data directory, and stops them afterwards."""
    with servers_of(tmp_path / "data") as any_flavour:
        yield lambda **options: any_flavour(**({"flavour": flavour} | options))


def listens(port: int) -> bool:
    """Tells whether anybody listens on a port, without a trace there."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(f":{port:04X} 00000000:0000 0A" in line for line in lines)


@pytest.mark.parametrize(
    "end", ["killed", "leaving a child behind", "with a frozen server", "exiting"]
)
def test_server_and_proxy_end_with_their_owner(
    make: Make, tmp_path: Path, flavour: Flavour, end: str
) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "data"), flavour, end],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdin is not None and owner.stdout is not None
    with owner.stdin, owner.stdout:
        pid, port, sockets = json.loads(owner.stdout.readline())
        assert listens(port)
        with pytest.raises(ServerInUseError, match=f"pid {pid}"):
            make().start()
        if end == "exiting":
            owner.stdin.write(b"\n")
            owner.stdin.flush()
        else:
            owner.kill()
        owner.wait(PATIENCE)
        with make() as server:  # also when the last one is still going
            assert client_of(server).get("kept") == b"42"
        assert not is_alive(pid)
        assert not Path(sockets).exists()
        wait_until(lambda: not listens(port), "nobody listens")


def test_server_ends_with_its_watchdog(make: Make) -> None:
    server = make().start()
    client_of(server).set("kept", "42")
    pid, sockets = server.pid, server.socket_path.parent
    os.kill(parent_of(pid), signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), "the server is gone")
    server.start()
    assert client_of(server).get("kept") == b"42"
    assert not sockets.exists()


def test_proxy_that_died_is_replaced_with_the_server(make: Make, flavour: Flavour) -> None:
    """Redis has none: it must go on without."""
    server = make().start()
    client_of(server).set("kept", "42")
    port, proxies = server.port, proxies_of(server.data_dir)
    assert len(proxies) == (not flavour.speaks_tls)
    for proxy in proxies:
        os.kill(proxy, signal.SIGKILL)
    wait_until(lambda: server.is_running is flavour.speaks_tls, "the death is noticed")
    server.start()
    assert server.port == port
    assert client_of(server).get("kept") == b"42"


def proxies_of(data: Path) -> list[int]:
    """The process ids of this process's children that are proxies of a directory's server."""
    tasks = Path("/proc/self/task").iterdir()
    children = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    started = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    return [pid for pid, line in started.items() if b"tls_proxy.py" in line and bytes(data) in line]

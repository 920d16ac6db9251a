"""The TLS proxy, where the test holds the server's end of each connection."""

from __future__ import annotations

import os
import random
import re
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from broker.devstack.processes.lock import is_alive
from broker.devstack.redis import Flavour
from broker.devstack.redis.home import SOCKET, Home
from broker.devstack.redis.proxy import TlsProxy
from tests.fixtures.tls_client import PATIENCE_S, TlsClient

MIB = 1024 * 1024
LARGE = 64 * MIB
ON_THE_WAY = 32 * MIB
"""More than the buffers of the kernel hold on both sides of the proxy, and less than ``LARGE``."""
HELD = 8 * MIB
"""More than the proxy needs for a few chunks."""


class Site:
    """A proxy, and the place where it looks for the server."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._listener: socket.socket | None = None
        self.proxy = TlsProxy(home)
        self.address = ("127.0.0.1", self.proxy.port)
        self._trusting = ssl.create_default_context(cafile=home.ca_file)

    def come(self) -> None:
        """Let there be a server."""
        listener = self._listener = socket.socket(socket.AF_UNIX)
        listener.settimeout(PATIENCE_S)
        listener.bind(str(self._home.sockets.make() / SOCKET))
        listener.listen(512)

    def go(self) -> None:
        """Let there be none."""
        if self._listener is not None:
            self._listener.close()
        self._home.sockets.drop()

    def accept(self) -> socket.socket:
        assert self._listener is not None
        connection, _ = self._listener.accept()
        connection.settimeout(PATIENCE_S)
        return connection

    def connect(self) -> TlsClient:
        return TlsClient(self.address, self._trusting)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    home = Home(tmp_path / ("a long name for a directory " * 5))
    home.make()
    home.prepare(Flavour.VALKEY)
    running = Site(home)
    running.come()
    yield running
    running.go()
    running.proxy.stop()
    assert home.proxy_log.read_text() == ""


def take(connection: socket.socket, size: int) -> bytes:
    """Reads so many bytes, or fewer where the other ends before."""
    data = bytearray()
    while part := connection.recv(min(MIB, size - len(data))):
        data += part
    return bytes(data)


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(MIB):
        parts.append(part)
    return b"".join(parts)


def most_memory(pid: int) -> int:
    """The bytes of memory that a process had at most."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def touch(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, timeout=PATIENCE_S) as connection:
        return connection.recv(1)


def test_bytes_pass_unchanged_both_ways(site: Site) -> None:
    drawn = random.Random(7)
    with site.connect() as client, site.accept() as server:
        for size in (1, 2, 16_384, 16_385, *(drawn.randrange(1, 300_000) for _ in range(20))):
            there, back = drawn.randbytes(size), drawn.randbytes(size)
            client.send(there)
            assert take(server, size) == there
            server.sendall(back)
            assert client.read_exactly(size) == back


@pytest.mark.parametrize("way", ["request", "reply"])
def test_what_nobody_takes_waits_where_it_came_from(site: Site, way: str) -> None:
    """A frozen server and a slow client get 64 MiB each: it passes whole, and is not hoarded."""
    data = os.urandom(MIB) * (LARGE // MIB)
    with site.connect() as client, site.accept() as server, ThreadPoolExecutor(1) as sender:
        client.send(b"ready")
        assert take(server, 5) == b"ready"
        before = most_memory(site.proxy.pid)
        sent = [0]
        send: Callable[[bytes], None] = client.send if way == "request" else server.sendall

        def send_all() -> None:
            for start in range(0, LARGE, 65_536):
                send(data[start : start + 65_536])
                sent[0] += 65_536

        sending = sender.submit(send_all)
        wait_until_still(lambda: sent[0])
        assert 0 < sent[0] < ON_THE_WAY
        received = take(server, LARGE) if way == "request" else client.read_exactly(LARGE)
        sending.result(PATIENCE_S)
        assert received == data
        assert most_memory(site.proxy.pid) - before < HELD


def wait_until_still(count: Callable[[], int]) -> None:
    """Wait until a number has stayed the same for a while."""
    last, same = -1, 0
    while same < 10:
        time.sleep(0.05)
        last, same = count(), same + 1 if count() == last else 0


def test_a_client_that_ends_still_gets_its_replies(site: Site) -> None:
    request, reply = os.urandom(3 * MIB), os.urandom(3 * MIB)
    with (
        site.connect() as client,
        site.accept() as server,
        ThreadPoolExecutor(1) as others,
    ):
        reading = others.submit(read_all, server)
        client.send(request)
        client.end()
        assert reading.result(PATIENCE_S) == request
        sending = others.submit(server.sendall, reply)
        assert client.read_exactly(len(reply)) == reply
        sending.result(PATIENCE_S)
        server.shutdown(socket.SHUT_WR)
        assert client.read() == b""


def test_a_server_that_ends_still_gets_requests(site: Site) -> None:
    request, reply = os.urandom(3 * MIB), os.urandom(3 * MIB)
    with (
        site.connect() as client,
        site.accept() as server,
        ThreadPoolExecutor(1) as others,
    ):
        sending = others.submit(server.sendall, reply)
        assert client.read_exactly(len(reply)) == reply
        sending.result(PATIENCE_S)
        server.shutdown(socket.SHUT_WR)
        assert client.read() == b""
        reading = others.submit(read_all, server)
        client.send(request)
        client.end()
        assert reading.result(PATIENCE_S) == request


def test_without_a_server_connections_are_reset_at_once(site: Site) -> None:
    client = site.connect()
    with client, site.accept() as server:
        site.go()
        client.send(b"still there")
        assert take(server, 11) == b"still there"
        for _ in range(3):
            with pytest.raises(ConnectionResetError):
                touch(site.address)
        server.close()
        assert client.read_all() == b""
    site.come()
    with site.connect() as anew, site.accept() as server:
        anew.send(b"hello")
        assert take(server, 5) == b"hello"


def test_a_client_that_vanishes_is_told_to_the_server(site: Site) -> None:
    for way in ("closed", "reset"):
        with site.connect() as client, site.accept() as server:
            client.send(b"hello")
            assert take(server, 5) == b"hello"
            if way == "reset":
                no_wait = struct.pack("ii", 1, 0)
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_wait)
            client.socket.close()
            assert server.recv(1) == b""


@pytest.mark.parametrize("sent", [b"PING\r\n", b"*1\r\n$4\r\nPING\r\n" * 1000, b"\x16\x03\x01"])
def test_what_is_no_tls_never_reaches_the_server(site: Site, sent: bytes) -> None:
    with (
        socket.create_connection(site.address, timeout=PATIENCE_S) as client,
        site.accept() as server,
    ):
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert server.recv(1) == b""
    with site.connect() as fine, site.accept() as server:
        fine.send(b"hello")
        assert take(server, 5) == b"hello"


def test_many_connections_at_once(site: Site) -> None:
    number = 200

    def ask(each: int) -> bytes:
        with site.connect() as client:
            client.send(b"%08d" % each)
            client.end()
            return client.read_all()

    def answer(_: int) -> None:
        with site.accept() as server:
            server.sendall(read_all(server) * 1000)

    with ThreadPoolExecutor(number) as clients, ThreadPoolExecutor(number) as servers:
        answering = servers.map(answer, range(number))
        replies = list(clients.map(ask, range(number)))
        assert len(list(answering)) == number
    assert replies == [b"%08d" % each * 1000 for each in range(number)]


def test_it_ends_when_told_and_takes_no_port_of_somebody(site: Site, tmp_path: Path) -> None:
    home = Home(tmp_path / "another")
    home.make()
    home.prepare(Flavour.VALKEY)
    with pytest.raises(OSError, match="in use"):
        TlsProxy(home, site.proxy.port)
    other = TlsProxy(home)
    assert is_alive(other.pid)
    other.stop()
    assert not is_alive(other.pid)
    with pytest.raises(ConnectionRefusedError):
        touch(("127.0.0.1", other.port))

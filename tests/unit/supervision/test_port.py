"""A reserved port: for sockets that share it, and for nobody else."""

import errno
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import pytest

from broker.supervision.port import AddressUnusableError, reserved

LOOPBACK = "127.0.0.1"
ROUNDS = 500


@contextmanager
def bound(address: str, *options: int) -> Iterator[socket.socket]:
    """Bind a socket with options."""
    host, _, port = address.rpartition(":")
    with socket.socket() as one:
        for option in options:
            one.setsockopt(socket.SOL_SOCKET, option, 1)
        one.bind((host, int(port)))
        yield one


def test_port_0_is_a_port_that_sharing_sockets_may_listen_on() -> None:
    with reserved("server.listen", f"{LOOPBACK}:0") as address:
        assert not address.endswith(":0")
        with (
            bound(address, socket.SO_REUSEADDR, socket.SO_REUSEPORT) as one,
            bound(address, socket.SO_REUSEADDR, socket.SO_REUSEPORT) as other,
        ):
            one.listen()
            other.listen()


@pytest.mark.parametrize("options", [(), (socket.SO_REUSEADDR,)])
def test_nobody_else_may_have_it(options: tuple[int, ...]) -> None:
    with (
        reserved("server.listen", f"{LOOPBACK}:0") as address,
        pytest.raises(OSError, match="in use"),
        bound(address, *options),
    ):
        pass


def test_a_reservation_takes_no_connection() -> None:
    with reserved("server.listen", f"{LOOPBACK}:0") as address, socket.socket() as client:
        port = int(address.rpartition(":")[2])
        assert client.connect_ex((LOOPBACK, port)) == errno.ECONNREFUSED


def test_two_reservations_do_not_share() -> None:
    """Also before anybody listens: two supervisors that start at the same time."""
    with (
        reserved("server.listen", f"{LOOPBACK}:0") as address,
        pytest.raises(AddressUnusableError, match=r"server\.listen: .* in use"),
        reserved("server.listen", address),
    ):
        pass


def test_who_is_bound_but_did_not_listen_comes_too_late() -> None:
    with bound(f"{LOOPBACK}:0", socket.SO_REUSEADDR) as other:
        address = f"{LOOPBACK}:{other.getsockname()[1]}"
        with reserved("server.listen", address), pytest.raises(OSError, match="in use"):
            other.listen()


def test_of_two_that_come_at_the_same_time_one_gets_it() -> None:
    start, end = Barrier(2, timeout=10), Barrier(2, timeout=10)

    def gets(address: str) -> bool:
        start.wait()
        try:
            with reserved("server.listen", address):
                end.wait()
                return True
        except AddressUnusableError:
            end.wait()
            return False

    with ThreadPoolExecutor(2) as both:
        for _ in range(ROUNDS):
            with bound(f"{LOOPBACK}:0") as free:
                address = f"{LOOPBACK}:{free.getsockname()[1]}"
            assert sorted(both.map(gets, [address] * 2)) == [False, True]


def test_a_listener_that_would_share_is_refused() -> None:
    with bound(f"{LOOPBACK}:0", socket.SO_REUSEADDR, socket.SO_REUSEPORT) as one:
        one.listen()
        address = f"{LOOPBACK}:{one.getsockname()[1]}"
        with pytest.raises(AddressUnusableError), reserved("server.listen", address):
            pass


def left_behind(*options: int) -> str:
    """Serve one connection and be gone; return the address, which it keeps busy for a minute."""
    with bound(f"{LOOPBACK}:0", *options) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            accepted.close()  # the side that closes first remembers the connection
        return f"{LOOPBACK}:{listener.getsockname()[1]}"


SHARING = (socket.SO_REUSEADDR, socket.SO_REUSEPORT)


@pytest.mark.parametrize("before", [SHARING, (socket.SO_REUSEADDR,)])
def test_connections_that_are_over_do_not_hold_up_the_next_start(before: tuple[int, ...]) -> None:
    """Also those of a program that did not share: of one process, where there are several now."""
    address = left_behind(*before)
    with reserved("server.listen", address) as kept:
        assert kept == address
        with pytest.raises(OSError, match="in use"), bound(address, socket.SO_REUSEADDR):
            pass
        with pytest.raises(AddressUnusableError), reserved("server.listen", address):
            pass
        with socket.socket() as client:
            port = int(address.rpartition(":")[2])
            assert client.connect_ex((LOOPBACK, port)) == errno.ECONNREFUSED
        with bound(address, *SHARING) as one, bound(address, *SHARING) as other:
            one.listen()
            other.listen()


def test_a_name_is_reserved_on_all_its_addresses() -> None:
    with reserved("server.listen", "localhost:0") as address:
        port = int(address.rpartition(":")[2])
        assert address == f"localhost:{port}"
        found = socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM)
        for family, _, _, _, where in found:
            with (
                socket.socket(family) as other,
                pytest.raises(OSError, match=r"in use|Cannot assign"),
            ):
                other.bind(where)


@pytest.mark.parametrize(
    "address", ["192.0.2.1:0", "no-such-host.invalid:0", "127.0.0.1:99999", "127.0.0.1:port"]
)
def test_what_is_no_address_of_this_machine_is_told(address: str) -> None:
    with (
        pytest.raises(AddressUnusableError, match=r"^server\.health_listen: .* be listened on"),
        reserved("server.health_listen", address),
    ):
        pass

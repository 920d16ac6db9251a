"""Keeps a port for processes that share it, and for nobody else."""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

PORT_MAX: Final = 65_535
TRIES: Final = 16
"""How often port 0 is tried where a name has several addresses."""

_Found = tuple[int, Any]


class AddressUnusableError(OSError):
    """An address cannot be listened on. Names the setting; the process ends."""


@contextmanager
def reserved(setting: str, address: str) -> Iterator[str]:
    """Keep ``host:port`` from here until the context ends; port 0 takes a free one.

    Gives the address with its port. Sockets with SO_REUSEPORT of this user may listen there, other
    programs may not, and no connection goes to the reservation itself: it listens for one moment,
    before it is given. A port that anybody listens on is refused, also where that listener would
    share it: two brokers on one port would each get half of the other's calls.

    Args:
        setting: what the error names.
        address: ``host:port``, an IPv6 host in brackets.

    Raises:
        AddressUnusableError: taken, not of this machine, or not an address.
    """
    host, _, port = address.rpartition(":")
    with ExitStack() as stack:
        try:
            taken = _reserve(host.strip("[]"), _number(port), stack)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "no address"
            raise AddressUnusableError(
                f"{setting}: {address} cannot be listened on: {why.lower()}"
            ) from error
        yield f"{host}:{taken}"


def _number(port: str) -> int:
    """Return a port; the system itself would cut one that is too large."""
    number = int(port)
    if not 0 <= number <= PORT_MAX:
        raise ValueError(f"{number} is no port")
    return number


def _reserve(host: str, port: int, stack: ExitStack) -> int:
    """Reserve a port on every address of a host; return it."""
    found: list[_Found] = [
        (family, where)
        for family, _, _, _, where in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    ]
    for attempt in range(TRIES):
        with ExitStack() as attempted:
            try:
                taken = _reserve_all(found, attempted)
            except OSError as error:
                if port or error.errno != errno.EADDRINUSE or attempt == TRIES - 1:
                    raise
                continue
            stack.push(attempted.pop_all())
            return taken
    raise OSError(errno.EADDRINUSE, "no port is free on all addresses")


def _reserve_all(found: list[_Found], stack: ExitStack) -> int:
    taken = 0
    absent: OSError | None = None
    for family, where in found:
        try:
            taken = _reserve_one(family, (where[0], taken or where[1], *where[2:]), stack)
        except OSError as error:
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                raise
            absent = error  # a name may have addresses of families this machine is without
    if not taken:
        raise absent or OSError(errno.EADDRNOTAVAIL, "no such address")
    return taken


def _reserve_one(family: int, where: Any, stack: ExitStack) -> int:
    """Reserve one address.

    The first socket finds out whether anybody is there: it shares with nobody, but for connections
    that are over, and listens for a moment, which only one can. The second one stays, and shares
    with sockets that ask for it; it is bound before the first one lets go.
    """
    with socket.socket(family, socket.SOCK_STREAM) as alone:
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        alone.bind(where)
        alone.listen()
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        port = int(alone.getsockname()[1])
        try:
            shared.bind((where[0], port, *where[2:]))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not where[1]:
                raise
            stack.enter_context(_staying(alone))
    return port


def _staying(alone: socket.socket) -> socket.socket:
    """Let the first socket stay in place of the second; return one more descriptor of it.

    Connections that are over, of a listener that did not share, keep the second one out for a
    minute. The first one goes on to share, but no longer with SO_REUSEADDR. It keeps its port when
    it stops listening, as the port was asked for by its number.
    """
    alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    alone.shutdown(socket.SHUT_RDWR)
    return alone.dup()

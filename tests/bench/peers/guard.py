"""Keeps a process from speaking to anything but this machine."""

import ipaddress
import sys

_CONNECT = frozenset({"socket.connect", "socket.sendto"})
_LOOKUP = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
_HERE = frozenset({"localhost", ""})


class OutwardError(BaseException):
    """Something of this process was about to speak to another machine.

    No ordinary error, so that nobody takes it for a network that is down and goes on.
    """


def stay_here() -> None:
    """Refuse from now on whatever Python code would send to another machine or ask about one.

    It cannot be undone. The driver of PostgreSQL is in C and not seen; it is told where to go.
    """
    sys.addaudithook(_judge)


def _judge(event: str, given: tuple[object, ...]) -> None:
    host: object = None
    if event in _CONNECT and isinstance(given[1], tuple):
        host = given[1][0]
    elif event in _LOOKUP:
        host = given[0]
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if isinstance(host, str) and not _is_here(host):
        raise OutwardError(f"{event}: {host}")


def _is_here(host: str) -> bool:
    if host in _HERE:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

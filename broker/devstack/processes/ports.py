"""Ports of private servers, which listen on the loopback interface only."""

from __future__ import annotations

import socket

from broker.devstack.processes.errors import ServerStartError

HOST = "127.0.0.1"
ATTEMPTS = 5
"""So many ports are tried where any will do: others take them meanwhile."""


def free_port() -> int:
    """Returns a port that is free now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def reserve(port: int = 0) -> socket.socket:
    """Binds a port, any free one for 0, without listening on it.

    While the socket is open nobody is given the port by chance, and a server of our own can listen
    on it, also again and again: whoever asks for the very number, with SO_REUSEADDR, gets it.

    Raises:
        OSError: Somebody listens there.
    """
    reservation = socket.socket()
    try:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind((HOST, port))
    except BaseException:
        reservation.close()
        raise
    return reservation


def reserve_wished(fixed: int, wished: int) -> socket.socket:
    """Binds the fixed port; where that is 0 the wished one, or any when that is taken.

    Raises:
        ServerStartError: Somebody listens on the fixed port.
    """
    try:
        return reserve(fixed or wished)
    except OSError as error:
        if fixed:
            raise ServerStartError(f"port {fixed} cannot be used: {error.strerror}") from error
        return reserve()

"""Ports of private servers, which listen on the loopback interface only."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"
ATTEMPTS = 5
"""So many ports are tried where any will do: others take them meanwhile."""


def free_port() -> int:
    """Returns a port that is free now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port

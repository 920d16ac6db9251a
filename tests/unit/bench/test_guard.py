"""A peer speaks to this machine alone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUARDED = """
import socket
from tests.bench.peers import guard
guard.stay_here()
try:
    {attempt}
except OSError as error:
    print("tried", type(error).__name__)
"""
OUTWARD = (
    'socket.getaddrinfo("example.test", 443)',
    'socket.getaddrinfo(b"example.test", 443)',
    'socket.gethostbyname("example.test")',
    'socket.create_connection(("192.0.2.1", 443), timeout=0.01)',
    'socket.socket().connect(("192.0.2.1", 443))',
    'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))',
)
HERE = (
    'socket.create_connection(("127.0.0.1", 1), timeout=1)',
    'socket.create_connection(("localhost", 1), timeout=1)',
    'socket.socket(socket.AF_INET6).connect(("::1", 1))',
    'socket.socket(socket.AF_UNIX).connect("/nowhere/socket")',
)


def run(attempt: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", GUARDED.format(attempt=attempt)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("attempt", OUTWARD)
def test_what_goes_out_ends_the_process(attempt: str) -> None:
    ended = run(attempt)
    assert ended.returncode == 1
    assert "OutwardError" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("attempt", HERE)
def test_what_stays_here_is_left_alone(attempt: str) -> None:
    assert run(attempt).stdout.startswith("tried")

"""How gRPC is told to poll."""

import os
import subprocess
import sys

import pytest

from broker import __main__ as program

USES_GRPC = "import grpc; grpc.insecure_channel('127.0.0.1:1')"


def test_grpc_knows_what_it_is_asked_for() -> None:
    """It would complain on standard error, which is for lines of JSON."""
    environment = {
        **os.environ,
        "GRPC_EXPERIMENTS": program.ONE_POLLER,
        "GRPC_VERBOSITY": "NONE",
    }
    ended = subprocess.run(
        [sys.executable, "-c", USES_GRPC], env=environment, capture_output=True, check=True
    )
    assert ended.stderr == b""


@pytest.mark.parametrize(
    ("given", "used"), [(None, program.ONE_POLLER), ("", ""), ("promise_based", "promise_based")]
)
def test_the_operator_decides(
    given: str | None, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPC_EXPERIMENTS", given or "")
    if given is None:
        monkeypatch.delenv("GRPC_EXPERIMENTS")
    monkeypatch.setenv("GRPC_VERBOSITY", "NONE")
    monkeypatch.setattr(program, "app", lambda: None)
    program.main()
    assert os.environ["GRPC_EXPERIMENTS"] == used

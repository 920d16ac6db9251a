"""The launcher's tests once more, as an ordinary user where they run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from broker.devstack.postgres import __file__ as package_file
from broker.devstack.postgres.account import Account
from broker.devstack.processes.process import ENVIRONMENT
from tests.integration.devstack.test_postgres_launcher import __file__ as launcher_tests
from tests.integration.devstack.test_postgres_launcher import workspace

__all__ = ["workspace"]

ACCOUNT = Account.for_this_process()
AGAIN = "data_is_kept or privately or killed_server or closed_folders or second_launcher"

TRIAL = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import asyncpg, pytest"], check=True)
"""


def ways_to_be_ordinary() -> list[list[str]]:
    """Commands by which root runs this interpreter as somebody else; the first that works.

    An interpreter below a closed home is out of reach for others: they get to read all files.
    The trial starts a second interpreter, because the first may come from before the switch.
    """
    if not ACCOUNT.is_other:
        return []
    switch = ["setpriv", f"--reuid={ACCOUNT.uid}", f"--regid={ACCOUNT.gid}", "--clear-groups"]
    reading = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    for command in (switch, switch + reading):
        with suppress(OSError, subprocess.CalledProcessError):
            trial = [*command, sys.executable, "-c", TRIAL]
            subprocess.run(trial, cwd="/", capture_output=True, check=True)
            return [command]
    return []


@pytest.mark.parametrize(
    "command",
    [[], *ways_to_be_ordinary()],
    ids=lambda c: "again as an ordinary user" if c else "own",
)
def test_account(workspace: Path, command: list[str]) -> None:
    """What the launcher promises holds for ordinary users as well as for root."""
    if not command:
        assert ACCOUNT.is_other is (os.geteuid() == 0)
        return
    devstack = workspace / "copy" / "broker" / "devstack"
    for package in ("postgres", "processes"):
        shutil.copytree(Path(package_file).parents[1] / package, devstack / package)
    for parent in (devstack, devstack.parent):
        (parent / "__init__.py").touch()
    tests = shutil.copy(launcher_tests, workspace / "copy")
    options = ["-q", "-k", AGAIN, "-p", "no:cacheprovider", "-c", "/dev/null", "--confcutdir", "."]
    again = subprocess.run(
        [*command, sys.executable, "-m", "pytest", *options, tests],
        cwd=workspace / "copy",
        env={**ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert "skipped" not in again.stdout

"""A running server, as its owner sees it: a watchdog process with the server below it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import TypedDict

from broker.devstack.processes import watchdog
from broker.devstack.processes.errors import ServerError, ServerStartError
from broker.devstack.processes.lock import DirectoryLock, is_alive
from broker.devstack.processes.log import open_log, with_log

# Children get this and nothing else: PGOPTIONS, PGDATA and the like must not leak in.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

_BEYOND_ESCALATION = 5.0


class Identity(TypedDict, total=False):
    """The arguments of ``subprocess.Popen`` that change the account."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to run, and how it is ended.

    Attributes:
        name: What messages call it.
        command: The program and its arguments, which everybody on the machine can read.
        executable: The file to run, where it is not the command's first word.
        escalation: Signals to end it with, one after the other, each with the seconds it may take.
        sockets: The directory for its socket, removed when it is gone.
        log: Where its output goes.
        environment: What it gets beside ``ENVIRONMENT``.
        identity: The account it runs under; empty for this process's.
        restore_signals: Whether it begins with the signals at default that Python ignores.
    """

    name: str
    command: Sequence[str]
    executable: str | None = None
    escalation: Sequence[tuple[Signals, float]]
    sockets: Path
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    identity: Identity = field(default_factory=Identity)
    restore_signals: bool = True


class ServerProcess:
    """One server process, from its start to its end.

    Attributes:
        pid: The process id of the server's main process.
    """

    def __init__(self, program: Program, lock: DirectoryLock) -> None:
        """Starts the server; it is not ready for connections yet.

        Args:
            program: What to run.
            lock: The lock on the server's data, which its processes inherit.
        """
        self._program = program
        self._limit = sum(patience for _, patience in program.escalation) + _BEYOND_ESCALATION
        order = {
            "command": list(program.command),
            "executable": program.executable,
            "environment": {**ENVIRONMENT, **program.environment},
            "identity": program.identity,
            "restore_signals": program.restore_signals,
            "escalation": program.escalation,
            "lock": lock.descriptor,
            "owner": os.getpid(),
            "socket_directory": str(program.sockets),
        }
        log = open_log(program.log)
        try:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", watchdog.__file__, json.dumps(order)],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                pass_fds=(lock.descriptor,),
                start_new_session=True,
            )
        finally:
            os.close(log)
        self.pid = self._read_pid()
        lock.record(self.pid)

    @property
    def is_running(self) -> bool:
        """Whether the server and its watchdog are there."""
        return self._watchdog.poll() is None

    def wait_until(self, is_served: Callable[[], bool], timeout: float) -> None:
        """Waits until the server answers, by what is asked again and again.

        Args:
            is_served: Tells whether it does.
            timeout: Seconds it may take.

        Raises:
            ServerStartError: It ended, or took longer; it may still run. With its log.
        """
        name, log = self._program.name, self._program.log
        deadline = time.monotonic() + timeout
        while not is_served():
            if not self.is_running:
                raise ServerStartError(with_log(f"{name} ended while starting", log))
            if time.monotonic() > deadline:
                message = f"{name} was not ready within {timeout} seconds"
                raise ServerStartError(with_log(message, log))
            time.sleep(0.01)

    def freeze(self) -> None:
        """Makes the server stand still, until ``thaw()``; connections stay open."""
        os.kill(self.pid, Signals.SIGSTOP)
        while _state(self.pid) != "T":
            time.sleep(0.001)

    def thaw(self) -> None:
        """Lets the server go on."""
        os.kill(self.pid, Signals.SIGCONT)

    def kill(self) -> None:
        """Ends the server as a crash would, and waits for it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, Signals.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """Ends the server and waits for it; does nothing when it is gone already.

        Raises:
            ServerError: The watchdog did not end in time.
        """
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        with suppress(BrokenPipeError, ValueError):
            self._watchdog.stdin.write(b"q")
        self._watchdog.stdin.close()
        self._watchdog.stdout.close()
        try:
            self._watchdog.wait(self._limit)
        except subprocess.TimeoutExpired:
            self._watchdog.kill()
            self._watchdog.wait()
            raise ServerError(f"the server with pid {self.pid} did not stop") from None
        if self._watchdog.returncode < 0:
            self._wait_for_the_abandoned()

    def _wait_for_the_abandoned(self) -> None:
        """Waits for a server whose watchdog was killed, and which is shutting down for that."""
        deadline = time.monotonic() + self._limit
        while is_alive(self.pid):
            if time.monotonic() > deadline:
                raise ServerError(f"the server with pid {self.pid} goes on without a watchdog")
            time.sleep(0.02)

    def _read_pid(self) -> int:
        assert self._watchdog.stdout is not None
        try:
            return int(self._watchdog.stdout.readline())
        except ValueError:
            self.pid = 0
            self.stop()
            message = f"cannot launch {self._program.command[0]}"
            raise ServerStartError(with_log(message, self._program.log)) from None


def _state(pid: int) -> str:
    """Returns the letter by which the kernel names a process's state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

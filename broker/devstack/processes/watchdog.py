"""Runs one server as its child, and ends it when the owner is gone.

This is a script of its own that uses the standard library only: the owner may be a process
with threads, may be killed at any moment, and may have children that outlive it. The watchdog
stops the server, with one signal after the other, when the owner

* asks for it, by a byte on standard input;
* dies, which closes that pipe, or at the latest when the watchdog has another parent.

Should the watchdog itself be killed, the kernel sends the server the first of them: the "parent
death" signal belongs to the parent's thread, and the watchdog has only the one; it is cleared
by a change of account, and is therefore set after it.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

_STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_PR_SET_PDEATHSIG = 1
_LOOK_FOR_OWNER_MS = 1000


def main() -> int:
    """Carries out the order given as JSON in the first argument."""
    order = json.loads(sys.argv[1])
    wake = _wake_on_signals()
    server = _launch(order)
    try:
        with suppress(BrokenPipeError):
            print(server.pid, flush=True)
            _wait_for_an_end(server, order["owner"], wake)
    finally:
        _stop(server, order["escalation"])
        shutil.rmtree(order["socket_directory"], ignore_errors=True)
    return 0


def _wake_on_signals() -> int:
    """Makes signals readable from the returned file descriptor."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGCHLD, *_STOP_SIGNALS):
        signal.signal(number, lambda *_: None)
    return readable


def _launch(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    watchdog = os.getpid()
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def tie_to_watchdog() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, order["escalation"][0][0], 0, 0, 0)
        if os.getppid() != watchdog:
            os._exit(1)

    return subprocess.Popen(
        order["command"],
        executable=order["executable"],
        cwd="/",
        env=order["environment"],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        pass_fds=(order["lock"],),
        restore_signals=order["restore_signals"],
        preexec_fn=tie_to_watchdog,  # noqa: PLW1509 - this process has one thread
        **order["identity"],
    )


def _wait_for_an_end(server: subprocess.Popen[bytes], owner: int, wake: int) -> None:
    events = select.poll()
    events.register(sys.stdin, select.POLLIN)
    events.register(wake, select.POLLIN)
    while server.poll() is None and os.getppid() == owner:
        for descriptor, _ in events.poll(_LOOK_FOR_OWNER_MS):
            if descriptor != wake or _STOP_SIGNALS.intersection(os.read(wake, 64)):
                return


def _stop(server: subprocess.Popen[bytes], escalation: list[tuple[int, float]]) -> None:
    for number, patience in escalation:
        if server.poll() is not None:
            return
        server.send_signal(number)
        server.send_signal(signal.SIGCONT)  # a frozen server would never see the other one
        with suppress(subprocess.TimeoutExpired):
            server.wait(patience)


if __name__ == "__main__":
    sys.exit(main())

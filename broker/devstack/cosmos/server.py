"""The launcher of the stand-in."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import broker
from broker.devstack.cosmos.control import Control
from broker.devstack.cosmos.standin.process import HOST, IN_USE, PORT_TAKEN
from broker.devstack.processes.errors import ServerError, ServerInUseError, ServerStartError
from broker.devstack.processes.lifecycle import Restartable
from broker.devstack.processes.log import with_log

_ROOT = Path(str(broker.__file__)).resolve().parents[1]
_PATIENCE = 10.0
"""Seconds that a stop may take before it becomes a kill."""


class CosmosServer(Restartable):
    """A stand-in that lives as long as the process that started it.

    The data stays when it stops. It ends by itself when the process ends, in whatever way.
    """

    def __init__(self, data_dir: Path | str, port: int = 0, *, start_timeout: float = 60.0) -> None:
        """Describes a stand-in; nothing happens before ``start()``.

        Args:
            data_dir: Directory for the account, the key and the data, made when it is missing.
            port: TCP port on the loopback interface; 0 takes a free one, and the same one again
                when this object is started again and it is still free.
            start_timeout: Seconds it may take until it serves.
        """
        self.data_dir = Path(data_dir).resolve()
        self._fixed_port = port
        self._last_port = 0
        self._start_timeout = start_timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Control | None = None

    # --- life -----------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts the stand-in and waits until it serves.

        Does nothing when it runs already; starts it again when it has died.

        Raises:
            ServerInUseError: Another process serves the data directory.
            ServerStartError: It did not start; the message ends with its log.
        """
        if not self.is_running:
            self.stop()
            if not self._launch(self._fixed_port or self._last_port):
                taken = bool(self._fixed_port) or not self._launch(0)
                if taken:
                    raise ServerStartError(with_log("the port is taken", self.log_file))
        return self

    def stop(self) -> None:
        """Ends the stand-in in good order and waits; does nothing when it is not running."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the stand-in at once, as a crash does, and waits."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Stops the stand-in from running; its connections stay open and silent."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets it go on."""
        self._running().send_signal(signal.SIGCONT)

    @property
    def is_running(self) -> bool:
        """Whether the process is there, frozen or not."""
        return self._process is not None and self._process.poll() is None

    # --- addresses ------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """The URL of the account, known since the first start."""
        if not self._last_port:
            raise ServerError("the stand-in was never started")
        return f"https://{HOST}:{self._last_port}/"

    @property
    def key(self) -> str:
        """The account's key."""
        return (self.data_dir / "key").read_text(encoding="ascii")

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority that clients have to trust."""
        return self.data_dir / "tls" / "ca.crt"

    @property
    def log_file(self) -> Path:
        """What the stand-in had to say."""
        return self.data_dir / "server.log"

    @property
    def pid(self) -> int:
        """The process id of the running stand-in."""
        return self._running().pid

    @property
    def control(self) -> Control:
        """The hand on the running stand-in; another one after each start."""
        self._running()
        assert self._control is not None
        return self._control

    # --- inside ---------------------------------------------------------------------------

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerError("the stand-in is not started")
        return self._process

    def _launch(self, port: int) -> bool:
        """Starts a process; tells whether the port was free."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        arguments = f"--port={port}", f"--owner={os.getpid()}", f"--data={self.data_dir}"
        with self.log_file.open("ab") as log:
            # A group of its own in the same session: Ctrl-C does not reach it, and when the owner
            # dies while it is frozen the kernel mostly wakes it, with a SIGHUP (see setpgid(2)).
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "broker.devstack.cosmos", *arguments],
                env=os.environ | {"PYTHONPATH": str(_ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                process_group=0,
            )
        told = self._announced(self._process)
        if told is not None:
            self._last_port = told["port"]
            self._control = Control(told["control"], told["token"])
            return True
        code = self._process.wait()
        self.stop()
        if code == IN_USE:
            raise ServerInUseError(f"{self.data_dir} is in use by another process")
        if code != PORT_TAKEN:
            raise ServerStartError(with_log("the stand-in ended while starting", self.log_file))
        return False

    def _announced(self, process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
        """Returns what the process tells when it serves; nothing when it has ended."""
        assert process.stdout is not None
        told_or_ended = select.poll()
        told_or_ended.register(process.stdout, select.POLLIN)
        if not told_or_ended.poll(self._start_timeout * 1000):
            self.kill()
            message = f"the stand-in was not ready within {self._start_timeout} seconds"
            raise ServerStartError(with_log(message, self.log_file))
        line = process.stdout.readline()
        told: dict[str, Any] | None = json.loads(line) if line else None
        return told

    def _end(self, number: int) -> None:
        process, self._process, self._control = self._process, None, None
        if process is None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()

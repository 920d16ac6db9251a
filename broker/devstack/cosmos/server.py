"""The launcher of the stand-in."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Self

import broker
from broker.devstack.cosmos.control import Control
from broker.devstack.processes.errors import ServerError, ServerStartError
from broker.devstack.processes.lifecycle import Restartable
from broker.devstack.processes.lock import DirectoryLock
from broker.devstack.processes.ports import HOST, reserve_wished
from broker.devstack.processes.process import Program, ServerProcess
from broker.devstack.processes.sockets import SocketDirectory

_ROOT = Path(str(broker.__file__)).resolve().parents[1]
_SOCKET = "control.sock"
# An end in good order, then the end; each with the seconds it may take.
_ESCALATION = ((Signals.SIGTERM, 10.0), (Signals.SIGKILL, 5.0))


@dataclass(frozen=True)
class _Running:
    """A stand-in that serves, and the hand on it."""

    process: ServerProcess
    control: Control


class CosmosServer(Restartable):
    """A stand-in that lives as long as the process that started it.

    The data stays when it stops. It ends by itself when the process ends, in whatever way, also
    while it is frozen.
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
        self._sockets = SocketDirectory(
            self.data_dir / "sockets", "broker-cosmos-", os.geteuid(), os.getegid()
        )
        self._running: _Running | None = None

    # --- life -----------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts the stand-in and waits until it serves.

        Does nothing when it runs already; starts it again when it has died.

        Raises:
            ServerInUseError: Another stand-in serves the data directory.
            ServerStartError: It did not start; the message ends with its log.
        """
        if not self.is_running:
            self.stop()
            try:
                self._launch()
            except (OSError, subprocess.SubprocessError) as error:
                raise ServerStartError(f"cannot start the stand-in: {error}") from error
        return self

    def stop(self) -> None:
        """Ends the stand-in in good order and waits; does nothing when it is not running."""
        running, self._running = self._running, None
        if running is not None:
            running.process.stop()

    def kill(self) -> None:
        """Ends the stand-in at once, as a crash does, and waits."""
        running, self._running = self._now(), None
        running.process.kill()

    def freeze(self) -> None:
        """Stops the stand-in from running; its connections stay open and silent."""
        self._now().process.freeze()

    def thaw(self) -> None:
        """Lets it go on."""
        self._now().process.thaw()

    @property
    def is_running(self) -> bool:
        """Whether the process is there, frozen or not."""
        return self._running is not None and self._running.process.is_running

    # --- addresses ------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """The URL of the account, known since the first start."""
        if not self._last_port:
            raise ServerError("the stand-in was never started")
        return f"https://{HOST}:{self._last_port}/"

    @property
    def key_file(self) -> Path:
        """Holds the account's key."""
        return self.data_dir / "key"

    @property
    def key(self) -> str:
        """The account's key."""
        return self.key_file.read_text(encoding="ascii")

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority that clients have to trust."""
        return self.data_dir / "tls" / "ca.crt"

    @property
    def log_file(self) -> Path:
        """What the stand-in had to say since its latest start."""
        return self.data_dir / "server.log"

    @property
    def pid(self) -> int:
        """The process id of the running stand-in."""
        return self._now().process.pid

    @property
    def control(self) -> Control:
        """The hand on the running stand-in; another one after each start."""
        return self._now().control

    # --- inside ---------------------------------------------------------------------------

    def _now(self) -> _Running:
        if self._running is None:
            raise ServerError("the stand-in is not started")
        return self._running

    def _launch(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        lock = DirectoryLock(self.data_dir / "lock")
        try:
            with reserve_wished(self._fixed_port, self._last_port) as reservation:
                self._last_port = reservation.getsockname()[1]
                self._running = self._serving(lock)
        finally:
            lock.release()

    def _serving(self, lock: DirectoryLock) -> _Running:
        """Starts the process and waits until it serves."""
        sockets = self._sockets.make()
        control = Control(sockets / _SOCKET)
        try:
            process = ServerProcess(self._program(control.socket), lock)
        except BaseException:
            self._sockets.drop()
            raise
        try:
            process.wait_until(control.is_served, self._start_timeout)
        except BaseException:
            process.stop()
            raise
        return _Running(process, control)

    def _program(self, control: Path) -> Program:
        order = str(self.data_dir), str(self._last_port), str(control)
        return Program(
            name="the stand-in",
            command=[sys.executable, "-P", "-m", "broker.devstack.cosmos.standin", *order],
            environment={"PYTHONPATH": str(_ROOT)},
            escalation=_ESCALATION,
            sockets=control.parent,
            log=self.log_file,
        )

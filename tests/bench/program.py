"""A server of the bench in a process of its own, which ends when its standard input does."""

import subprocess
import sys


class Program:
    """A module that is run as a program."""

    def __init__(self, module: str, *arguments: str) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def line(self) -> str:
        """Wait for a line that it prints.

        Raises:
            RuntimeError: It ended instead.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a server of the bench ended")
        return line

    def ask(self) -> str:
        """Send an empty line, and return the one that it answers with."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.line()

    def stop(self) -> None:
        """End it."""
        self._process.communicate()

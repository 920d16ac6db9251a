"""The one seam between the development stack and the broker it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from broker.devstack.errors import DevStackError
from broker.devstack.settings import StackSettings

Listening = Callable[[str], None]


class Product(Protocol):
    """What the stack needs of a broker."""

    async def prepare(self, settings: StackSettings) -> None:
        """Makes the database ready, as the migrator. Called at every start, so it repeats safely.

        Migrates both schemas, grants the runtime role what it needs, and writes the marker of the
        memory store unless it is there.
        """
        ...

    async def serve(self, settings_file: Path, listening: Listening) -> None:
        """Serves with ``development`` rules until it is cancelled, then drains and returns.

        Installs no signal handlers.

        Args:
            settings_file: The settings of ``broker serve``, as TOML.
            listening: To be called once, with host and port, when calls are accepted.
        """
        ...


class WiredBroker:
    """The broker of this repository."""

    async def prepare(self, settings: StackSettings) -> None:
        """See ``Product``."""
        raise DevStackError("the broker is not wired to the development stack yet")

    async def serve(self, settings_file: Path, listening: Listening) -> None:
        """See ``Product``."""
        raise DevStackError("the broker is not wired to the development stack yet")

"""The one seam between the development stack and the broker it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from broker.config import load_settings
from broker.devstack.database import RUNTIME
from broker.devstack.errors import DevStackError
from broker.devstack.settings import StackSettings
from broker.readiness import ConfigurationError
from broker.safety import verify
from broker.store.migrations import TREE as KNOWLEDGE
from broker.telemetry.logs import configure_logging
from broker.wiring import serving
from providers.errors import NegotiationRefusedError
from providers.migration import migrate
from providers.registry import NATIVE, adapter, migrate_native

Listening = Callable[[str], None]


class Product(Protocol):
    """What the stack needs of a broker."""

    async def prepare(self, settings: StackSettings) -> None:
        """Makes the stack's own database ready, as the migrator. Called at every start.

        So it repeats safely.

        Migrates the schemas that are used, grants the runtime role what it needs, and writes the
        marker of the memory store unless it is there.
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
        dsn, memory = settings.place.access.migrator_dsn, settings.memory
        await migrate(KNOWLEDGE, dsn, RUNTIME)
        if memory.adapter == NATIVE:
            await migrate_native(dsn, RUNTIME)
        mark = adapter(memory.adapter).init_resource
        try:
            await mark(memory.address, memory.resource_id, memory.generation)
        except NegotiationRefusedError as error:
            if error.fact != "marker":  # that one is there already
                raise

    async def serve(self, settings_file: Path, listening: Listening) -> None:
        """See ``Product``."""
        configure_logging()
        settings = load_settings(settings_file)
        verify(settings, development=True)
        try:
            async with serving(settings) as address:
                listening(address)
                await asyncio.Event().wait()
        except ConfigurationError as error:
            raise DevStackError(str(error)) from error

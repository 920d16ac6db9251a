"""What can be started and stopped, as a context manager."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Restartable(ABC):
    """Usable as a context manager, plain or asynchronous, or by ``start()`` and ``stop()``."""

    @abstractmethod
    def start(self) -> Self:
        """Starts it, unless it runs."""

    @abstractmethod
    def stop(self) -> None:
        """Ends it and waits for that; does nothing when it is not running."""

    def __enter__(self) -> Self:
        """Starts it."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops it."""
        self.stop()

    async def __aenter__(self) -> Self:
        """Starts it without blocking the event loop."""
        starting = asyncio.create_task(asyncio.to_thread(self.start))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            await asyncio.to_thread(self.stop)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops it without blocking the event loop."""
        await asyncio.to_thread(self.stop)

"""Counts and times what a provider is asked."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from providers.interface import IMemoryProvider
from providers.model import WriteSet
from providers.requests import (
    CommitOutcome,
    Loaded,
    LoadRequest,
    Negotiated,
    RevisionsPage,
    RevisionsRequest,
    SearchPage,
    SearchRequest,
)

T = TypeVar("T")

Observe = Callable[[str, str, float], None]
"""Takes an operation, ``ok`` or the name of an error type, and seconds."""


class MeteredProvider(IMemoryProvider):
    """A provider that tells of each round trip how it ended and how long it took."""

    def __init__(self, provider: IMemoryProvider, observe: Observe) -> None:
        """Take the provider and who is told."""
        self._provider = provider
        self._observe = observe

    async def negotiate(self, *, timeout: float) -> Negotiated:
        """See ``IMemoryProvider.negotiate``."""
        return await self._told("negotiate", self._provider.negotiate(timeout=timeout))

    async def ready(self, *, timeout: float) -> None:
        """See ``IMemoryProvider.ready``."""
        await self._told("ready", self._provider.ready(timeout=timeout))

    async def close(self) -> None:
        """See ``IMemoryProvider.close``."""
        await self._provider.close()

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        """See ``IMemoryProvider.load``."""
        return await self._told("load", self._provider.load(request, timeout=timeout))

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        """See ``IMemoryProvider.commit``."""
        return await self._told("commit", self._provider.commit(write_set, timeout=timeout))

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        """See ``IMemoryProvider.revisions``."""
        return await self._told("revisions", self._provider.revisions(request, timeout=timeout))

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.search``."""
        return await self._told("search", self._provider.search(request, timeout=timeout))

    async def _told(self, operation: str, work: Awaitable[T]) -> T:
        started = time.perf_counter()
        outcome = "cancelled"
        try:
            result = await work
            outcome = "ok"
        except Exception as error:
            outcome = type(error).__name__
            raise
        finally:
            self._observe(operation, outcome, time.perf_counter() - started)
        return result

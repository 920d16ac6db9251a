"""Connections: opened by the first call, bounded in time, and gone when in doubt (G-8)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import asyncpg

from providers.errors import ProviderError
from providers.lending import Lender
from providers.postgres.options import PostgresOptions

T = TypeVar("T")
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Warm: TypeAlias = Callable[[Connection], Coroutine[Any, Any, None]]

# Seconds for the server to confirm that it dropped a statement nobody waits for any more.
_GRACE = 1.0
# Seconds that calls under way may take when the provider closes.
_CLOSE = 2.0


# What a statement and a refusal of ours leave behind is a connection that is ready again.
_SOUND_AFTER = (asyncpg.PostgresError, ProviderError)


class Connections:
    """Lends connections to one call each."""

    def __init__(self, options: PostgresOptions, warm: Warm) -> None:
        """Keep what is needed to connect; nothing is opened.

        Args:
            options: Address and limits.
            warm: Run on each new connection, so that the statements it runs are prepared there.
        """
        self._options = options
        self._warm = warm
        self._lender: Lender[Connection] = Lender(
            most=options.pool_size,
            ready=options.pool_ready,
            connect=self._open,
            is_sound=_is_open,
            leave=self._leave,
        )
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._lender.is_closed

    def check_open(self) -> None:
        """Raise ProviderClosedError after ``close`` (G-9)."""
        self._lender.check_open()

    async def run(self, work: Callable[[Connection], Awaitable[T]], *, timeout: float) -> T:
        """Run ``work`` on a connection of its own, waiting for one included.

        Raises:
            ProviderClosedError: ``close`` was called. Not retryable.
            TimeoutError: The time ran out.
            Exception: What the driver or ``work`` raised.
        """
        self._lender.check_open()
        async with asyncio.timeout(timeout):
            return await self._lender.lend(work, sound_after=_SOUND_AFTER)

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[Connection]:
        """Open a connection outside the pool for one look at the server, and end it."""
        connection: Connection = await asyncpg.connect(**self._arguments())
        try:
            yield connection
            await connection.close(timeout=_GRACE)
        finally:
            connection.terminate()

    async def close(self) -> None:
        """Close all connections, within seconds even when the server does not answer."""
        self._lender.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE):
                await self._lender.returned()
        for link in self._lender.used:
            link.terminate()
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_GRACE)

    async def _open(self) -> Connection:
        link: Connection = await asyncpg.connect(**self._arguments())
        try:
            await self._warm(link)
        except BaseException:
            link.terminate()
            raise
        return link

    def _arguments(self) -> dict[str, Any]:
        options = self._options
        return {
            "dsn": options.dsn,
            "timeout": options.connect_ms / 1000,
            "max_cached_statement_lifetime": 0,
            "max_cacheable_statement_size": 0,
            "server_settings": {
                "application_name": "knowledge-broker",
                "statement_timeout": str(options.statement_ms),
                "lock_timeout": str(options.lock_ms),
                # A statement whose caller is gone ends, also while it waits for a lock: the
                # request to cancel it may have come too early to find it.
                "client_connection_check_interval": "1s",
                # Plans outlive the statistics they were made with: one made for a small table
                # must not walk through it when it has grown.
                "enable_seqscan": "off",
                # The statements take lists, which a plan for given values would be made for anew.
                "plan_cache_mode": "force_generic_plan",
                "jit": "off",
            },
        }

    def _leave(self, link: Connection) -> "asyncio.Task[None]":
        """Ask the server to drop the statement, then close; never wait for it here."""
        task = asyncio.get_running_loop().create_task(_close(link))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task


async def _is_open(link: Connection) -> bool:
    return not link.is_closed()


async def _close(link: Connection) -> None:
    # Whatever happens on the way, the driver drops the connection in the end.
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        await link.close(timeout=_GRACE)

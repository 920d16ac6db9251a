"""The pool: opened by the first call, bounded in time, and free of connections in doubt (G-8)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from providers.errors import ProviderClosedError, ProviderError
from providers.postgres.options import PostgresOptions

T = TypeVar("T")
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Link: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Warm: TypeAlias = Callable[[Connection], Awaitable[None]]

# Seconds for the server to confirm that it dropped a statement nobody waits for any more.
_GRACE = 1.0
# Seconds that calls under way may take when the provider closes.
_CLOSE = 2.0


async def _keep(_: object) -> None:
    """Leave a returned connection as it is: no call changes session state."""


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
        self._pool: Pool | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    async def run(self, work: Callable[[Link], Awaitable[T]], *, timeout: float) -> T:
        """Run ``work`` on a connection of its own, waiting for one included.

        A call that did not end by itself costs its connection: nothing can be said of its state.

        Raises:
            ProviderClosedError: ``close`` was called. Not retryable.
            TimeoutError: The time ran out.
            Exception: What the driver or ``work`` raised.
        """
        self.check_open()
        link: Link | None = None
        try:
            async with asyncio.timeout(timeout):
                pool = self._pool or await self._open()
                link = await pool.acquire()
                return await work(link)
        except (asyncpg.PostgresError, ProviderError):
            raise
        except BaseException:
            if link is not None:
                self._leave(link)
                link = None
            raise
        finally:
            if link is not None:
                await pool.release(link)

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[Connection]:
        """Open a connection outside the pool for one look at the server, and end it."""
        connection = await self._connect(self._options.dsn)
        try:
            yield connection
            await connection.close(timeout=_GRACE)
        finally:
            connection.terminate()

    async def close(self) -> None:
        """Close all connections, within seconds even when the server does not answer."""
        self._closed = True
        async with self._opening:
            pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(_CLOSE):
                    await pool.close()
            except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                pool.terminate()
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_GRACE)

    def check_open(self) -> None:
        """Raise ProviderClosedError after ``close`` (G-9)."""
        if self._closed:
            raise ProviderClosedError("the provider was closed")

    async def _open(self) -> Pool:
        async with self._opening:
            self.check_open()
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._options.dsn,
                    connect=self._connect,
                    init=self._warm,
                    reset=_keep,
                    min_size=self._options.pool_ready,
                    init_size=self._options.pool_ready,
                    max_size=self._options.pool_size,
                )
            return self._pool

    async def _connect(self, dsn: str, **given: object) -> Connection:
        options = self._options
        given |= {
            "timeout": options.connect_ms / 1000,
            "max_cached_statement_lifetime": 0,
            "max_cacheable_statement_size": 0,
            "server_settings": {
                "application_name": "knowledge-broker",
                "statement_timeout": str(options.statement_ms),
                "lock_timeout": str(options.lock_ms),
            },
        }
        return await asyncpg.connect(dsn, **given)

    def _leave(self, link: Link) -> None:
        """Ask the server to drop the statement, then close; never wait for it here."""
        task = asyncio.get_running_loop().create_task(_close(link))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


async def _close(link: Link) -> None:
    try:
        await link.close(timeout=_GRACE)
    except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        link.terminate()

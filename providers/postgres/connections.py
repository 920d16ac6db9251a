"""The pool: opened by the first call, bounded in time, and free of connections in doubt (G-8)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from providers.errors import ProviderClosedError, ProviderError
from providers.postgres.options import PostgresOptions

T = TypeVar("T")
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Link: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Warm: TypeAlias = Callable[[Connection], Coroutine[Any, Any, None]]

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
        pool = self._pool
        link: Link | None = None
        try:
            async with asyncio.timeout(timeout):
                pool = pool or await self._open()
                link = await pool.acquire()
                return await work(link)
        except (asyncpg.PostgresError, ProviderError):
            raise
        except BaseException as error:
            if link is not None:
                self._leave(link)
                link = None
            elif self._closed and isinstance(error, asyncpg.InterfaceError):
                raise ProviderClosedError("the provider was closed") from error
            raise
        finally:
            if pool is not None and link is not None:
                await pool.release(link)

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
        self._closed = True
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
            if self._pool is None:
                pool: Pool = await asyncpg.create_pool(
                    init=self._warm,
                    reset=_keep,
                    min_size=self._options.pool_ready,
                    init_size=self._options.pool_ready,
                    max_size=self._options.pool_size,
                    **self._arguments(),
                )
                if self._closed:
                    pool.terminate()
                self.check_open()
                self._pool = pool
            return self._pool

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

    def _leave(self, link: Link) -> None:
        """Ask the server to drop the statement, then close; never wait for it here."""
        task = asyncio.get_running_loop().create_task(_close(link))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


async def _close(link: Link) -> None:
    # Whatever happens on the way, the driver drops the connection in the end.
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        await link.close(timeout=_GRACE)

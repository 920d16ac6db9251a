"""Connections: opened by the first call, bounded in time, and gone when in doubt (G-8).

The driver's connections are used as they are: its own pools and clients send again what failed, and
nothing here may be sent twice without the caller's knowledge (C-9).
"""

import asyncio
import re
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from redis.asyncio.connection import SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as DriverConnectionError
from redis.exceptions import RedisError
from redis.maint_notifications import MaintNotificationsConfig

from providers.errors import NegotiationRefusedError
from providers.lending import Lender
from providers.redis.errors import DRIVER, code_of
from providers.redis.options import RedisOptions
from providers.redis.scripts import FLAGGED, PLAIN, Loaded, Script

Command: TypeAlias = tuple[bytes | str | int, ...]
Reply: TypeAlias = Any
Warm: TypeAlias = "Callable[[Link], Awaitable[None]]"

_VERSION_MIN = (6, 0)
# A server that takes several names looks these up; a pattern it compares with every setting.
_SETTINGS: Command = ("CONFIG", "GET", "appendonly", "appendfsync", "no-appendfsync-on-rewrite")
_SETTINGS_BY_PATTERN: Command = ("CONFIG", "GET", "*append*")
_FLAGS_SINCE = _NAMES_SINCE = (7, 0)
_TELLS_RIGHTS_SINCE = (7, 0)
_FIELDS_EXPIRE_SINCE = (7, 4)
_VALKEY_FIELDS_EXPIRE_SINCE = (9, 0)
# Seen: 7.0 leaves out what the default user might not do when it reads the append-only file back;
# 6.2 and Valkey 9 do not. Of what was not seen the worse is taken.
_SKIPS_SINCE = (7, 0)
_VALKEY_SKIPS_NOTHING_SINCE = (9, 0)
# Seconds that a connection may take to close; one in doubt may never be answered.
_GRACE = 1.0


class Connection(SSLConnection):
    """The driver's connection, which here is gone at once when it is to go."""

    async def disconnect(self, *args: Any, **kwargs: Any) -> None:
        """See ``AbstractConnection.disconnect``; whatever waits for the connection ends."""
        if self._writer is not None:
            # A farewell in TLS waits for its answer, which a frozen server does not give.
            self._writer.transport.abort()
        with suppress(RuntimeError):  # uvloop's word for a transport that is closed already
            await super().disconnect(*args, **kwargs)

    async def is_quiet(self) -> bool:
        """Tell whether nothing has come since the last reply: not even the connection's end.

        Asks the socket itself too, since the loop may not have looked at it for a while.
        """
        with suppress(*DRIVER, RuntimeError):
            if self._writer is None or await self.can_read():
                return False
            socket = self._writer.get_extra_info("socket")
            if socket is None:  # the end came, and only the driver was not told yet
                return False
            waiting = select.poll()
            waiting.register(socket, select.POLLIN)
            return not waiting.poll(0)
        return False


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A connection, and what it was told about the server when it was opened.

    Attributes:
        connection: Of the driver.
        scripts: In the form that the server takes.
        fields_expire: Whether fields of a hash can expire.
        settings: The command that reads the settings that scripts cannot see.
        tells_rights: Whether the server can be asked what a user may do.
        skips_on_loading: Whether the server may leave out of the append-only file, when it starts,
            what the default user has no right to.
    """

    connection: Connection
    scripts: Mapping[Script, Loaded]
    settings: Command = _SETTINGS_BY_PATTERN
    fields_expire: bool = False
    tells_rights: bool = False
    skips_on_loading: bool = False

    async def exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands in one go and return their replies; a server's error is one of them.

        Raises:
            RedisError, OSError: The connection broke.
        """
        if not self.connection.is_connected:
            # The driver would connect anew, perhaps to another server than the one that was seen.
            raise DriverConnectionError("the connection was closed")
        packed = self.connection.pack_commands(commands)
        try:
            await self.connection.send_packed_command(packed, check_health=False)
            return [await self._reply() for _ in commands]
        except RuntimeError as error:  # uvloop's word for a transport that is closed
            raise DriverConnectionError("the connection was closed") from error

    async def load_scripts(self) -> None:
        """Give the server every script, so that a digest stands for each."""
        texts = (each.text for each in self.scripts.values())
        for reply in await self.exchange([("SCRIPT", "LOAD", text) for text in texts]):
            if isinstance(reply, Exception):
                raise reply

    async def _reply(self) -> Reply:
        """Return a reply; what the server refused with is one, also where the driver would part."""
        try:
            return await self.connection.read_response(
                disable_decoding=True, disconnect_on_error=False
            )
        except RedisError as error:
            if code_of(error):
                return error
            raise


class Connections:
    """Opens connections, and lends them to one call each."""

    def __init__(self, options: RedisOptions, warm: Warm) -> None:
        """Keep what is needed to connect; nothing is opened.

        Args:
            options: Address and limits.
            warm: Run on each new connection before the first call has it.
        """
        self._options = options
        self._warm = warm
        self._tls = options.tls()
        self.lender: Lender[Link] = Lender(
            most=options.pool_size,
            ready=options.pool_ready,
            connect=self.open,
            is_sound=_is_quiet,
            leave=self._leave,
        )
        self._leaving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[Link]:
        """Open a connection outside the pool for one look at the server, and end it."""
        link = await self.reach()
        try:
            yield link
        finally:
            self._leave(link)

    async def open(self) -> Link:
        """Open a connection that is ready for calls; see ``reach``, and what ``warm`` raises."""
        link = await self.reach()
        try:
            await self._warm(link)
        except BaseException:
            self._leave(link)
            raise
        return link

    async def reach(self) -> Link:
        """Open a connection and see which server it leads to.

        Raises:
            NegotiationRefusedError: With the fact ``version`` or ``cluster``. Not retryable.
            RedisError, OSError: It cannot be reached, or lets nobody in.
        """
        connection = self._connection()
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            link = Link(connection, PLAIN)
            server, cluster = await link.exchange([("INFO", "server"), ("INFO", "cluster")])
            return _seen(connection, server, cluster)
        except BaseException:
            self._leave(Link(connection, PLAIN))
            raise

    async def close(self) -> None:
        """Close all connections, within seconds even when the server does not answer."""
        self.lender.close()
        for link in self.lender.used:
            self._leave(link)
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _connection(self) -> Connection:
        options = self._options
        connection = Connection(
            host=options.host,
            port=options.port,
            db=options.database,
            username=options.username,
            password=options.password,
            protocol=2,
            socket_timeout=None,
            socket_connect_timeout=options.connect_ms / 1000,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,
            maint_notifications_config=MaintNotificationsConfig(enabled=False),
        )
        # Made once: a context of its own for each connection reads the authorities each time.
        connection.ssl_context.context = self._tls
        return connection

    def _leave(self, link: Link) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(_close(link.connection))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task


async def _is_quiet(link: Link) -> bool:
    """Tell whether the server has not closed an idle connection meanwhile."""
    return await link.connection.is_quiet()


async def _close(connection: Connection) -> None:
    # Whatever happens on the way, the driver drops the connection in the end.
    with suppress(*DRIVER):
        async with asyncio.timeout(_GRACE):
            await connection.disconnect()


def _seen(connection: Connection, server: Reply, cluster: Reply) -> Link:
    """Return the link to a server that says this of itself.

    Raises:
        NegotiationRefusedError: It is too old, or one of a cluster. Not retryable.
        ResponseError: It did not say.
    """
    for reply in (server, cluster):
        if isinstance(reply, Exception):
            raise reply
    version = _version(server, b"redis_version")
    if version < _VERSION_MIN:
        raise NegotiationRefusedError("the server is older than version 6.0", fact="version")
    if b"\ncluster_enabled:0\r" not in cluster:
        raise NegotiationRefusedError("the server is one of a cluster", fact="cluster")
    valkey = _version(server, b"valkey_version")
    return Link(
        connection,
        scripts=FLAGGED if version >= _FLAGS_SINCE else PLAIN,
        settings=_SETTINGS if version >= _NAMES_SINCE else _SETTINGS_BY_PATTERN,
        fields_expire=version >= _FIELDS_EXPIRE_SINCE or valkey >= _VALKEY_FIELDS_EXPIRE_SINCE,
        tells_rights=version >= _TELLS_RIGHTS_SINCE,
        skips_on_loading=version >= _SKIPS_SINCE and valkey < _VALKEY_SKIPS_NOTHING_SINCE,
    )


def _version(server: bytes, name: bytes) -> tuple[int, int]:
    found = re.search(rb"\n%b:(\d{1,5})\.(\d{1,5})" % name, server)
    return (int(found[1]), int(found[2])) if found else (0, 0)

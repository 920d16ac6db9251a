"""The SDK's client: opened by the first call, never sending a request twice (C-9).

By default the SDK sends again what failed: on 408, 410, 429, 449 and 503, on lost replies, and to a
container that was made anew. Settings switch off most of it; a guard in its pipeline stops the
rest, and all that would go to another container than the one that was opened.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.transport import HttpRequest
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.identity.aio import DefaultAzureCredential

from providers.cosmos.errors import RecreatedError, SentAgainError, UnsoundAnswerError, sound
from providers.cosmos.options import CosmosOptions
from providers.cosmos.sockets import Sockets
from providers.cosmos.transport import LingeringTransport
from providers.errors import ProviderClosedError

_INTENDED = "x-ms-cosmos-intended-collection-rid"
_GRACE = 1.0
"""Seconds that connections may take to close."""
_SETTINGS: Mapping[str, Any] = {
    # 0 would be taken for "not given".
    "retry_throttle_total": -1,
    "retry_total": 0,
    "retry_connect": 0,
    "retry_read": 0,
    "retry_status": 0,
    "retry_write": 0,
    "enable_endpoint_discovery": False,
    "enable_compact_utf8_item_writes": True,
}


@dataclass(slots=True)
class _Guard:
    """Lets each request out once, and to one container only.

    It also has the certificate checked: the SDK checks none of ``127.0.0.1``, whatever it is told.
    """

    rid: str = ""
    sent: WeakKeyDictionary[HttpRequest, tuple[int, Mapping[str, str]]] = field(
        default_factory=WeakKeyDictionary
    )

    def ask(self, request: PipelineRequest[HttpRequest]) -> None:
        """See a request before it is sent."""
        request.context.options.update(connection_verify=True, connection_cert=None)
        sent = request.http_request
        if sent in self.sent:
            raise SentAgainError(*self.sent[sent])
        if self.rid and sent.headers.get(_INTENDED, self.rid) != self.rid:
            raise RecreatedError
        self.sent[sent] = (0, {})

    def answer(self, response: PipelineResponse[HttpRequest, Any]) -> None:
        """See what a request was answered."""
        told = response.http_response
        self.sent[response.http_request] = (told.status_code, dict(told.headers))


@dataclass(frozen=True, slots=True)
class Opened:
    """A client that is connected.

    Attributes:
        client: The SDK's.
        container: Where everything is.
        guard: Watches what is sent.
    """

    client: CosmosClient
    container: ContainerProxy
    guard: _Guard


class Connections:
    """Opens the client once, and closes it."""

    def __init__(self, options: CosmosOptions) -> None:
        """Keep what is needed to connect; nothing is opened."""
        self._options = options
        self._tls = options.tls()
        self._opening = asyncio.Lock()
        self._opened: Opened | None = None
        self._stack = AsyncExitStack()
        self._sockets = Sockets()
        self._closed = False

    def check_open(self) -> None:
        """Raise ProviderClosedError after ``close`` (G-9)."""
        if self._closed:
            raise ProviderClosedError("the provider was closed")

    async def get(self) -> Opened:
        """Return the client, opened if it is not yet.

        Raises:
            ProviderClosedError: ``close`` was called. Not retryable.
            AzureError, OSError, UnsoundAnswerError: The account cannot be reached, or lets
                nobody in, or what answers is none.
        """
        async with self._opening:
            self.check_open()
            if self._opened is None:
                async with AsyncExitStack() as stack:
                    opened = await self._open(stack)
                    self._stack = stack.pop_all()
                    self._opened = opened
        self.check_open()
        return self._opened

    async def close(self) -> None:
        """Close all connections, within seconds even when the account does not answer."""
        self._closed = True
        self._opened = None
        closing = asyncio.ensure_future(self._end())
        await asyncio.wait([closing], timeout=_GRACE)

    async def _end(self) -> None:
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()
        await self._sockets.end()

    async def _open(self, stack: AsyncExitStack) -> Opened:
        options, guard = self._options, _Guard()
        connector = aiohttp.TCPConnector(
            ssl=self._tls, limit=options.pool_size, socket_factory=self._sockets.make
        )
        # Ours to close: a client that is refused at its start leaves its session open.
        session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        await stack.enter_async_context(session)
        credential: str | DefaultAzureCredential
        if options.key is None:
            credential = DefaultAzureCredential()
            stack.push_async_callback(credential.close)
        else:
            credential = options.key
        client = CosmosClient(
            options.endpoint,
            credential,
            transport=LingeringTransport(session=session, session_owner=False),
            raw_request_hook=guard.ask,
            raw_response_hook=guard.answer,
            connection_timeout=options.connect_ms / 1000,
            **_SETTINGS,
        )
        database = client.get_database_client(options.database)
        container = database.get_container_client(options.container)
        with sound():
            await stack.enter_async_context(client)
            rid = (await container.read())["_rid"]
        if type(rid) is not str or not rid:
            raise UnsoundAnswerError("the container has no name of the service's")
        guard.rid = rid
        return Opened(client, container, guard)

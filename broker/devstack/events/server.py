"""Serves the Events service: on the loopback interface, or with a certificate."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import grpc

from broker.authority.issuers import TrustedIssuer
from broker.devstack.events.authority import CurrentAuthority
from broker.devstack.events.callers import CallerVerifier
from broker.devstack.events.journal import Journal
from broker.devstack.events.receipts import BrokerReceipts
from broker.devstack.events.servicer import EventsServicer
from broker.outbound import PeerSettings
from broker.owners.v1 import events_service_pb2_grpc as pb_grpc

HOST = "127.0.0.1"
METADATA_BYTES_MAX = 64 * 1024
GRACE_S = 1.0

_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
)


@dataclass(frozen=True, kw_only=True)
class EventsOptions:
    """What an Events service is started with.

    Attributes:
        dsn: The database's URL, of the role that owns the schema ``events``.
        issuer: Whose tokens count, with the audience of this service.
        knowledge_audience: The audience of the tokens that are handed on to the broker.
        owner: The Projects & Config owner.
        broker: The broker, whose receipts are believed; may be told later, by ``reach``.
        port: TCP port on the loopback interface; 0 takes a free one.
        credentials: What it shows to those who call; without them it serves in plaintext.
    """

    dsn: str = field(repr=False)
    issuer: TrustedIssuer
    knowledge_audience: str
    owner: PeerSettings
    broker: PeerSettings | None = None
    port: int = 0
    credentials: grpc.ServerCredentials | None = None


class EventsServer:
    """A gRPC server with the Events service. An asynchronous context manager."""

    def __init__(self, options: EventsOptions) -> None:
        """Describes a server; nothing happens before ``start()``."""
        self._options = options
        self._port = options.port
        self._receipts = BrokerReceipts(options.broker)
        self._open = AsyncExitStack()

    @property
    def address(self) -> str:
        """Host and port of the started server."""
        return f"{HOST}:{self._port}"

    async def reach(self, broker: PeerSettings) -> None:
        """Says where the broker is; until then every effect is refused as unavailable."""
        await self._receipts.reach(broker)

    async def start(self) -> Self:
        """Serves from now on.

        Raises:
            RuntimeError: The port is taken.
            OSError, asyncpg.PostgresError: The database cannot be reached or refuses.
        """
        async with AsyncExitStack() as stack:
            journal = Journal(self._options.dsn)
            stack.push_async_callback(journal.close)
            await journal.open()
            callers = CallerVerifier(self._options.issuer, self._options.knowledge_audience)
            stack.push_async_callback(callers.close)
            stack.push_async_callback(self._receipts.close)
            authority = CurrentAuthority(self._options.owner)
            stack.push_async_callback(authority.close)
            server = grpc.aio.server(options=_OPTIONS)
            servicer = EventsServicer(callers, self._receipts, authority, journal)
            pb_grpc.add_EventsServiceServicer_to_server(servicer, server)
            self._port = self._listening(server)
            await server.start()
            stack.push_async_callback(server.stop, GRACE_S)
            self._open = stack.pop_all()
        return self

    async def stop(self) -> None:
        """Ends the server; running calls have a second to finish."""
        await self._open.aclose()

    async def __aenter__(self) -> Self:
        """Starts the server."""
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the server."""
        await self.stop()

    def _listening(self, server: grpc.aio.Server) -> int:
        if self._options.credentials is None:
            return server.add_insecure_port(self.address)
        return server.add_secure_port(self.address, self._options.credentials)

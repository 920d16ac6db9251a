"""Starts a whole broker on this machine, and stops it again: what ``broker dev`` does.

PostgreSQL, Redis or the stand-in for Cosmos DB where that keeps memory, the Projects & Config
owner, the Events service, the broker, in this order; the end is in the other one.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg

from broker.authority.issuers import KeysFile, TrustedIssuer
from broker.devstack import files, playground, tokens
from broker.devstack.banner import STAND_IN, banner
from broker.devstack.cosmos import CosmosServer
from broker.devstack.data import DataDirectory
from broker.devstack.database import Place, prepared, provision
from broker.devstack.errors import DevStackError
from broker.devstack.events import EventsOptions, EventsServer
from broker.devstack.memory import MemoryStore, in_cosmos, in_postgres, in_redis
from broker.devstack.owner import OwnerServer, ProjectsConfigServicer
from broker.devstack.owner.document import DocumentInvalidError
from broker.devstack.owner.model import Document
from broker.devstack.postgres import PostgresServer
from broker.devstack.processes.errors import ServerError
from broker.devstack.product import Product, WiredBroker
from broker.devstack.provider import Provider
from broker.devstack.redis import RedisServer
from broker.devstack.settings import NO_EMBEDDINGS, StackSettings, to_toml
from broker.devstack.tokens import TokenIssuer
from broker.outbound import PeerSettings
from providers.registry import redis_acl

HOST = "127.0.0.1"
PORT = 7401
NO_EVENTS = f"{HOST}:1"
"""An address where nobody listens."""

Say = Callable[[str], None]


def announce(line: str) -> None:
    """Prints a line at once, also into a pipe."""
    print(line, flush=True)


async def dev(
    data_dir: Path,
    *,
    port: int = PORT,
    provider: str = Provider.POSTGRES,
    postgres_dsn: str | None = None,
    events_dsn: str | None = None,
    embeddings: str = NO_EMBEDDINGS,
    product: Product | None = None,
    say: Say = announce,
) -> None:
    """Runs a development stack until SIGINT or SIGTERM.

    Args:
        data_dir: Where everything is kept, made when it is missing.
        port: The broker's port on the loopback interface; 0 takes a free one.
        provider: Where memory is kept, by a name of ``Provider``; the stack starts it.
            Cosmos DB is a stand-in, and the output begins and ends with that.
        postgres_dsn: The runtime role's URL of a prepared database to use; by default the stack
            starts and prepares one of its own.
        events_dsn: With a given database, the URL of one for the Events service, of the role that
            owns the schema ``events`` in it; by default there is no Events service then.
        embeddings: `local` for the model of the extra `[embeddings]`; by default none.
        product: The broker; by default the one of this repository.
        say: Takes lines for the person at the keyboard.

    Raises:
        DevStackError: It cannot start, or a part of it ended by itself. What had been started is
            stopped.
    """
    with _stop_signals(say) as stop:
        try:
            kept_in = _named(provider, given=postgres_dsn is not None)
            _require_free_before_making(data_dir, port)
            async with AsyncExitStack() as stack:
                data = DataDirectory(data_dir)
                start = _Start(data, port, kept_in, product or WiredBroker(), say, stop)
                await start.run(stack, postgres_dsn, events_dsn, embeddings)
        except ServerError as error:
            raise DevStackError(str(error)) from error
        except (OSError, asyncpg.PostgresError) as error:
            raise DevStackError(f"cannot go on: {error}") from error
    say("Stopped.")


class _StopRequestedError(Exception):
    """A signal came while the stack was starting."""


class _Start:
    """One start of a stack, up to the moment it is stopped."""

    def __init__(
        self,
        data: DataDirectory,
        port: int,
        provider: Provider,
        product: Product,
        say: Say,
        stop: asyncio.Event,
    ) -> None:
        self._data, self._port, self._provider = data, port, provider
        self._product, self._say, self._stop = product, say, stop

    async def run(
        self,
        stack: AsyncExitStack,
        postgres_dsn: str | None,
        events_dsn: str | None,
        embeddings: str,
    ) -> None:
        """Starts each part in turn and waits for a signal; the stack undoes it."""
        stack.enter_context(self._data.locked())
        _require_free(self._port)
        self._data.keep_to(self._provider)
        self._warn()
        document = self._document()
        issuer = TokenIssuer(self._data.keys)
        with suppress(_StopRequestedError):
            if postgres_dsn:
                place = await prepared(postgres_dsn, events_dsn)
            else:
                place = await self._postgres(stack)
            memory = await self._memory(stack, place)
            owner = await self._owner(stack, issuer)
            events = await self._events(stack, place, owner, issuer)
            settings = StackSettings(
                listen=f"{HOST}:{self._port}",
                owner_address=owner.address,
                events_address=NO_EVENTS if events is None else events.address,
                jwks_file=issuer.jwks_file,
                place=place,
                memory=memory,
                catalog=document,
                embeddings=embeddings,
            )
            await self._broker(stack, settings, events, issuer)

    def _document(self) -> Document:
        path = self._data.playground
        if playground.ensure(path, self._provider):
            self._say(f"Playground: written to {path}")
        try:
            return playground.read(path)
        except DocumentInvalidError as error:
            raise DevStackError("\n  ".join([f"{path} is invalid:", *error.problems])) from error

    async def _postgres(self, stack: AsyncExitStack) -> Place:
        self._progress("PostgreSQL: starting (the first time takes a little longer)")
        server = await stack.enter_async_context(PostgresServer(self._data.postgres))
        stack.callback(self._say, "PostgreSQL: stopping")
        self._progress(f"PostgreSQL: ready on {server.host}:{server.port}")
        return await provision(server, self._data.secrets())

    async def _memory(self, stack: AsyncExitStack, place: Place) -> MemoryStore:
        """Starts what keeps memory, unless PostgreSQL does."""
        match self._provider:
            case Provider.POSTGRES:
                return in_postgres(place)
            case Provider.REDIS:
                return in_redis(await self._redis(stack), place.resource_id)
            case Provider.COSMOS:
                return await in_cosmos(await self._cosmos(stack), place.resource_id)

    async def _redis(self, stack: AsyncExitStack) -> RedisServer:
        self._progress("Redis: starting")
        server = await stack.enter_async_context(RedisServer(self._data.redis, acl=redis_acl()))
        stack.callback(self._say, "Redis: stopping")
        self._progress(f"Redis: ready on {server.host}:{server.port}")
        return server

    async def _cosmos(self, stack: AsyncExitStack) -> CosmosServer:
        self._progress("Cosmos DB stand-in: starting")
        server = await stack.enter_async_context(CosmosServer(self._data.cosmos))
        stack.callback(self._say, "Cosmos DB stand-in: stopping")
        self._progress(f"Cosmos DB stand-in: ready on {server.endpoint}")
        return server

    async def _owner(self, stack: AsyncExitStack, issuer: TokenIssuer) -> OwnerServer:
        servicer = ProjectsConfigServicer(self._data.playground, issuer.jwks_file)
        owner = await stack.enter_async_context(OwnerServer(servicer))
        self._progress(f"Projects & Config owner: ready on {owner.address}")
        return owner

    async def _events(
        self, stack: AsyncExitStack, place: Place, owner: OwnerServer, issuer: TokenIssuer
    ) -> EventsServer | None:
        """Starts the Events service; where the broker is, it learns when that serves."""
        if not place.access.events_dsn:
            self._progress("Events service: none, as it was given no database")
            return None
        options = EventsOptions(
            dsn=place.access.events_dsn,
            issuer=TrustedIssuer(
                issuer=tokens.ISSUER,
                audience=tokens.AUDIENCE,
                algorithms=frozenset({tokens.ALGORITHM}),
                keys=KeysFile(issuer.jwks_file),
            ),
            knowledge_audience=tokens.AUDIENCE,
            owner=PeerSettings(address=owner.address, plaintext_loopback=True),
        )
        events = await stack.enter_async_context(EventsServer(options))
        self._progress(f"Events service: ready on {events.address}")
        return events

    async def _broker(
        self,
        stack: AsyncExitStack,
        settings: StackSettings,
        events: EventsServer | None,
        issuer: TokenIssuer,
    ) -> None:
        if settings.place.access.migrator_dsn:
            self._progress("Broker: preparing the database")
            await self._product.prepare(settings)
        files.replace(self._data.settings, to_toml(settings.served()), files.PRIVATE)
        self._progress("Broker: starting")
        serving, address = await stack.enter_async_context(self._serving())
        if events is not None:
            await events.reach(PeerSettings(address=address, plaintext_loopback=True))
        facts = None if events is None else events.address
        self._say(banner(address, self._data, issuer, settings.memory, events=facts))
        self._warn()
        await self._stopped_or(serving)
        if serving.done():
            raise DevStackError("the broker ended by itself") from serving.exception()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[tuple[asyncio.Task[None], str]]:
        """Serves in the background; gives the task and where it listens."""
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            self._product.serve(self._data.settings, address.set_result), name="broker"
        )
        try:
            await self._stopped_or(serving, address)
            if serving.done():
                error = serving.exception()
                raise DevStackError(f"the broker did not start: {error}") from error
            if not address.done():
                raise _StopRequestedError
            yield serving, address.result()
        finally:
            self._say("Broker: stopping")
            serving.cancel()
            await asyncio.wait({serving})
            if not serving.cancelled() and (error := serving.exception()) is not None:
                self._say(f"Broker: ended with {error!r}")

    async def _stopped_or(self, *others: asyncio.Future[Any]) -> None:
        """Waits until a stop is requested or one of the others is done."""
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({stopping, *others}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    def _warn(self) -> None:
        """Tells what is no real store."""
        if self._provider is Provider.COSMOS:
            self._say(STAND_IN)

    def _progress(self, line: str) -> None:
        if self._stop.is_set():
            raise _StopRequestedError
        self._say(line)


def _named(provider: str, *, given: bool) -> Provider:
    """Returns the provider of a name; a given PostgreSQL goes with its own only."""
    try:
        named = Provider(provider)
    except ValueError:
        known = ", ".join(Provider)
        raise DevStackError(f"--provider: there is no {provider!r}; there are: {known}") from None
    if given and named is not Provider.POSTGRES:
        raise DevStackError(f"a given PostgreSQL keeps memory itself: leave out --provider {named}")
    return named


def _require_free(port: int) -> None:
    """Refuses a port that somebody listens on; servers that share ports would not notice."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise DevStackError(
                f"port {port} cannot be used ({error.strerror}); choose another with --port"
            ) from error


def _require_free_before_making(data_dir: Path, port: int) -> None:
    """Refuses a taken port while there is nothing yet that could be left half made."""
    if not data_dir.exists():
        _require_free(port)


@contextmanager
def _stop_signals(say: Say) -> Iterator[asyncio.Event]:
    """Gives an event that SIGINT and SIGTERM set, instead of what they did before."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def requested() -> None:
        say("Still stopping." if stop.is_set() else "Stopping.")
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, requested)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

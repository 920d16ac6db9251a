"""A gateway before the stand-in for Cosmos DB that answers with something else than was said."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import aiohttp
from aiohttp import web

from broker.devstack.cosmos import CosmosServer
from broker.devstack.cosmos.standin.addresses import Address
from broker.devstack.cosmos.standin.calls import Call
from broker.devstack.cosmos.standin.protocol import kind_of

_HOP = {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"}


@dataclass(frozen=True)
class Answer:
    """What the stand-in said, or what is said in its place."""

    status: int
    headers: dict[str, str]
    body: bytes

    def saying(self, body: bytes, **headers: str) -> "Answer":
        """Return another body, with headers in place of those of their names."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers=self.headers | named, body=body)


Spoil = Callable[[Answer], Answer]


@dataclass
class Gateway:
    """Passes requests on; ``spoil`` changes answers to requests of ``kind``."""

    server: CosmosServer
    kind: str = ""
    spoil: Spoil | None = None
    spoiled: int = 0
    endpoint: str = ""

    def strike(self, kind: str, spoil: Spoil) -> None:
        """Change the answers to requests of a kind from now on."""
        self.kind, self.spoil, self.spoiled = kind, spoil, 0

    def heal(self) -> None:
        """Change nothing any more."""
        self.spoil = None

    async def handle(self, session: aiohttp.ClientSession, asked: web.Request) -> web.Response:
        """Answer a request."""
        body = await asked.read()
        call = Call(
            asked.method,
            Address.parse(asked.rel_url.raw_path),
            {name.lower(): value for name, value in asked.headers.items()},
            body,
        )
        async with session.request(
            asked.method,
            self.server.endpoint.rstrip("/") + asked.rel_url.raw_path,
            headers={**asked.headers},
            data=body,
        ) as told:
            headers = {name.lower(): value for name, value in told.headers.items()}
            answer = Answer(told.status, headers, await told.read())
        if self.spoil is not None and kind_of(call) == self.kind:
            self.spoiled += 1
            answer = self.spoil(answer)
        kept = {name: value for name, value in answer.headers.items() if name not in _HOP}
        return web.Response(status=answer.status, headers=kept, body=answer.body)


@asynccontextmanager
async def gateway_to(server: CosmosServer) -> AsyncIterator[Gateway]:
    """Open a gateway with the stand-in's certificate."""
    tls = server.ca_file.parent
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(tls / "server.crt", tls / "server.key")
    checked = ssl.create_default_context(cafile=server.ca_file)
    made = Gateway(server)
    connector = aiohttp.TCPConnector(ssl=checked)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

        async def handle(request: web.Request) -> web.Response:
            return await made.handle(session, request)

        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=shown)
        await site.start()
        made.endpoint = f"https://127.0.0.1:{runner.addresses[0][1]}/"
        try:
            yield made
        finally:
            await runner.cleanup()

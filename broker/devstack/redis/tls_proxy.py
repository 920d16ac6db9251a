"""Speaks TLS before a server that cannot, and passes every byte on unchanged.

This is a script of its own that uses the standard library only, in a process of its own: what it
costs is not taken from the program under test, and it stays when the server is killed. It ends
when its standard input does, or at the latest when it has another parent.

Each connection is taken to the server before TLS begins; while there is no server it is reset at
once. The end of one direction is passed on as such, and the other goes on; a fault ends both.
Nothing is read before what came earlier has been taken, so little is ever held here.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import ssl
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

CHUNK = 65_536
_LOOK_FOR_OWNER_S = 1.0
_RESET = struct.pack("ii", 1, 0)


class TlsEnd:
    """The client's end of a connection: what is read and written here is in the clear."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext
    ) -> None:
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def open(self) -> None:
        """Shakes hands."""
        try:
            await self._fed(self._tls.do_handshake)
        finally:
            await self._flush()

    async def read(self) -> bytes:
        """Returns the next bytes, or none at the end."""
        try:
            data: bytes = await self._fed(lambda: self._tls.read(CHUNK))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        return data

    async def write(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def end(self) -> None:
        """Says that nothing more will be written."""
        with suppress(ssl.SSLError):  # it waits for the other's end, which may come later
            self._tls.unwrap()
        await self._flush()
        self._writer.write_eof()

    async def _fed(self, work: Callable[[], Any]) -> Any:
        """Returns what the work gives once enough has come in for it."""
        while True:
            try:
                return work()
            except ssl.SSLWantReadError:
                await self._flush()
                if data := await self._reader.read(CHUNK):
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            self._writer.write(data)
        await self._writer.drain()


class Proxy:
    """Takes connections to wherever the server is at the moment."""

    def __init__(self, server: Path, context: ssl.SSLContext) -> None:
        """Names the server's socket: a path that may lead over links, which are followed anew."""
        self._server, self._context = server, context
        self._running: set[asyncio.Task[None]] = set()

    async def accept(self, listener: socket.socket) -> None:
        """Accepts connections for ever."""
        while True:
            with suppress(ConnectionError):
                client, _ = await asyncio.get_running_loop().sock_accept(listener)
                task = asyncio.create_task(self._carry(client))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    async def _carry(self, client: socket.socket) -> None:
        try:
            path = self._server.resolve(strict=True)
            reader, writer = await asyncio.open_unix_connection(path, limit=CHUNK)
        except OSError:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.close()
            return
        client_reader, client_writer = await asyncio.open_connection(sock=client, limit=CHUNK)
        try:
            with suppress(OSError):  # TLS that fails is one, too
                end = TlsEnd(client_reader, client_writer, self._context)
                await end.open()
                await _both(_requests(end, writer), _replies(reader, end))
        finally:
            client_writer.close()
            writer.close()


async def _requests(client: TlsEnd, server: asyncio.StreamWriter) -> None:
    while data := await client.read():
        server.write(data)
        await server.drain()
    server.write_eof()


async def _replies(server: asyncio.StreamReader, client: TlsEnd) -> None:
    while data := await server.read(CHUNK):
        await client.write(data)
    await client.end()


async def _both(*ways: Awaitable[None]) -> None:
    """Waits for the end of both directions; a fault in one ends the other."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _owner_gone(owner: int) -> None:
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), gone.set)
    while not gone.is_set() and os.getppid() == owner:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(gone.wait(), _LOOK_FOR_OWNER_S)


async def _serve(order: dict[str, Any]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(order["certificate"], order["key"])
    listener = socket.socket(fileno=order["listener"])
    listener.setblocking(False)
    accepting = asyncio.create_task(Proxy(Path(order["server"]), context).accept(listener))
    watching = asyncio.create_task(_owner_gone(order["owner"]))
    await asyncio.wait({accepting, watching}, return_when=asyncio.FIRST_COMPLETED)
    if accepting.done():
        accepting.result()


def main() -> None:
    """Carries out the order given as JSON in the first argument."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_serve(json.loads(sys.argv[1])))


if __name__ == "__main__":
    main()

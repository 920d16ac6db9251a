"""The life of the serving process."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import secrets
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from broker.devstack.cosmos.standin.account import Account
from broker.devstack.cosmos.standin.catalog import Catalog
from broker.devstack.cosmos.standin.certificate import server_context
from broker.devstack.cosmos.standin.clock import Clock
from broker.devstack.cosmos.standin.controls import Controls
from broker.devstack.cosmos.standin.ledger import Ledger
from broker.devstack.cosmos.standin.script import Script
from broker.devstack.cosmos.standin.service import Service
from broker.devstack.cosmos.standin.transport import Transport
from broker.devstack.processes.errors import ServerError

HOST = "127.0.0.1"
ENDED, FAILED, PORT_TAKEN, IN_USE = 0, 1, 3, 4
"""Exit codes."""
_LOOK_FOR_OWNER = 0.25


@dataclass(frozen=True)
class Order:
    """What a process shall serve.

    Attributes:
        data: The data directory.
        port: TCP port on the loopback interface; 0 takes a free one.
        owner: The process whose end ends this one; 0 for none.
        announce: Is told in one line, once, that requests are taken.
    """

    data: Path
    port: int
    owner: int
    announce: Callable[[str], None]


def run(order: Order) -> int:
    """Serves until it is told to stop; returns the exit code."""
    order.data.mkdir(parents=True, exist_ok=True)
    lock = os.open(order.data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return IN_USE
    try:
        return asyncio.run(_serve(order))
    finally:
        os.close(lock)


async def _serve(order: Order) -> int:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    clock, script, ledger = Clock(), Script(), Ledger()
    account, catalog = Account(order.data), Catalog(order.data, clock)
    transport = Transport(Service(account, catalog), script, ledger)
    runner = web.AppRunner(transport.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    token = secrets.token_urlsafe(32)
    controls = Controls(token, account, clock, script, ledger)
    try:
        context = server_context(order.data / "tls")
        await web.TCPSite(runner, HOST, order.port, ssl_context=context).start()
        async with await asyncio.start_server(controls.serve, HOST, 0) as channel:
            control = channel.sockets[0].getsockname()[1]
            port = runner.addresses[0][1]
            order.announce(json.dumps({"port": port, "control": control, "token": token}))
            await _wait(ended, order.owner)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return PORT_TAKEN
        raise ServerError(f"cannot serve {order.data}: {error}") from error
    finally:
        await runner.cleanup()
        catalog.close()
    return ENDED


async def _wait(ended: asyncio.Event, owner: int) -> None:
    """Waits for a signal, or for the owner's end, which gives this process another parent."""
    while not ended.is_set() and (not owner or os.getppid() == owner):
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _LOOK_FOR_OWNER)

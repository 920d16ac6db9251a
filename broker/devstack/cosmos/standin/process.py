"""The life of the serving process."""

from __future__ import annotations

import asyncio
import signal
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
from broker.devstack.cosmos.standin.traffic import Traffic
from broker.devstack.cosmos.standin.transport import Transport
from broker.devstack.processes.errors import ServerError
from broker.devstack.processes.ports import HOST


async def serve(data: Path, port: int, control: Path) -> None:
    """Serves until the process is told to stop.

    Args:
        data: The data directory, which is there, and locked by the launcher.
        port: TCP port on the loopback interface.
        control: The Unix socket that takes orders once requests are taken.

    Raises:
        ServerError: It cannot serve the directory, or not on the port.
    """
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    clock, script, ledger, traffic = Clock(), Script(), Ledger(), Traffic()
    account, catalog = Account(data), Catalog(data, clock)
    transport = Transport(Service(account, catalog), script, ledger, traffic)
    runner = web.AppRunner(transport.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    traffic.watch(runner.server)
    controls = Controls(account, clock, script, ledger, traffic)
    try:
        context = server_context(data / "tls")
        await web.TCPSite(runner, HOST, port, ssl_context=context).start()
        async with await asyncio.start_unix_server(controls.serve, control):
            await ended.wait()
    except OSError as error:
        raise ServerError(f"cannot serve {data}: {error}") from error
    finally:
        await runner.cleanup()
        catalog.close()

"""A server of the standard health service alone, in plaintext: it tells states and nothing else."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import grpc.aio
from grpc_health.v1 import health_pb2_grpc

from broker.server.health import HealthServicer

STALE_S: Final = 10.0
"""What was told counts for so long; after it, nothing serves."""
CALLS_MAX: Final = 256
_OPTIONS: Final = (
    ("grpc.so_reuseport", 1),  # the supervisor keeps the port
    ("grpc.max_metadata_size", 8 * 1024),
    ("grpc.absolute_max_metadata_size", 8 * 1024),
    ("grpc.max_receive_message_length", 4 * 1024),
    ("grpc.max_concurrent_streams", CALLS_MAX),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)


class HealthPort:
    """Shows what it is told from ``start`` until ``stop``; only while it goes on being told."""

    def __init__(self, address: str, names: Iterable[str]) -> None:
        """Know what may be asked for; nothing listens yet."""
        self._address = address
        self._servicer = HealthServicer(names)
        self._server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=CALLS_MAX)
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, self._server)
        self._stale: asyncio.TimerHandle | None = None

    async def start(self) -> int:
        """Listen and return the port.

        Raises:
            RuntimeError: the address cannot be listened on.
        """
        port = self._server.add_insecure_port(self._address)
        await self._server.start()
        return port

    def tell(self, statuses: Mapping[str, bool]) -> None:
        """Show what serves, until it is told again or has not been for too long."""
        self._servicer.tell(statuses)
        if self._stale is not None:
            self._stale.cancel()
        self._stale = asyncio.get_running_loop().call_later(STALE_S, self._servicer.tell, {})

    async def stop(self) -> None:
        """Say NOT_SERVING to those who watch, and end."""
        if self._stale is not None:
            self._stale.cancel()
        self._servicer.drain()
        await self._server.stop(1.0)

"""The gRPC server of one process: what it serves, how it starts, how it drains."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio

# Known to the descriptor pool, so that reflection explains the details of errors.
from google.protobuf.descriptor import ServiceDescriptor
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from broker.api.v1 import error_reason_pb2
from broker.domain.paging import REPLY_BYTES_MAX
from broker.server.generic import generic_only
from broker.server.health import HealthServicer
from broker.server.interceptors import EdgeInterceptor
from broker.server.methods import METHODS, WIDE_S

METADATA_BYTES_MAX: Final = 64 * 1024
REQUEST_BYTES_MAX: Final = 2 * 1024 * 1024
CONNECTION_GRACE_S: Final = WIDE_S + 10.0
"""How long calls may go on over a connection that is too old: every deadline fits."""
_FRAMING_BYTES: Final = 64 * 1024
_LOOK_S: Final = 0.05
_SILENT_LOOKS: Final = 10
_SILENCE_WAIT_MAX_S: Final = 2.0
_DELIVERY_WAIT_MAX_S: Final = 3.0

OPTIONS: Final[Sequence[tuple[str, int]]] = (
    # Soft and hard limit alike: between two different limits gRPC refuses calls at random.
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    ("grpc.max_send_message_length", REPLY_BYTES_MAX + _FRAMING_BYTES),
    # Several processes may share the port.
    ("grpc.so_reuseport", 1),
    # Find dead peers; allow clients to do the same, but not to flood us.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 3),
    ("grpc.max_concurrent_streams", 1_024),
)

EXPLAINED: Final = (
    error_details_pb2.DESCRIPTOR,
    status_pb2.DESCRIPTOR,
    error_reason_pb2.DESCRIPTOR,
)
"""Files whose messages occur inside of errors."""


@dataclass(frozen=True, slots=True)
class ServedService:
    """One service: what its descriptor says, and the generated function that adds its servicer."""

    descriptor: ServiceDescriptor
    add: Callable[[Any, grpc.aio.Server], None]
    servicer: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where to listen. Without ``credentials`` everybody on the way reads along.

    ``address`` is ``host:port``; port 0 takes a free one. Clients are told to connect anew when a
    connection has lasted ``connection_age_s``, give or take a tenth; calls on it finish.
    """

    address: str
    credentials: grpc.ServerCredentials | None = None
    connection_age_s: float | None = None


class EdgeServer:
    """Serves RPCs from ``start`` until ``drain``. Health says NOT_SERVING outside of ``ready``."""

    def __init__(
        self,
        *,
        services: Sequence[ServedService],
        interceptor: EdgeInterceptor,
        listener: Listener,
        reflect: bool = False,
    ) -> None:
        """Register everything; nothing listens yet.

        Raises:
            ValueError: a method has no row in ``METHODS`` or is not unary.
        """
        _check_methods(services)
        names = [service.descriptor.full_name for service in services]
        self._listener = listener
        self._interceptor = interceptor
        self._health = HealthServicer(names)
        self._server = grpc.aio.server(interceptors=[interceptor], options=_options(listener))
        adder = generic_only(self._server)
        for service in services:
            service.add(service.servicer, adder)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, adder)
        if reflect:
            health_name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
            reflection.enable_server_reflection(
                (*names, health_name, reflection.SERVICE_NAME), self._server
            )

    async def start(self) -> int:
        """Listen and return the port. Health says NOT_SERVING until ``ready``.

        Raises:
            RuntimeError: the address cannot be listened on.
        """
        address, credentials = self._listener.address, self._listener.credentials
        if credentials is None:
            port = self._server.add_insecure_port(address)
        else:
            port = self._server.add_secure_port(address, credentials)
        await self._server.start()
        return port

    def ready(self, *, serving: bool = True) -> None:
        """Say through health whether calls should come here. Without effect after ``drain``."""
        self._health.set_serving(serving=serving)

    async def drain(self, grace_s: float) -> None:
        """Stop without losing a reply; calls not finished after ``grace_s`` are cancelled.

        gRPC answers CANCELLED to calls that reach it while it shuts down, which no client retries.
        So new calls are held first until no more come; then gRPC shuts down, which tells clients to
        go elsewhere; then those held are refused as UNAVAILABLE, for clients to retry there. Calls
        that were running finish meanwhile. What they deliver the Events service reads back here, so
        a moment is left for that before gRPC shuts down.
        """
        end = asyncio.get_running_loop().time() + grace_s
        self._health.drain()
        self._interceptor.close()
        await self._silence(min(_SILENCE_WAIT_MAX_S, grace_s / 3))
        await self._delivered(min(_DELIVERY_WAIT_MAX_S, grace_s / 3))
        stopping = asyncio.create_task(
            self._server.stop(max(0.0, end - asyncio.get_running_loop().time()))
        )
        await asyncio.sleep(_LOOK_S)
        self._interceptor.turn_away()
        await stopping

    async def _delivered(self, wait_max_s: float) -> None:
        """Wait until no call that runs may be waiting for the Events service."""
        end = asyncio.get_running_loop().time() + wait_max_s
        while (  # noqa: ASYNC110 - as below: looks, since nobody tells
            self._interceptor.delivering and asyncio.get_running_loop().time() < end
        ):
            await asyncio.sleep(_LOOK_S)

    async def _silence(self, wait_max_s: float) -> None:
        """Wait until no call came in for a while.

        A client whose connection has just grown too old sends its calls over a new one, which takes
        its time; and a process that was held up has calls waiting that it has not seen. So one
        look is not enough.
        """
        end = asyncio.get_running_loop().time() + wait_max_s
        seen, silent = -1, 0
        while silent < _SILENT_LOOKS and asyncio.get_running_loop().time() < end:
            silent = silent + 1 if seen == self._interceptor.arrivals else 0
            seen = self._interceptor.arrivals
            await asyncio.sleep(_LOOK_S)


def stop_requested() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set. Call it inside the running event loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _options(listener: Listener) -> list[tuple[str, int]]:
    if listener.connection_age_s is None:
        return [*OPTIONS]
    return [
        *OPTIONS,
        ("grpc.max_connection_age_ms", round(listener.connection_age_s * 1_000)),
        ("grpc.max_connection_age_grace_ms", round(CONNECTION_GRACE_S * 1_000)),
    ]


def _check_methods(services: Sequence[ServedService]) -> None:
    for service in services:
        for method in service.descriptor.methods:
            name = f"/{service.descriptor.full_name}/{method.name}"
            if name not in METHODS:
                raise ValueError(f"{name} has no policy")
            if method.client_streaming or method.server_streaming:
                raise ValueError(f"{name} is not unary; the layers do not guard streams")

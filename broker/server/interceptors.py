"""One interceptor that puts the layers around every served method, in the designed order."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from structlog.typing import FilteringBoundLogger

from broker.domain.errors import FieldInvalidError, ReplyTooLargeError, Violation
from broker.domain.paging import REPLY_BYTES_MAX
from broker.server.admission import Admission
from broker.server.exchange import Exchange, Layer, Step
from broker.server.guard import Admitted, Authenticated, Deadlines, TokenVerifier
from broker.server.methods import METHODS, READ, Line, is_open
from broker.server.observe import Logged, Measured, Refusing, RequestIds
from broker.telemetry.metrics import Metrics

if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]
else:  # generic for the type checker only
    Handler = grpc.RpcMethodHandler
EFFECT_READS_MAX: Final = 4
"""Reads of the Events service that run at once."""

Continuation = Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]]


class EdgeInterceptor(grpc.aio.ServerInterceptor):
    """Guards every method but those of open services, also one that has no row in ``METHODS``.

    The layers, from the outside: request id, metrics, one log line, errors, deadline, token,
    admission; then the request is parsed, served, and the reply serialized. Nothing of a request is
    parsed before its token was verified. ``arrivals`` counts the calls of every method.
    """

    def __init__(
        self,
        *,
        verifier: TokenVerifier,
        admission: Admission,
        metrics: Metrics,
        log: FilteringBoundLogger,
    ) -> None:
        """Set up the layers once. ``admission`` is the main line; the others are made here."""
        self.arrivals = 0
        self._lines = {
            Line.MAIN: admission,
            Line.EFFECT_READS: Admission(running_max=EFFECT_READS_MAX),
        }
        self._metrics = metrics
        metrics.watch_admission(
            queued=lambda: admission.queued,
            running=lambda: admission.running,
        )
        self._admitted = Admitted(self._lines, metrics)
        self._layers: tuple[Layer, ...] = (
            RequestIds(),
            Measured(metrics),
            Logged(log),
            Refusing(),
            Deadlines(),
            Authenticated(verifier),
            self._admitted,
        )
        self._guarded: dict[str, Handler] = {}

    @property
    def delivering(self) -> int:
        """How many calls run that may be waiting for the Events service."""
        return self._admitted.delivering

    def close(self) -> None:
        """Take no new calls of the main line: they are held until ``turn_away``.

        Reads of receipts go on: calls that run wait for the Events service, which needs them.
        """
        self._lines[Line.MAIN].close()

    def turn_away(self) -> None:
        """Refuse the calls held since ``close``, and all that still come."""
        for line in self._lines.values():
            line.close()
            line.turn_away()

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        """Return the guarded handler of a method; it is made once.

        gRPC itself answers a method that is not served.
        """
        self.arrivals += 1
        method = handler_call_details.method
        guarded = self._guarded.get(method)
        if guarded is not None:
            return guarded
        handler = await continuation(handler_call_details)
        if handler is None:
            self._metrics.method_unknown()
            return None
        if is_open(method):
            return handler
        guarded = self._guarded[method] = _guard(method, handler, self._layers)
        return guarded


def _guard(method: str, handler: Handler, layers: Sequence[Layer]) -> Handler:
    step: Step = partial(
        _serve, handler.request_deserializer, handler.unary_unary, handler.response_serializer
    )
    for layer in reversed(layers):
        step = partial(layer, step)
    policy = METHODS.get(method, READ)

    async def serve(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return await step(Exchange(method, policy, request, context))

    # Without (de)serializers gRPC hands over bytes and takes bytes.
    return grpc.unary_unary_rpc_method_handler(serve, None, None)


async def _serve(parse: Any, behaviour: Any, serialize: Any, exchange: Exchange) -> bytes:
    """Parse the request, have it served, and serialize the reply."""
    try:
        request = parse(exchange.request)
    except DecodeError as error:
        raise FieldInvalidError(
            (Violation("request", "must be a well-formed message of the method's request type"),)
        ) from error
    reply = await behaviour(request, exchange.context)
    encoded: bytes = serialize(reply, deterministic=True)  # the same bytes for the same reply
    if len(encoded) > REPLY_BYTES_MAX:
        raise ReplyTooLargeError("the reply would be larger than 3 MiB")
    exchange.replayed = getattr(reply, "replayed", None)
    return encoded

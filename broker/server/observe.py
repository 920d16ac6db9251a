"""The outer layers: request id, metrics, one log line, and the one place that refuses calls."""

import asyncio
import time
from typing import Final

import grpc
import uuid_utils
from structlog.typing import FilteringBoundLogger

from broker.domain.errors import BrokerError, OfRunError
from broker.domain.reasons import Reason
from broker.server.errors import refusal_of
from broker.server.exchange import REQUEST_ID_KEY, Exchange, Headers, Step
from broker.server.status import status_of
from broker.telemetry.logs import describe
from broker.telemetry.metrics import Metrics

PRIVATE: Final = (("cache-control", "no-store"),)
"""What keeps those along the way from storing the replies of a private method (004-81)."""

_OPERATORS_FAULT = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.DATA_LOSS})


class RequestIds:
    """Takes the caller's request id or makes one, and gives it back in the trailers.

    Trailers go out with the reply; initial metadata would be one more thing to send in each call.
    Only what keeps a private reply from being stored has to stand before it.
    """

    async def __call__(self, proceed: Step, exchange: Exchange) -> bytes:
        """Serve the call under an id."""
        exchange.headers = Headers.read(exchange.context.invocation_metadata())
        exchange.request_id = exchange.headers.request_id() or str(uuid_utils.uuid7())
        reply = await proceed(exchange)
        exchange.context.set_trailing_metadata(((REQUEST_ID_KEY, exchange.request_id),))
        if exchange.policy.private:
            await exchange.context.send_initial_metadata(PRIVATE)
        return reply


class Measured:
    """Counts and times calls."""

    def __init__(self, metrics: Metrics) -> None:
        """Count with ``metrics``."""
        self._metrics = metrics

    async def __call__(self, proceed: Step, exchange: Exchange) -> bytes:
        """Serve the call and record what became of it."""
        exchange.started = time.perf_counter()
        self._metrics.call_started()
        try:
            return await proceed(exchange)
        finally:
            self._metrics.call_finished(
                exchange.method,
                exchange.code.name,
                exchange.reason or "",
                time.perf_counter() - exchange.started,
            )


class Logged:
    """Writes the one line of a call."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        """Write to ``log``."""
        self._log = log

    async def __call__(self, proceed: Step, exchange: Exchange) -> bytes:
        """Serve the call and write its line."""
        try:
            return await proceed(exchange)
        finally:
            write = self._log.error if exchange.code in _OPERATORS_FAULT else self._log.info
            write(
                "call",
                method=exchange.method,
                code=exchange.code.name,
                reason=exchange.reason,
                duration_ms=round((time.perf_counter() - exchange.started) * 1_000, 3),
                request_id=exchange.request_id,
                replayed=exchange.replayed,
                **exchange.fault,
            )


class Refusing:
    """Turns every error into a status. Nothing else ends a call with an error (004-102)."""

    async def __call__(self, proceed: Step, exchange: Exchange) -> bytes:
        """Serve the call, or abort it with what the table says."""
        try:
            return await proceed(exchange)
        except asyncio.CancelledError:
            _note_caller_gone(exchange)
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets a status
            refusal = refusal_of(error)
            cause = error.cause if isinstance(error, OfRunError) else error
            if not isinstance(cause, BrokerError):
                exchange.fault = describe(cause)
        exchange.reason = refusal.reason
        exchange.code, message, trailers = status_of(refusal, exchange.request_id)
        if exchange.policy.private:
            trailers = (*trailers, *PRIVATE)
        return await exchange.context.abort(exchange.code, message, trailers)


def _note_caller_gone(exchange: Exchange) -> None:
    """Note for the log why nobody waits any more; no status can be sent."""
    now = asyncio.get_running_loop().time()
    if exchange.deadline is not None and now >= exchange.deadline:
        exchange.code = grpc.StatusCode.DEADLINE_EXCEEDED
        exchange.reason = Reason.DEADLINE_EXCEEDED
    else:
        exchange.code, exchange.reason = grpc.StatusCode.CANCELLED, Reason.CANCELLED

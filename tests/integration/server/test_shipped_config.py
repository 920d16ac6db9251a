"""What gRPC's own client does with the shipped service config: what it tries again, what not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
import pytest

from broker.api.v1 import record_service_pb2 as pb
from broker.domain.call import Call
from broker.domain.errors import (
    OverloadedError,
    RecordNotFoundError,
    StaleRevisionError,
)
from providers.errors import OutcomeUnknownError
from tests.fixtures.shipped_config import OPTIONS
from tests.integration.server.edge import AUTHORIZED, StubRecords, error_info, refused, running

GET = pb.GetRecordRequest(record_id="r-1")
METHOD = "/broker.api.v1.RecordService/GetRecord"
ATTEMPTS_MAX = 4


def failing(error: Callable[[], Exception], times: int) -> StubRecords:
    """Make use cases that fail so many times before they answer."""
    left = iter(range(times))

    async def fail(_call: Call, _request: Any) -> None:
        if next(left, None) is not None:
            raise error()

    return StubRecords(fail)


# -------------------- the broker's edge


@pytest.mark.parametrize(
    "error",
    [
        lambda: OverloadedError("too many calls", metadata={"limit": "queue"}),
        lambda: OutcomeUnknownError("the reply was lost"),
    ],
    ids=["with_pushback", "without_pushback"],
)
async def test_unavailable_is_tried_again(error: Callable[[], Exception]) -> None:
    """OVERLOADED names its own delay in a trailer, COMMIT_OUTCOME_UNKNOWN leaves it to the client.

    The attempts carry one request; of a write that is one idempotency key.
    """
    records = failing(error, ATTEMPTS_MAX - 1)
    async with running(records, channel_options=OPTIONS) as edge:
        reply = await edge.stub.GetRecord(GET, metadata=AUTHORIZED)
        assert reply.record.record_id == "r-1"
        assert [request.record_id for _, request in records.calls] == ["r-1"] * ATTEMPTS_MAX


async def test_after_four_attempts_the_caller_is_told() -> None:
    records = failing(lambda: OverloadedError("too many calls", metadata={"limit": "queue"}), 99)
    async with running(records, channel_options=OPTIONS) as edge:
        error = await refused(edge.stub.GetRecord(GET, metadata=AUTHORIZED))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert error_info(error).reason == "OVERLOADED"
        assert len(records.calls) == ATTEMPTS_MAX


@pytest.mark.parametrize(
    "error",
    [lambda: StaleRevisionError(3), RecordNotFoundError, lambda: RuntimeError("a bug")],
    ids=["ABORTED", "NOT_FOUND", "INTERNAL"],
)
async def test_nothing_else_is_tried_again(error: Callable[[], Exception]) -> None:
    records = failing(error, 1)
    async with running(records, channel_options=OPTIONS) as edge:
        await refused(edge.stub.GetRecord(GET, metadata=AUTHORIZED))
        assert len(records.calls) == 1


# -------------------- a server of the test's own


Serve = Callable[[grpc.aio.ServicerContext[bytes, bytes]], Awaitable[bytes]]


@dataclass
class Own:
    """A server that serves every method with one function, and a client of GetRecord."""

    get: Any
    create: Any
    attempts: int = 0
    """How many came."""


@asynccontextmanager
async def own_server(serve: Serve) -> AsyncIterator[Own]:
    """Run a server of bytes with a client that uses the shipped config."""
    server = grpc.aio.server()

    async def handle(_: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        own.attempts += 1
        return await serve(context)

    handlers: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(handle) for name in ("GetRecord", "CreateRecord")
    }
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("broker.api.v1.RecordService", handlers),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS) as channel:
        create: Any = channel.unary_unary("/broker.api.v1.RecordService/CreateRecord")
        own = Own(channel.unary_unary(METHOD), create)
        yield own
    await server.stop(None)


async def test_once_success_metadata_came_nothing_is_tried_again() -> None:
    async def begin_and_fail(context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        await context.send_initial_metadata((("x-request-id", "mine"),))
        await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    async with own_server(begin_and_fail) as own:
        error = await refused(own.get(b""))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert own.attempts == 1


async def test_a_call_without_a_deadline_ends_at_its_methods() -> None:
    """A read and a write that are never answered: the read ends first, by its own deadline.

    gRPC's core ends such calls about a second early (grpc/grpc#40633) and tells the server no
    deadline; that one clamps every call by the same table.
    """

    async def never(_context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with own_server(never) as own:
        write = own.create(b"")
        error = await refused(own.get(b""))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert not write.done()
        write.cancel()


async def test_a_server_that_only_fails_is_not_called_four_times_as_often() -> None:
    """The retry throttle: half of its 100 tokens, and there are no more retries."""

    async def fail(context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    async with own_server(fail) as own:
        await asyncio.gather(*(refused(own.get(b"")) for _ in range(60)))
        assert 60 <= own.attempts < 60 * ATTEMPTS_MAX
        own.attempts = 0
        await refused(own.get(b""))
        assert own.attempts == 1

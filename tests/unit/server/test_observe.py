"""The outer layers, each by itself: request ids, errors, the line of a call."""

import asyncio

import grpc
import pytest
from structlog.testing import capture_logs

from broker.domain.errors import OfRunError, RecordNotFoundError
from broker.domain.reasons import Reason
from broker.server.exchange import Exchange
from broker.server.observe import Logged, Refusing, RequestIds
from broker.telemetry.logs import logger
from providers.errors import ProviderUnavailableError
from tests.unit.server.calls import AbortedError, FakeContext, answer, exchange

# -------------------- request ids


@pytest.mark.parametrize("given", ["a", "A-z.0_9:", "x" * 128])
async def test_a_well_formed_request_id_is_kept(given: str) -> None:
    context = FakeContext(("x-request-id", given))
    assert await RequestIds()(answer, exchange(context)) == b"reply"
    assert context.trailing == (("x-request-id", given),)
    assert context.initial is None


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("x-request-id", ""),),
        (("x-request-id", "x" * 129),),
        (("x-request-id", "a b"),),
        (("x-request-id", "é"),),
        (("x-request-id", "a\n"),),
        (("x-request-id", "a"), ("x-request-id", "a")),
        (("x-request-id-bin", b"a"),),
    ],
)
async def test_any_other_request_id_is_replaced(metadata: tuple[tuple[str, str], ...]) -> None:
    first, second = FakeContext(*metadata), FakeContext(*metadata)
    for context in (first, second):
        await RequestIds()(answer, exchange(context))
    made = {context.trailing[0][1] for context in (first, second)}
    assert len(made) == 2
    assert all(len(value) == 36 and value[14] == "7" for value in made)


async def test_a_refused_call_sends_no_initial_metadata() -> None:
    async def refuse(_exchange: Exchange) -> bytes:
        raise AbortedError

    context = FakeContext()
    with pytest.raises(AbortedError):
        await RequestIds()(refuse, exchange(context))
    assert context.initial is None


# -------------------- errors


async def test_an_error_becomes_a_status_and_is_noted() -> None:
    async def fail(_exchange: Exchange) -> bytes:
        raise RecordNotFoundError

    context = FakeContext()
    call = exchange(context)
    with pytest.raises(AbortedError):
        await Refusing()(fail, call)
    assert context.aborted is not None
    assert context.aborted[0] is grpc.StatusCode.NOT_FOUND
    assert (call.code, call.reason) == (grpc.StatusCode.NOT_FOUND, Reason.RECORD_NOT_FOUND)
    assert call.fault == {}


async def test_an_unexpected_error_is_described_by_type_and_place_only() -> None:
    async def fail(_exchange: Exchange) -> bytes:
        try:
            raise ConnectionError("canary-cause")
        except ConnectionError as error:
            raise ProviderUnavailableError("canary-text") from error

    context = FakeContext()
    call = exchange(context)
    with pytest.raises(AbortedError):
        await Refusing()(fail, call)
    assert call.fault["error_type"] == "ProviderUnavailableError from ConnectionError"
    assert "canary" not in f"{call.fault}{context.aborted}"


@pytest.mark.parametrize(
    ("cause", "described"),
    [(ProviderUnavailableError("canary"), "ProviderUnavailableError"), (RecordNotFoundError(), "")],
)
async def test_an_error_of_a_run_is_described_as_its_cause(
    cause: Exception, described: str
) -> None:
    async def fail(_exchange: Exchange) -> bytes:
        raise OfRunError("canary-run", cause)

    call = exchange(FakeContext())
    with pytest.raises(AbortedError):
        await Refusing()(fail, call)
    assert call.fault.get("error_type", "") == described
    assert "canary" not in str(call.fault)


async def test_a_caller_that_goes_away_is_noted_and_nothing_is_sent() -> None:
    async def hang(_exchange: Exchange) -> bytes:
        await asyncio.Event().wait()
        return b""

    context = FakeContext()
    call = exchange(context)
    task = asyncio.ensure_future(Refusing()(hang, call))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (call.code, call.reason) == (grpc.StatusCode.CANCELLED, Reason.CANCELLED)
    assert context.aborted is None


async def test_the_line_of_a_call_holds_nothing_else() -> None:
    call = exchange(FakeContext())
    call.request_id, call.replayed = "id", True
    with capture_logs() as lines:
        await Logged(logger("edge"))(answer, call)
    (line,) = lines
    assert set(line) == {
        *("event", "log_level", "component", "method", "code", "reason"),
        *("duration_ms", "request_id", "replayed"),
    }

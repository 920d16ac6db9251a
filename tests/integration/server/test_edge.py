"""The edge over a real connection: ids, tokens, statuses, and what never leaves it."""

import importlib
import pkgutil
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_status import rpc_status

import broker.api.v1
from broker.api.v1 import record_service_pb2 as pb
from broker.domain.call import Call
from broker.domain.errors import RecordNotFoundError, StaleRevisionError
from broker.domain.paging import REPLY_BYTES_MAX
from broker.server.methods import METHODS
from providers.errors import OutcomeUnknownError, ProviderUnavailableError
from tests.integration.server.edge import (
    AUTHORIZED,
    BEARER,
    CANARY,
    StubRecords,
    error_info,
    refused,
    revision,
    running,
    until,
)

SERVICE = pb.DESCRIPTOR.services_by_name["RecordService"]
GET = pb.GetRecordRequest(record_id="r-1")


# -------------------- replies, ids, tokens


async def test_a_reply_carries_the_request_id_and_the_caller_reaches_the_use_case() -> None:
    async with running() as edge:
        call = edge.stub.GetRecord(GET, metadata=(*AUTHORIZED, ("x-request-id", "mine-1")))
        assert (await call).record.record_id == "r-1"
        assert dict(await call.trailing_metadata()) == {"x-request-id": "mine-1"}
        assert not await call.initial_metadata()
        ((seen, request),) = edge.records.calls
        assert (seen.request_id, seen.caller.bearer) == ("mine-1", BEARER)
        assert request.record_id == "r-1"


async def test_an_error_carries_the_request_id_in_its_trailers_only() -> None:
    async with running() as edge:
        call = edge.stub.GetRecord(GET, metadata=(("x-request-id", "mine-2"),))
        error = await refused(call)
        assert dict(error.trailing_metadata() or ())["x-request-id"] == "mine-2"
        assert error_info(error).metadata["request_id"] == "mine-2"
        assert not error.initial_metadata()


@pytest.mark.parametrize("method", [method.name for method in SERVICE.methods])
async def test_nobody_is_served_without_a_token(method: str) -> None:
    async with running() as edge:
        for metadata in ((), (*AUTHORIZED, *AUTHORIZED), (("authorization-bin", b"x"),)):
            call = edge.raw(f"/{SERVICE.full_name}/{method}")
            error = await refused(call(b"\xff not a message", metadata=metadata))
            assert error.code() is grpc.StatusCode.UNAUTHENTICATED
            assert error_info(error).reason == "TOKEN_INVALID"
        assert edge.records.calls == []


def test_every_method_has_a_row() -> None:
    """004-05: every RPC of every service that the API describes, and no other."""
    names = [module.name for module in pkgutil.iter_modules(broker.api.v1.__path__)]
    files = [
        importlib.import_module(f"broker.api.v1.{name}")
        for name in names
        if name.endswith("_service_pb2")
    ]
    assert set(METHODS) == {
        f"/{service.full_name}/{method.name}"
        for file in files
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


async def test_a_request_that_does_not_parse_is_an_invalid_argument() -> None:
    async with running() as edge:
        call = edge.raw(f"/{SERVICE.full_name}/GetRecord")
        error = await refused(call(b"\xff\xff\xff", metadata=AUTHORIZED))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert error_info(error).reason == "FIELD_INVALID"


async def test_every_method_reaches_its_use_case() -> None:
    service = pb.DESCRIPTOR.services_by_name["RecordService"]
    async with running() as edge:
        for method in service.methods:
            request = getattr(pb, f"{method.name}Request")()
            await getattr(edge.stub, method.name)(request, metadata=AUTHORIZED)
        assert len(edge.records.calls) == len(service.methods)
        asked = {type(request).__name__ for _, request in edge.records.calls}
        plain = {"ArchiveRecord", "UnarchiveRecord", "ApproveRecord", "ReopenRecord"}
        assert asked == {each.name for each in service.methods} - plain | {"ChangeRecord"}
        await until(lambda: len(edge.lines()) == len(service.methods))
        replayed = {line["method"].rpartition("/")[2]: line["replayed"] for line in edge.lines()}
        assert (replayed["CreateRecord"], replayed["UpdateRecord"]) == (True, False)
        assert replayed["GetRecord"] is None


# -------------------- statuses


async def test_details_decode_with_grpc_status() -> None:
    async def stale(_call: Call, _request: Any) -> None:
        raise StaleRevisionError(4)

    async with running(StubRecords(stale)) as edge:
        error = await refused(edge.stub.UpdateRecord(pb.UpdateRecordRequest(), metadata=AUTHORIZED))
        assert rpc_status.from_call(error) is not None  # type: ignore[arg-type]
        assert error.code() is grpc.StatusCode.ABORTED
        assert error_info(error).metadata["current_revision"] == "4"


async def test_absent_records_are_refused_in_the_same_words() -> None:
    async def absent(_call: Call, _request: Any) -> None:
        raise RecordNotFoundError

    async with running(StubRecords(absent)) as edge:
        metadata = (*AUTHORIZED, ("x-request-id", "same"))
        errors = [await refused(edge.stub.GetRecord(GET, metadata=metadata)) for _ in range(2)]
        first, second = [(e.code(), e.details(), e.trailing_metadata()) for e in errors]
        assert first == second


async def test_an_unavailable_provider_is_retried_by_the_client_itself() -> None:
    async def fail_once(_call: Call, _request: Any) -> None:
        if len(records.calls) == 1:
            raise ProviderUnavailableError("down")

    records = StubRecords(fail_once)
    retries = (
        '{"methodConfig":[{"name":[{"service":"broker.api.v1.RecordService"}],"retryPolicy":'
        '{"maxAttempts":3,"initialBackoff":"0.01s","maxBackoff":"0.01s","backoffMultiplier":1,'
        '"retryableStatusCodes":["UNAVAILABLE"]}}]}'
    )
    async with running(records, channel_options=(("grpc.service_config", retries),)) as edge:
        assert (await edge.stub.GetRecord(GET, metadata=AUTHORIZED)).record.record_id == "r-1"
        assert len(records.calls) == 2


async def test_an_unknown_outcome_says_so() -> None:
    async def lost(_call: Call, _request: Any) -> None:
        raise OutcomeUnknownError("lost")

    async with running(StubRecords(lost)) as edge:
        error = await refused(edge.stub.UpdateRecord(pb.UpdateRecordRequest(), metadata=AUTHORIZED))
        info = error_info(error)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert (info.reason, info.metadata["outcome"]) == ("COMMIT_OUTCOME_UNKNOWN", "unknown")


async def test_a_reply_that_is_too_large_is_refused() -> None:
    big = (revision("x" * (REPLY_BYTES_MAX // 2)),) * 2
    async with running(StubRecords(listed=big)) as edge:
        error = await refused(
            edge.stub.ListRevisions(pb.ListRevisionsRequest(), metadata=AUTHORIZED)
        )
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert error_info(error).reason == "REPLY_TOO_LARGE"
        edge.records.listed = big[:1]
        page = await edge.stub.ListRevisions(pb.ListRevisionsRequest(), metadata=AUTHORIZED)
        assert len(page.revisions) == 1


# -------------------- redaction


async def test_no_canary_leaves_through_errors_or_logs() -> None:
    async def fail(_call: Call, request: Any) -> None:
        raise ValueError(f"{CANARY} {request} {BEARER}")

    async with running(StubRecords(fail)) as edge:
        request = pb.CreateRecordRequest(idempotency_key=CANARY, content=CANARY, title=CANARY)
        request.scope.project_id = CANARY
        error = await refused(edge.stub.CreateRecord(request, metadata=AUTHORIZED))
        bad_token = (("authorization", f"Basic {CANARY}"), ("x-tenant", CANARY))
        other = await refused(edge.stub.CreateRecord(request, metadata=bad_token))
        seen = f"{error}{error.trailing_metadata()}{other}{other.trailing_metadata()}"
        await until(lambda: len(edge.lines()) == 2)
        logged = edge.log.getvalue().decode()
        assert error_info(error).reason == "INTERNAL"
        for secret in (CANARY, "canary-token-body", "canary-signature"):
            assert secret not in seen
            assert secret not in logged
        first, _ = edge.lines()
        assert first["error_type"] == "ValueError"
        assert first["level"] == "error"

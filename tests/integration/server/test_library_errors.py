"""Errors that gRPC itself makes. They carry no ErrorInfo; the README lists them.

=====================================  ==================  =====================================
case                                   code                what the caller can do
=====================================  ==================  =====================================
a method or service that is not there  UNIMPLEMENTED       look at the version of both sides
a request of more than 2 MiB           RESOURCE_EXHAUSTED  send less; a retry cannot help
metadata of more than 64 KiB           RESOURCE_EXHAUSTED  send less; a retry cannot help
the caller's own deadline passed       DEADLINE_EXCEEDED   made by the client, outcome unknown
the caller cancelled                   CANCELLED           made by the client, outcome unknown
no connection, or the server is gone   UNAVAILABLE         retry; writes with the same key
cut off when a drain's grace is over   UNAVAILABLE,        retry; writes with the same key
                                       CANCELLED
an unknown name asked of health        NOT_FOUND           ask for a service that is served
=====================================  ==================  =====================================
"""

from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from broker.api.v1 import record_service_pb2 as pb
from broker.server.app import METADATA_BYTES_MAX, REQUEST_BYTES_MAX
from tests.integration.server.edge import AUTHORIZED, StubRecords, refused, running, until
from tests.integration.server.test_time_and_load import GET, hang

DETAILS = "grpc-status-details-bin"


@pytest.mark.parametrize(
    "method", ["/broker.api.v1.RecordService/NoSuchMethod", "/no.such.Service/Get"]
)
async def test_an_unknown_method_is_unimplemented_and_counted_without_its_name(method: str) -> None:
    async with running() as edge:
        error = await refused(edge.raw(method)(b"", metadata=AUTHORIZED))
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        assert DETAILS not in dict(error.trailing_metadata() or ())
        labels = {"method": "unknown", "code": "UNIMPLEMENTED", "reason": ""}
        counted = edge.metrics.registry.get_sample_value("broker_calls_total", labels)
        assert counted == 1


async def test_a_request_beyond_the_limit_is_refused_unread_and_one_at_the_limit_is_read() -> None:
    def sized(size: int) -> pb.CreateRecordRequest:
        request = pb.CreateRecordRequest(content="x" * (size - 16))
        request.title = "y" * (size - request.ByteSize() - 2)
        assert request.ByteSize() == size
        return request

    async with running() as edge:
        await edge.stub.CreateRecord(sized(REQUEST_BYTES_MAX), metadata=AUTHORIZED)
        assert len(edge.records.calls) == 1
        error = await refused(
            edge.stub.CreateRecord(sized(REQUEST_BYTES_MAX + 1), metadata=AUTHORIZED)
        )
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert len(edge.records.calls) == 1


async def test_metadata_beyond_the_limit_is_always_refused_and_below_it_never() -> None:
    async with running() as edge:
        for _ in range(20):
            below = (*AUTHORIZED, ("x-filler", "x" * (METADATA_BYTES_MAX - 2_048)))
            await edge.stub.GetRecord(GET, metadata=below)
        for _ in range(20):
            beyond = (*AUTHORIZED, ("x-filler", "x" * METADATA_BYTES_MAX))
            error = await refused(edge.stub.GetRecord(GET, metadata=beyond))
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert len(edge.records.calls) == 20


async def test_a_callers_own_deadline_is_the_clients_error_and_the_server_notes_it() -> None:
    async with running(StubRecords(hang)) as edge:
        error = await refused(edge.stub.GetRecord(GET, metadata=AUTHORIZED, timeout=0.05))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: edge.lines() != [])
        (line,) = edge.lines()
        assert line["reason"] in {"DEADLINE_EXCEEDED", "CANCELLED"}


async def test_health_is_open_and_knows_its_services() -> None:
    async with running() as edge:
        health: Any = health_pb2_grpc.HealthStub(edge.channel)
        for name in ("", "broker.api.v1.RecordService"):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        error = await refused(health.Check(health_pb2.HealthCheckRequest(service="no.such")))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        edge.server.ready(serving=False)
        answer = await health.Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING

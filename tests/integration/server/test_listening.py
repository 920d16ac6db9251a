"""What the server listens with, and what it refuses to serve."""

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from broker.api.v1 import record_service_pb2 as pb
from broker.server.admission import Admission
from broker.server.app import EdgeServer, Listener, ServedService
from broker.server.interceptors import EdgeInterceptor
from broker.telemetry.logs import logger
from broker.telemetry.metrics import Metrics
from tests.integration.server.edge import AUTHORIZED, StubVerifier, refused, running

GET = pb.GetRecordRequest(record_id="r-1")
SETTINGS_FRAME = b"\0\0\0\4\0\0\0\0\0"
PING, GOAWAY = 6, 7
"""Types of HTTP/2 frames."""


async def test_with_credentials_only_tls_is_served() -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    server = grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
    client = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
    async with running(credentials=(server, client)) as edge:
        reply = await edge.stub.GetRecord(GET, metadata=AUTHORIZED)
        assert reply.record.record_id == "r-1"
        target = f"127.0.0.1:{edge.port}"
        async with grpc.aio.insecure_channel(target) as plain:
            get: Any = plain.unary_unary("/broker.api.v1.RecordService/GetRecord")
            error = await refused(get(GET.SerializeToString(), metadata=AUTHORIZED))
            assert error.code() is grpc.StatusCode.UNAVAILABLE


async def test_several_servers_may_share_a_port() -> None:
    async with running() as edge:
        second = server_for(edge.port)
        assert await second.start() == edge.port
        await second.drain(1)


async def test_a_method_without_a_row_keeps_the_server_from_starting() -> None:
    descriptor: Any = health_pb2.DESCRIPTOR.services_by_name["Health"]
    health = ServedService(
        descriptor,
        health_pb2_grpc.add_HealthServicer_to_server,
        object(),
    )
    with pytest.raises(ValueError, match="has no policy"):
        server_for(0, health)


def server_for(port: int, *services: ServedService) -> EdgeServer:
    """Make a server that is not started."""
    interceptor = EdgeInterceptor(
        verifier=StubVerifier(), admission=Admission(), metrics=Metrics(), log=logger("edge")
    )
    listener = Listener(address=f"127.0.0.1:{port}")
    return EdgeServer(services=services, interceptor=interceptor, listener=listener)


async def test_a_connection_that_is_old_enough_is_told_to_go_and_no_call_is_lost() -> None:
    """A client that calls without pause sees nothing of it but another connection."""
    async with running(connection_age_s=1.0) as edge:
        old = [asyncio.create_task(goodbye(edge.port)) for _ in range(3)]
        while not all(task.done() for task in old):
            await edge.stub.GetRecord(GET, metadata=AUTHORIZED)
        assert [task.result() for task in old] == [True] * 3


async def goodbye(port: int) -> bool:
    """Open an HTTP/2 connection and wait for its end; tell whether it was announced."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS_FRAME)
    told = False
    while head := await reader.read(9):
        head += await reader.readexactly(9 - len(head))
        body = await reader.readexactly(int.from_bytes(head[:3]))
        told = told or head[3] == GOAWAY
        if head[3] == PING and not head[4]:
            writer.write(head[:4] + b"\x01" + head[5:] + body)
    writer.close()
    return told

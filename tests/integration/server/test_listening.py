"""What the server listens with, and what it refuses to serve."""

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

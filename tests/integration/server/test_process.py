"""The edge as a process: draining on SIGTERM, and what other people's clients see."""

import asyncio
import base64
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_health.v1 import health_pb2, health_pb2_grpc

from broker.api.v1 import record_service_pb2 as pb
from broker.api.v1.record_service_pb2_grpc import RecordServiceStub
from tests.fixtures.tcp_proxy import TcpProxy
from tests.integration.server.edge import AUTHORIZED, BEARER
from tests.integration.server.serving import GRACE_S

ROOT = Path(__file__).parents[3]
TOOLS = Path(sys.executable).parent
GET = pb.GetRecordRequest(record_id="r-1")


@asynccontextmanager
async def process(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """Start the edge in a process; yield it and its port."""
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.integration.server.serving", *options),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert started.stdout is not None
        yield started, int(await started.stdout.readline())
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def test_a_drain_finishes_running_calls_and_then_the_process_ends() -> None:
    async with (
        process("--slow") as (server, port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        assert server.stdout is not None
        stub: Any = RecordServiceStub(channel)
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        calls = [stub.GetRecord(GET, metadata=AUTHORIZED, timeout=20) for _ in range(12)]
        for _ in calls:
            assert await server.stdout.readline() == b"running\n"
        server.send_signal(signal.SIGTERM)
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert [(await call).record.record_id for call in calls] == ["r-1"] * 12
        assert await watch.read() is grpc.aio.EOF  # a watcher does not hold up the drain
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.GetRecord(GET, metadata=AUTHORIZED, timeout=20)
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        async with asyncio.timeout(GRACE_S / 2):
            assert await server.stdout.readline() == b"drained\n"
            assert await server.wait() == 0


async def test_a_drain_under_load_loses_no_reply() -> None:
    """Clients call without pause; whatever is not answered is UNAVAILABLE, which they may retry."""
    codes: set[grpc.StatusCode] = set()
    served = asyncio.Event()

    async def call_until_gone(stub: Any) -> None:
        while True:
            try:
                await stub.GetRecord(GET, metadata=AUTHORIZED, timeout=20)
                served.set()
            except grpc.aio.AioRpcError as error:
                codes.add(error.code())
                if "connect" in (error.details() or "") or codes != {grpc.StatusCode.UNAVAILABLE}:
                    return

    async with (
        process() as (server, port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        stub = RecordServiceStub(channel)
        clients = [asyncio.create_task(call_until_gone(stub)) for _ in range(32)]
        await served.wait()
        server.send_signal(signal.SIGTERM)
        await asyncio.gather(*clients)
        assert await server.wait() == 0
    assert codes == {grpc.StatusCode.UNAVAILABLE}


async def test_a_call_that_comes_while_a_drain_begins_is_not_cancelled() -> None:
    """It is UNAVAILABLE, which a client may retry, though the client does not know of the drain."""
    async with (
        process() as (server, port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as near,
    ):
        proxy = TcpProxy(("127.0.0.1", port))
        try:
            async with grpc.aio.insecure_channel(proxy.address) as far:
                stub: Any = RecordServiceStub(far)
                health: Any = health_pb2_grpc.HealthStub(near)
                await stub.GetRecord(GET, metadata=AUTHORIZED, timeout=20)
                watch = cast("Any", health).Watch(health_pb2.HealthCheckRequest())
                assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
                proxy.delay(1.0)
                server.send_signal(signal.SIGTERM)
                assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
                await asyncio.sleep(0.15)
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await stub.GetRecord(GET, metadata=AUTHORIZED, timeout=20)
                assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        finally:
            proxy.stop()


# -------------------- other clients


def tool(name: str) -> str:
    """Return the path of a client that belongs to the dev extra."""
    path = TOOLS / name
    assert path.exists(), f"{name} is missing: it belongs to the dev extra"
    return str(path)


async def run(*command: str) -> tuple[int, str]:
    """Run a tool; return its exit code and all it wrote."""
    started = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await started.communicate()
    assert started.returncode is not None
    return started.returncode, output.decode()


async def test_grpcurl_explains_the_service_and_decodes_the_details_of_errors() -> None:
    grpcurl = tool("grpcurl")
    async with process("--reflect") as (_, port):
        target = f"127.0.0.1:{port}"
        code, listed = await run(grpcurl, "-plaintext", target, "list")
        assert code == 0
        assert {"broker.api.v1.RecordService", "grpc.health.v1.Health"} <= set(listed.split())
        method = "broker.api.v1.RecordService/GetRecord"
        code, output = await run(
            *(grpcurl, "-plaintext", "-format-error", "-H", f"authorization: {BEARER}"),
            *("-H", "x-request-id: mine-3", "-d", '{"record_id": "stale"}', target, method),
        )
        error = json.loads(output[output.index("{") :])
        assert code == 64 + grpc.StatusCode.ABORTED.value[0]
        (info,) = error["details"]
        assert info["@type"].endswith("/google.rpc.ErrorInfo")
        assert info["reason"] == "REVISION_STALE"
        assert info["metadata"] == {"current_revision": "3", "request_id": "mine-3"}


async def test_buf_curl_works_through_reflection() -> None:
    async with process("--reflect") as (_, port):
        url = f"http://127.0.0.1:{port}/broker.api.v1.RecordService/GetRecord"
        buf = (tool("buf"), "curl", "--protocol", "grpc", "--http2-prior-knowledge")
        head = ("-H", f"authorization: {BEARER}", "-d")
        code, output = await run(*buf, *head, '{"recordId": "r-1"}', url)
        assert code == 0, output
        assert json.loads(output)["record"]["recordId"] == "r-1"
        code, output = await run(*buf, *head, '{"recordId": "stale"}', url)
        assert code != 0
        (detail,) = json.loads(output)["details"]
        assert detail["type"] == "google.rpc.ErrorInfo"
        encoded = detail["value"]
        padded = encoded + "=" * (-len(encoded) % 4)
        assert ErrorInfo.FromString(base64.b64decode(padded)).reason == "REVISION_STALE"

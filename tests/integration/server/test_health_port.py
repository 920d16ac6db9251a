"""The server of health alone: it shows what it is told, as long as it is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from broker.server import health_port
from broker.server.health_port import HealthPort

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def shown(*names: str) -> AsyncIterator[tuple[HealthPort, Any]]:
    """Run a health port; give it and a client."""
    port = HealthPort("127.0.0.1:0", names)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{await port.start()}") as channel:
        yield port, health_pb2_grpc.HealthStub(channel)
    await port.stop()


async def test_names_are_told_apart() -> None:
    async with shown("live", "provider/a") as (port, client):

        async def now(name: str) -> int:
            return int((await client.Check(health_pb2.HealthCheckRequest(service=name))).status)

        assert [await now(name) for name in ("", "live", "provider/a")] == [NOT_SERVING] * 3
        port.tell({"live": True, "provider/a": True, "provider/unknown": True})
        assert [await now(name) for name in ("", "live", "provider/a")] == [
            NOT_SERVING,
            SERVING,
            SERVING,
        ]
        port.tell({"": True})
        assert [await now(name) for name in ("", "live", "provider/a")] == [
            SERVING,
            NOT_SERVING,
            NOT_SERVING,
        ]


async def test_nothing_serves_once_the_supervisor_falls_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even ``live``: a supervisor that hangs must be ended by whoever watches it."""
    monkeypatch.setattr(health_port, "STALE_S", 0.05)
    async with shown("live") as (port, client):
        watch = client.Watch(health_pb2.HealthCheckRequest(service="live"))
        assert (await watch.read()).status == NOT_SERVING
        port.tell({"live": True})
        assert (await watch.read()).status == SERVING
        assert (await watch.read()).status == NOT_SERVING
        port.tell({"live": True})
        assert (await watch.read()).status == SERVING
        watch.cancel()

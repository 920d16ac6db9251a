"""``broker serve`` with its secrets in files, probed as the cluster's kubelet would."""

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from broker.devstack.settings import to_toml
from tests.deploy.test_kubernetes import BROKER
from tests.fixtures.broker import BrokerProcess, Stand, free_port

SERVING = health_pb2.HealthCheckResponse.SERVING
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


async def test_probes_find_a_broker_whose_secrets_are_in_files(
    stand: Stand, tmp_path: Path
) -> None:
    health = f"127.0.0.1:{free_port()}"
    given = tomllib.loads(stand.broker.settings_file.read_text())
    given["server"] = {"listen": "127.0.0.1:0", "health_listen": health}
    secret = tmp_path / "runtime-dsn"
    secret.write_text(given["store"].pop("dsn") + "\n")
    given["store"]["dsn_file"] = str(secret)
    for provider in given["providers"]:
        del provider["options"]["dsn"]
        provider["option_files"] = {"dsn": str(secret)}
    file = tmp_path / "broker.toml"
    file.write_text(to_toml(given))
    broker = BrokerProcess(file, tmp_path / "log")
    try:
        broker.start()
        async with grpc.aio.insecure_channel(health) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            for probe in PROBES:
                name = BROKER[probe]["grpc"].get("service", "")
                await serving(stub, name)
        assert broker.stop() == 0
    finally:
        if broker.process is not None and broker.process.poll() is None:
            broker.kill()
    assert "runtime_" not in broker.log()  # neither the role nor its password


async def serving(stub: Any, name: str) -> None:
    """Ask until it serves, like a probe; a test that never sees it runs out of time."""
    while True:
        request = health_pb2.HealthCheckRequest(service=name)
        try:
            reply = await stub.Check(request, timeout=3, wait_for_ready=True)
        except grpc.aio.AioRpcError:
            await asyncio.sleep(0.2)
            continue
        if reply.status == SERVING:
            return
        await asyncio.sleep(0.2)

"""The health port through an outage: live, ready and each provider by itself."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.fixtures.broker import Stand, records
from tests.fixtures.postgres import Database, PostgresBackend
from tests.fixtures.record_requests import create
from tests.integration.workers.crew import (
    NOT_SERVING,
    SERVING,
    Crew,
    crew_of,
    settings_for,
)

WELL = {"live": SERVING, "": SERVING, "provider/native": SERVING, "provider/spare": SERVING}


@pytest.fixture
def apart(postgres_backend: PostgresBackend) -> Iterator[Database]:
    """A database for one provider alone."""
    database = asyncio.run(postgres_backend.database())
    yield database
    asyncio.run(postgres_backend.drop(database))


@pytest.fixture
def two_providers(
    stand: Stand, postgres_database: Database, apart: Database, tmp_path: Path
) -> Iterator[Crew]:
    """Workers whose provider ``native`` has a database apart; ``spare`` shares the broker's own."""
    settings = settings_for(stand, postgres_database)
    (native,) = settings["providers"]
    spare = {**native, "provider_id": "spare"}
    native["options"] = {
        **native["options"],
        "dsn": apart.runtime_dsn,
        "database_name": apart.name,
    }
    settings["providers"].append(spare)
    with crew_of(stand, postgres_database, settings, tmp_path) as running:
        yield running


async def test_an_outage_of_one_provider_is_told_as_what_it_is(
    two_providers: Crew, apart: Database
) -> None:
    """004-101: the processes live, calls should go elsewhere, one provider is away; then back."""
    crew = two_providers
    await crew.health_becomes(WELL)
    admin = apart.admin_dsn.replace(f"/{apart.name}", "/postgres")
    postgres = Database("postgres", "", admin, apart.runtime_role)
    await postgres.fetchval(f"ALTER DATABASE {apart.name} ALLOW_CONNECTIONS false")
    await postgres.fetchval(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1",
        apart.name,
    )
    await crew.health_becomes({**WELL, "": NOT_SERVING, "provider/native": NOT_SERVING})
    assert len(crew.serving()) == 2  # nobody is killed for what others do
    await postgres.fetchval(f"ALTER DATABASE {apart.name} ALLOW_CONNECTIONS true")
    await crew.health_becomes(WELL)
    async with crew.own_channel() as channel:
        await records(channel).CreateRecord(create(crew.project(), "k"), metadata=crew.metadata())
    assert not crew.lines("process_ended")


async def test_whoever_watches_is_told_of_the_drain_and_let_go(
    two_providers: Crew,
) -> None:
    async with aio.insecure_channel(f"127.0.0.1:{two_providers.health_port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        ready = stub.Watch(health_pb2.HealthCheckRequest())
        while (await ready.read()).status != health_pb2.HealthCheckResponse.SERVING:
            continue
        assert await asyncio.to_thread(two_providers.broker.stop) == 0
        assert (await ready.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert await ready.read() is aio.EOF


async def test_nothing_else_is_served_there(crew: Crew) -> None:
    """Neither the broker's services nor names that nobody knows."""
    async with aio.insecure_channel(f"127.0.0.1:{crew.health_port}") as channel:
        call = records(channel).CreateRecord(create(crew.project(), "k"), metadata=crew.metadata())
        assert await call.code() is grpc.StatusCode.UNIMPLEMENTED
        stub: Any = health_pb2_grpc.HealthStub(channel)
        asked = stub.Check(health_pb2.HealthCheckRequest(service="provider/other"))
        assert await asked.code() is grpc.StatusCode.NOT_FOUND

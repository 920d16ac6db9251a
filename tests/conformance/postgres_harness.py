"""PostgreSQL as a backend: a fresh database for each law, reached through a proxy."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from providers.conformance.declaration import MARKER_HAZARDS, Declaration, Hazard, StoreFact
from providers.conformance.harness import Bench, Harness
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, ResourceIdentity
from providers.postgres.negotiate import CAPABILITIES
from providers.postgres.provider import PostgresMemoryProvider
from tests.fixtures.postgres import DSN_VARIABLE, RESOURCE, Database, PostgresBackend
from tests.fixtures.postgres_faults import restart, send
from tests.fixtures.postgres_proxy import PostgresProxy, proxied
from tests.fixtures.process_clock import ProcessClock

OWN_SERVER = frozenset({StoreFact.DURABLE, StoreFact.FREEZABLE})
FOREIGN = OWN_SERVER if os.environ.get(DSN_VARIABLE) else frozenset()

DECLARATION = Declaration(
    backend="postgres",
    capabilities=CAPABILITIES,
    absent_capabilities={},
    facts=frozenset(StoreFact) - FOREIGN,
    absent_facts=dict.fromkeys(FOREIGN, f"the server of {DSN_VARIABLE} is not ours to stop"),
    hazards=MARKER_HAZARDS | {Hazard.SCHEMA, Hazard.RIGHTS, Hazard.INDEX, Hazard.REPLICA},
)

_SPOIL = {
    Hazard.MARKER: "DELETE FROM memory.resource",
    Hazard.IDENTITY: "UPDATE memory.resource SET resource_id = 'another-resource'",
    Hazard.GENERATION: "UPDATE memory.resource SET generation = generation + 1",
    Hazard.SCHEMA: "UPDATE memory.alembic_version SET version_num = '0000'",
    Hazard.RIGHTS: "GRANT DELETE ON memory.records TO {role}",
    Hazard.INDEX: "DROP INDEX memory.records_search_text",
    Hazard.REPLICA: "ALTER DATABASE {name} SET default_transaction_read_only = on",
}
_CORRUPT = """
ALTER DOMAIN memory.record_state DROP CONSTRAINT IF EXISTS record_state_known;
UPDATE memory.records SET state = 'melted'
WHERE tenant_id = '{tenant}' AND project_id = '{project}' AND record_id = '{record}'
"""


class PostgresBench(Bench):
    """One database, and a provider that reaches it through a proxy."""

    def __init__(self, backend: PostgresBackend, database: Database, proxy: PostgresProxy) -> None:
        self._backend = backend
        self._database = database
        self._proxy = proxy
        dsn = proxy.dsn(database.runtime_dsn)
        self._provider = PostgresMemoryProvider(database.options(dsn=dsn))
        self._others: list[PostgresMemoryProvider] = []
        self._clock = ProcessClock("providers.postgres")

    @property
    def declaration(self) -> Declaration:
        return DECLARATION

    @property
    def resource(self) -> ResourceIdentity:
        return RESOURCE

    @property
    def provider(self) -> IMemoryProvider:
        return self._provider

    async def another(self) -> IMemoryProvider:
        self._others.append(PostgresMemoryProvider(self._database.options()))
        return self._others[-1]

    async def restart(self) -> None:
        assert self._backend.server is not None
        await restart(self._backend.server)

    async def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    async def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    async def lose_replies(self, *, to_writes: bool = False) -> None:
        self._proxy.lose_replies()

    async def keep_replies(self) -> None:
        self._proxy.keep_replies()

    def round_trips(self) -> int:
        return self._proxy.round_trips

    async def corrupt(self, project: ProjectKey, record_id: str) -> None:
        await self._execute(
            _CORRUPT.format(tenant=project.tenant_id, project=project.project_id, record=record_id)
        )

    async def skew(self, seconds: float) -> None:
        self._clock.skew(seconds)

    async def spoil(self, hazard: Hazard) -> None:
        names = {"role": self._database.runtime_role, "name": self._database.name}
        await self._execute(_SPOIL[hazard].format(**names))

    async def close(self) -> None:
        """Undo faults and close the providers."""
        self._clock.right()
        if self._backend.server is not None:
            self._signal(signal.SIGCONT)
        for provider in (self._provider, *self._others):
            await provider.close()

    def _signal(self, number: signal.Signals) -> None:
        assert self._backend.server is not None
        send(self._backend.server, number)

    async def _execute(self, sql: str) -> None:
        connection = await asyncpg.connect(self._database.admin_dsn)
        try:
            await connection.execute("SET default_transaction_read_only = off;" + sql)
        finally:
            await connection.close()


class PostgresHarness(Harness):
    """Opens benches on the server of this worker."""

    def __init__(self, backend: PostgresBackend) -> None:
        self._backend = backend

    @property
    def declaration(self) -> Declaration:
        return DECLARATION

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bench]:
        database = await self._backend.database()
        async with proxied(database.runtime_dsn) as proxy:
            bench = PostgresBench(self._backend, database, proxy)
            try:
                yield bench
            finally:
                await bench.close()
        await self._backend.drop(database)


def from_request(request: pytest.FixtureRequest) -> Harness:
    """Make the harness of a test; the server starts with the first."""
    return PostgresHarness(request.getfixturevalue("postgres_backend"))

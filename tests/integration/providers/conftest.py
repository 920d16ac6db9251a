"""What tests of the PostgreSQL adapter share."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from providers.conformance import specimens
from providers.model import ProjectKey, Record
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import Committed
from tests.fixtures.postgres import Database

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0


@pytest.fixture
async def provider(postgres_database: Database) -> AsyncIterator[PostgresMemoryProvider]:
    """A provider on a fresh database."""
    made = PostgresMemoryProvider(postgres_database.options())
    yield made
    await made.close()


@pytest.fixture
async def admin(postgres_database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A superuser's connection to the same database."""
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    yield connection
    await connection.close()


@pytest.fixture
async def lock(admin: asyncpg.Connection) -> AsyncIterator[None]:
    """Holds the head of record r1 while a test runs."""
    await admin.execute("BEGIN")
    await admin.execute("SELECT FROM memory.records WHERE record_id = 'r1' FOR UPDATE")
    yield
    await admin.execute("ROLLBACK")


@pytest.fixture
async def record(provider: PostgresMemoryProvider) -> Record:
    made = specimens.memory("r1")
    write = specimens.create(PROJECT, made)
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    return made

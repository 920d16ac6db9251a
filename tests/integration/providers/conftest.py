"""What tests of the PostgreSQL adapter share."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from providers.postgres.provider import PostgresMemoryProvider
from tests.fixtures.postgres import Database


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

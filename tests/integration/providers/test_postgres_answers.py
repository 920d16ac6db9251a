"""What the server answers when it refuses, and what the caller is told."""

import asyncpg
import pytest

from providers.conformance import specimens
from providers.errors import (
    NegotiationRefusedError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    StorageFullError,
    WriteSetInvalidError,
)
from providers.model import ProjectKey, Record
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import Committed, Contended
from tests.fixtures.postgres import Database

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0


async def test_the_server_gives_up_on_a_lock(
    postgres_database: Database, record: Record, lock: None
) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(lock_ms=100))
    write = specimens.update(PROJECT, record)
    assert await provider.commit(write, timeout=SECONDS) == Contended()
    await provider.close()


async def test_the_server_gives_up_on_a_statement(
    postgres_database: Database, record: Record, lock: None
) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(statement_ms=100))
    with pytest.raises(ProviderTimeoutError):
        await provider.commit(specimens.update(PROJECT, record), timeout=SECONDS)
    await provider.close()


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("53100", StorageFullError),
        ("53200", ProviderUnavailableError),
        ("57014", ProviderTimeoutError),
        ("25006", ProviderUnavailableError),
        ("42501", NegotiationRefusedError),
        ("42703", NegotiationRefusedError),
        ("22003", WriteSetInvalidError),
        ("23514", WriteSetInvalidError),
        ("XX000", ProviderUnavailableError),
    ],
)
async def test_what_the_server_says_is_told_by_its_code(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    state: str,
    wanted: type[ProviderError],
) -> None:
    await _refuse_with(admin, state)
    write = specimens.create(PROJECT, specimens.memory("r1"))
    with pytest.raises(ProviderError) as refused:
        await provider.commit(write, timeout=SECONDS)
    assert type(refused.value) is wanted
    assert isinstance(refused.value.__cause__, asyncpg.PostgresError)
    assert "no text counts" not in str(refused.value)
    await admin.execute("DROP TRIGGER refuse_all ON memory.records")
    assert await provider.commit(write, timeout=SECONDS) == Committed()


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_conflicts_are_tried_again_and_then_told(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, state: str
) -> None:
    await _refuse_with(admin, state)
    write = specimens.create(PROJECT, specimens.memory("r1"))
    assert await provider.commit(write, timeout=SECONDS) == Contended()
    assert await admin.fetchval("SELECT count(*) FROM memory.receipts") == 0


async def _refuse_with(admin: asyncpg.Connection, state: str) -> None:
    await admin.execute(
        f"""
        CREATE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION USING ERRCODE = '{state}', MESSAGE = 'no text counts'; END $$;
        CREATE TRIGGER refuse_all BEFORE INSERT ON memory.records
        FOR EACH ROW EXECUTE FUNCTION refuse_all()
        """
    )

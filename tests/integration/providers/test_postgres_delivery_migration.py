"""The migration that brings delivery: effects that were stored before it can be delivered."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from providers.conformance.delivery_steps import deliver, effect_of, pending
from providers.migration import migrate
from providers.model import ProjectKey
from providers.postgres.migrations import TREE
from providers.postgres.provider import PostgresMemoryProvider
from providers.postgres.resource import init_resource
from tests.fixtures.postgres import RESOURCE, Database, PostgresBackend
from tests.integration.providers.test_postgres_search_migration import upgrade_to

PROJECT = ProjectKey("t1", "p1")
_INSERT = """
INSERT INTO memory.effects
    (tenant_id, project_id, run_id, sequence, receipt_id, receipt, accept_time, delivered)
SELECT 't1', 'p1', 'run-1', n, 'e' || n, '{"record_id": "d1"}', now(), n <= 2
FROM generate_series(1, 4) AS n
"""


@pytest.fixture
async def empty(postgres_backend: PostgresBackend) -> AsyncIterator[Database]:
    database = await postgres_backend.empty_database()
    yield database
    await postgres_backend.drop(database)


async def test_effects_of_before_are_delivered_after(empty: Database) -> None:
    """004-73, 004-101: what was delivered stays so, and what was not comes in its order."""
    await upgrade_to(empty, "0002")
    connection = await asyncpg.connect(empty.admin_dsn)
    await connection.execute(_INSERT)
    await connection.close()
    await migrate(TREE, empty.admin_dsn, empty.runtime_role)
    await init_resource(empty.admin_dsn, RESOURCE.resource_id, RESOURCE.generation)
    provider = PostgresMemoryProvider(empty.options())
    await provider.negotiate(timeout=10)
    waiting = (await pending(provider, PROJECT)).effects
    effects = [each.effect for each in waiting if each.effect is not None]
    assert [each.receipt_id for each in effects] == ["e3", "e4"]
    await deliver(provider, PROJECT, *effects)
    assert (await pending(provider, PROJECT)).effects == ()
    before = await effect_of(provider, PROJECT, effects[0], receipt_id="e1")
    assert (before.delivered, before.acknowledgement) == (True, None)
    await provider.close()

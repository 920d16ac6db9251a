"""The migration that brings recall, on databases with pgvector, without it, and with it later."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from providers.capabilities import Capability
from providers.conformance import specimens
from providers.errors import CapabilityMissingError
from providers.migration import migrate
from providers.model import MemoryFacet, OriginTier, ProjectKey, Sensitivity
from providers.postgres.migrations import TREE
from providers.postgres.negotiate import NO_VECTORS
from providers.postgres.provider import PostgresMemoryProvider
from providers.postgres.resource import init_resource
from providers.recall import Eligible, RecallRequest, TaggedRequest, UnindexedRequest
from providers.requests import Committed
from tests.fixtures.postgres import RESOURCE, Database, PostgresBackend
from tests.integration.providers.test_postgres_search_migration import upgrade_to

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0
NEAR = specimens.vector(3.0, 4.0)
_INSERT = """
INSERT INTO memory.records (
    tenant_id, project_id, record_id, revision, revision_id, agent_id, kind, type, content,
    importance, tags, facet, state, trust, create_time, update_time, search_text
)
VALUES (
    't1', 'p1', $1, 1, 'v' || $1, 'a1', $2, 'note', 'text', 0.5, $3, $4, $5, 'pending', $6, $6, $7
)
"""


@pytest.fixture
async def empty(postgres_backend: PostgresBackend) -> AsyncIterator[Database]:
    database = await postgres_backend.empty_database()
    yield database
    await postgres_backend.drop(database)


@pytest.fixture
async def migrator(postgres_backend: PostgresBackend, empty: Database) -> AsyncIterator[str]:
    """The address of a role that owns the database and is no superuser."""
    role = f"migrator_{empty.name}"
    await empty.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'plain'")
    await empty.execute(f"ALTER DATABASE {empty.name} OWNER TO {role}")
    parts = urlsplit(empty.admin_dsn)
    netloc = f"{role}:plain@{parts.netloc.rpartition('@')[2]}"
    yield urlunsplit(parts._replace(netloc=netloc))
    await postgres_backend.drop(empty)
    await postgres_backend.execute(f"DROP ROLE {role}")


@pytest.fixture
async def provider(empty: Database) -> AsyncIterator[PostgresMemoryProvider]:
    made = PostgresMemoryProvider(empty.options())
    yield made
    await made.close()


async def prepare(database: Database, dsn: str) -> None:
    await migrate(TREE, dsn, database.runtime_role)
    await init_resource(database.admin_dsn, RESOURCE.resource_id, RESOURCE.generation)


def eligible(**asked: Any) -> Eligible:
    at = specimens.START + timedelta(minutes=1)
    return Eligible(**{"project": PROJECT, "agent_id": "a1", "at": at, **asked})


async def remember(provider: PostgresMemoryProvider, name: str) -> None:
    put = specimens.put(specimens.memory(name), entry=specimens.entry("java", vector=NEAR))
    write = specimens.write(PROJECT, put)
    assert await provider.commit(write, timeout=SECONDS) == Committed()


async def nearest(provider: PostgresMemoryProvider) -> list[str]:
    request = RecallRequest(eligible=eligible(), vector=NEAR)
    found = await provider.recall(request, timeout=SECONDS)
    return [each.record_id for each in found.nearest]


async def test_what_was_stored_before_has_no_entry_and_all_that_is_filtered(
    empty: Database, provider: PostgresMemoryProvider
) -> None:
    """001-27, 002-20: by tag, time and label it is given back at once, by words once indexed."""
    await upgrade_to(empty, "0004")
    start = specimens.START
    late = (start + timedelta(days=1)).isoformat()
    early = start.isoformat()
    mark = "\u2001"
    rows: tuple[tuple[str, str, list[str], str | None, str, str], ...] = (
        ("plain", "memory", ["Build", "\u77e5"], None, "active", f"x{mark}build{mark}\u77e5{mark}"),
        ("untagged", "memory", [], f'{{"expire_time": "{late}"}}', "active", f"x{mark}"),
        (
            "expired",
            "memory",
            ["build"],
            f'{{"expire_time": "{early}"}}',
            "active",
            f"x{mark}build{mark}",
        ),
        (
            "secret",
            "memory",
            ["build"],
            '{"sensitivity": "restricted", "origin_tier": "operator"}',
            "active",
            f"x{mark}build{mark}",
        ),
        ("archived", "memory", ["build"], None, "archived", f"x{mark}build{mark}"),
        ("forgotten", "memory", ["build"], None, "forgotten", f"x{mark}build{mark}"),
        ("decision", "decision", ["build"], None, "active", f"x{mark}build{mark}"),
    )
    connection = await asyncpg.connect(empty.admin_dsn)
    for name, kind, tags, facet, state, searched in rows:
        await connection.execute(_INSERT, name, kind, tags, facet, state, start, searched)
    await connection.close()
    await prepare(empty, empty.admin_dsn)

    async def listed(**asked: Any) -> list[str]:
        request = TaggedRequest(eligible=eligible(**asked), limit=100)
        page = await provider.tagged(request, timeout=SECONDS)
        return [each.current.record_id for each in page.records]

    assert await listed() == ["plain", "secret", "untagged"]
    assert await listed(tags=("BUILD",)) == ["plain", "secret"]
    assert await listed(patterns=("\u77e5*",)) == ["plain"]
    assert await listed(ceiling=Sensitivity.SENSITIVE) == ["plain", "untagged"]
    assert await listed(lowest_tier=OriginTier.OPERATOR) == ["secret"]
    bare = await provider.unindexed(UnindexedRequest(project=PROJECT), timeout=SECONDS)
    names = [each.current.record_id for each in bare.records]
    assert names == ["archived", "expired", "plain", "secret", "untagged"]


async def test_without_pgvector_words_are_recalled_and_vectors_wait(
    empty: Database, migrator: str, provider: PostgresMemoryProvider
) -> None:
    """004-27: the reason is told; once it is there what was kept meanwhile is found."""
    await prepare(empty, migrator)
    negotiated = await provider.negotiate(timeout=SECONDS)
    assert negotiated.absent == NO_VECTORS
    assert Capability.VECTORS not in negotiated.capabilities
    assert Capability.RECALL in negotiated.capabilities
    await remember(provider, "r1")
    request = RecallRequest(eligible=eligible(), terms=("java",))
    assert len((await provider.recall(request, timeout=SECONDS)).matches) == 1
    with pytest.raises(CapabilityMissingError):
        await nearest(provider)
    await empty.execute("CREATE EXTENSION vector")
    for _ in range(2):
        await migrate(TREE, migrator, empty.runtime_role)
    assert (await provider.negotiate(timeout=SECONDS)).absent == {}
    await remember(provider, "r2")
    assert await nearest(provider) == ["r1", "r2"]


async def test_pgvector_is_used_where_it_is(
    empty: Database, migrator: str, provider: PostgresMemoryProvider
) -> None:
    """004-101: in a schema that the runtime role may not look into, too."""
    await empty.execute("CREATE SCHEMA elsewhere; CREATE EXTENSION vector SCHEMA elsewhere")
    await empty.execute(f"GRANT USAGE ON SCHEMA elsewhere TO {urlsplit(migrator).username}")
    await prepare(empty, migrator)
    assert (await provider.negotiate(timeout=SECONDS)).absent == {}
    await remember(provider, "r1")
    assert await nearest(provider) == ["r1"]


async def test_what_is_filtered_by_is_kept_beside_the_head(
    empty: Database, provider: PostgresMemoryProvider
) -> None:
    """002-20: every field of a facet that recall filters by is kept beside the head."""
    await prepare(empty, empty.admin_dsn)
    put = specimens.put(specimens.memory("r1", facet=specimens.facet()))
    write = specimens.write(PROJECT, put)
    assert await provider.commit(write, timeout=SECONDS) == Committed()
    full: MemoryFacet = specimens.facet()
    (row,) = await empty.fetch(
        "SELECT namespace, memory_kind, subject, epoch, sensitivity, origin_tier, expire_time,"
        " invalidate_time FROM memory.recall_entries"
    )
    assert dict(row) == {name: getattr(full, name) for name in dict(row)}

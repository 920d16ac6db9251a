"""What operators do to a database: migrate it, mark it, serve from it; and what it then refuses."""

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.fixtures.broker import Stand, records
from tests.fixtures.own_broker import (
    SERVING,
    Ended,
    WarmBroker,
    ended,
    health_becomes,
    own_broker,
    start_command,
)
from tests.fixtures.postgres import RESOURCE, Database, PostgresBackend
from tests.fixtures.record_requests import create

DSN = "BROKER_MIGRATION_DSN"
INIT = ("init-resource", "--resource-id", RESOURCE.resource_id, "--generation", "1")

# Keys and unique indexes that do not begin with tenant and project; a column is its name.
FOREIGN_KEYS = """
    SELECT n.nspname || '.' || t.relname || ': ' || string_agg(a.attname, ', ' ORDER BY k.place)
    FROM pg_index AS i
    JOIN pg_class AS t ON t.oid = i.indrelid
    JOIN pg_namespace AS n ON n.oid = t.relnamespace
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attribute, place)
    JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.attribute
    WHERE n.nspname IN ('knowledge', 'memory')
    GROUP BY i.indexrelid, n.nspname, t.relname
    HAVING (array_agg(a.attname::text ORDER BY k.place))[1:2] <> '{tenant_id,project_id}'
    ORDER BY 1
"""
# What there is and who may do what with it.
FINGERPRINT = """
    SELECT string_agg(c.oid || c.relname || coalesce(c.relacl::text, ''), ',' ORDER BY c.oid)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname IN ('knowledge', 'memory')
"""


@dataclass(frozen=True)
class Operated:
    """An empty database, and the plain role that owns it and migrates."""

    database: Database
    owner_dsn: str

    @property
    def migrate(self) -> tuple[str, ...]:
        """The command that migrates it."""
        return ("migrate", "--runtime-role", self.database.runtime_role)

    async def refusal(self, statement: str) -> str | None:
        """Return the SQLSTATE with which the owning role is refused."""
        connection = await asyncpg.connect(self.owner_dsn)
        try:
            await connection.execute(statement)
        except asyncpg.PostgresError as error:
            return error.sqlstate
        finally:
            await connection.close()
        return None


@pytest.fixture
def operated(postgres_backend: PostgresBackend) -> Iterator[Operated]:
    """A database of a role that is no superuser."""
    role, password = f"owner_{secrets.token_hex(4)}", secrets.token_hex(12)
    database = asyncio.run(postgres_backend.empty_database())

    async def give() -> None:
        await postgres_backend.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'")
        await postgres_backend.execute(f"ALTER DATABASE {database.name} OWNER TO {role}")

    asyncio.run(give())
    parts = urlsplit(database.admin_dsn)
    host = parts.netloc.rpartition("@")[2]
    yield Operated(database, urlunsplit(parts._replace(netloc=f"{role}:{password}@{host}")))
    asyncio.run(postgres_backend.drop(database))
    asyncio.run(postgres_backend.execute(f"DROP ROLE {role}"))


async def test_from_an_empty_database_to_a_broker_that_serves(
    stand: Stand, operated: Operated, warm_broker: WarmBroker, tmp_path: Path
) -> None:
    """004-27, 004-31, 004-101: three starters migrate once; the marker is written once."""
    environment = {DSN: operated.owner_dsn}
    starters = [start_command(*operated.migrate, **environment) for _ in range(3)]
    finished = await asyncio.gather(*(asyncio.to_thread(ended, each) for each in starters))
    role = operated.database.runtime_role
    done = Ended(
        0,
        "".join(
            f"broker: schema {schema} is migrated, {role} has its rights on it\n"
            for schema in ("knowledge", "memory")
        ),
    )
    assert finished == [done] * 3
    before = await operated.database.fetchval(FINGERPRINT)
    again = warm_broker.run(*operated.migrate, **environment)
    assert again == done
    assert await operated.database.fetchval(FINGERPRINT) == before

    made = warm_broker.run(*INIT, **environment)
    assert (made.code, made.said.count("\n")) == (0, 1)
    for generation in ("1", "2"):
        refused = warm_broker.run(*INIT[:-1], generation, **environment)
        refused.refused_with("marker")
    marker = "SELECT (resource_id, generation)::text FROM memory.resource"
    assert await operated.database.fetchval(marker) == f"({RESOURCE.resource_id},1)"

    with own_broker(stand, tmp_path, operated.database) as own:
        async with own.channel() as channel:
            await health_becomes(channel, SERVING)
            project = own.project()
            await records(channel).CreateRecord(create(project), metadata=own.metadata())
        assert own.broker.stop() == 0
    await _pins_are_for_ever(operated)
    assert await operated.database.fetchval("SELECT count(*) FROM knowledge.pins") == 1


async def _pins_are_for_ever(operated: Operated) -> None:
    """Require triggers to refuse changes, also to the role that owns the tables (004-31)."""
    for statement in (
        "UPDATE knowledge.pins SET provider_id = 'another'",
        "DELETE FROM knowledge.pins",
        "TRUNCATE knowledge.pins",
    ):
        assert await operated.refusal(statement) == "23000", statement
    for statement in (
        "UPDATE memory.revisions SET content = 'another'",
        "DELETE FROM memory.records",
        "TRUNCATE memory.receipts",
    ):
        assert await operated.refusal(statement) == "55000", statement


def test_commands_that_cannot_be_carried_out_say_why_in_one_line(
    operated: Operated, warm_broker: WarmBroker
) -> None:
    """004-101: an operator's mistakes; no statement and no password is shown."""
    gone = operated.owner_dsn.replace(operated.database.name, "no_such_database")
    away = "postgresql://role:hush-hush@127.0.0.1:1/name"
    runtime = operated.database.runtime_dsn
    cases = [
        (operated.migrate, {}, (DSN,)),
        (operated.migrate, {DSN: "mysql://127.0.0.1/name"}, ("postgresql://",)),
        (operated.migrate, {DSN: away}, ("127.0.0.1:1",)),
        (operated.migrate, {DSN: gone}, ("no_such_database",)),
        (operated.migrate, {DSN: runtime}, ("another role than",)),
        ((*operated.migrate[:2], "postgres"), {DSN: runtime}, ("permission denied",)),
        ((*operated.migrate[:2], "nobody_at_all"), {DSN: operated.owner_dsn}, ("nobody_at_all",)),
        (INIT, {}, (DSN,)),
        (INIT, {DSN: away}, ("127.0.0.1:1",)),
        (INIT, {DSN: operated.owner_dsn}, ("run broker migrate first",)),
        ((*INIT, "--adapter", "mongo"), {DSN: operated.owner_dsn}, ("mongo",)),
    ]
    for arguments, environment, words in cases:
        refused = warm_broker.run(*arguments, **environment)
        refused.refused_with(*words)
        assert "hush-hush" not in refused.said
        assert str(urlsplit(operated.owner_dsn).password) not in refused.said
        assert "SELECT" not in refused.said and "CREATE" not in refused.said
    left = "SELECT count(*) FROM pg_namespace WHERE nspname IN ('knowledge', 'memory')"
    assert asyncio.run(operated.database.fetchval(left)) == 0


async def test_every_key_begins_with_tenant_and_project(postgres_database: Database) -> None:
    """Api 1: all keys and indexes, but for the marker's, those of the migrations, and the one that
    finds receipts without their project (004-81).
    """
    connection = await asyncpg.connect(postgres_database.admin_dsn)
    found = [row[0] for row in await connection.fetch(FOREIGN_KEYS)]
    await connection.close()
    assert found == [
        "knowledge.alembic_version: version_num",
        "memory.alembic_version: version_num",
        "memory.effects: tenant_id, receipt_id",
        "memory.resource: single",
    ]

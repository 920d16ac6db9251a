"""What makes a database unfit, each named by one word."""

import asyncpg
import pytest

from providers.errors import (
    NegotiationRefusedError,
    ProviderClosedError,
    ProviderUnavailableError,
    ResourceMismatchError,
)
from providers.migration import migrate
from providers.postgres.migrations import TREE
from providers.postgres.options import PostgresOptions
from providers.postgres.provider import PostgresMemoryProvider
from tests.fixtures.postgres import Database, PostgresBackend

TOO_MANY = {
    "delete of records": "GRANT DELETE ON memory.records TO {role}",
    "update of records as a whole": "GRANT UPDATE ON memory.records TO {role}",
    "update of a record's tenant": "GRANT UPDATE (tenant_id) ON memory.records TO {role}",
    "update of the name of a counter": "GRANT UPDATE (name) ON memory.counters TO {role}",
    "update of revisions": "GRANT UPDATE ON memory.revisions TO {role}",
    "update of one column of revisions": "GRANT UPDATE (content) ON memory.revisions TO {role}",
    "update of receipts": "GRANT UPDATE ON memory.receipts TO {role}",
    "update of effects": "GRANT UPDATE ON memory.effects TO {role}",
    "update of one column of effects": "GRANT UPDATE (receipt) ON memory.effects TO {role}",
    "insert of a marker": "GRANT INSERT ON memory.resource TO {role}",
    "delete of entries": "GRANT DELETE ON memory.recall_entries TO {role}",
    "update of an entry's tenant": "GRANT UPDATE (tenant_id) ON memory.recall_entries TO {role}",
    "update of vectors": "GRANT UPDATE (embedding) ON memory.recall_vectors TO {role}",
    "truncate": "GRANT TRUNCATE ON memory.claims TO {role}",
    "trigger": "GRANT TRIGGER ON memory.records TO {role}",
    "references": "GRANT REFERENCES ON memory.records TO {role}",
    "granted to everybody": "GRANT DELETE ON memory.counters TO PUBLIC",
    "to be handed on": "GRANT SELECT ON memory.records TO {role} WITH GRANT OPTION",
    "create in the schema": "GRANT CREATE ON SCHEMA memory TO {role}",
    "create in the database": "GRANT CREATE ON DATABASE {name} TO {role}",
    "ownership of a table": "ALTER TABLE memory.claims OWNER TO {role}",
    "ownership of a domain": "GRANT CREATE ON SCHEMA memory TO {role};"
    " ALTER DOMAIN memory.unit OWNER TO {role}; REVOKE CREATE ON SCHEMA memory FROM {role}",
    "ownership of the schema": "ALTER SCHEMA memory OWNER TO {role}",
    "ownership of the database": "ALTER DATABASE {name} OWNER TO {role}",
}
ROLE_WIDE = {
    "superuser": ("ALTER ROLE {role} SUPERUSER", "ALTER ROLE {role} NOSUPERUSER"),
    "bypassing row security": ("ALTER ROLE {role} BYPASSRLS", "ALTER ROLE {role} NOBYPASSRLS"),
    "creating roles": ("ALTER ROLE {role} CREATEROLE", "ALTER ROLE {role} NOCREATEROLE"),
    "membership": ("GRANT pg_read_all_data TO {role}", "REVOKE pg_read_all_data FROM {role}"),
}
TOO_FEW = {
    "select": "REVOKE SELECT ON memory.claims FROM {role}",
    "insert": "REVOKE INSERT ON memory.revisions FROM {role}",
    "update": "REVOKE UPDATE ON memory.records FROM {role}",
    "update of an entry's terms": "REVOKE UPDATE (terms) ON memory.recall_entries FROM {role}",
    "delete of vectors": "REVOKE DELETE ON memory.recall_vectors FROM {role}",
    "update of one column": "REVOKE UPDATE (state) ON memory.records FROM {role}",
    "marker": "REVOKE SELECT ON memory.resource FROM {role}",
    "version": "REVOKE SELECT ON memory.alembic_version FROM {role}",
    "schema": "REVOKE USAGE ON SCHEMA memory FROM {role}",
}
OTHER_SCHEMA = {
    "an older revision": "UPDATE memory.alembic_version SET version_num = '0000'",
    "no revision": "DELETE FROM memory.alembic_version",
    "a trigger that is gone": "DROP TRIGGER records_are_kept ON memory.records",
    "a trigger that sleeps": "ALTER TABLE memory.revisions DISABLE TRIGGER revisions_are_kept",
}


async def refusal(provider: PostgresMemoryProvider) -> str:
    with pytest.raises(NegotiationRefusedError) as refused:
        await provider.negotiate(timeout=10)
    return refused.value.fact


async def change(admin: asyncpg.Connection, database: Database, sql: str) -> None:
    await admin.execute(sql.format(role=database.runtime_role, name=database.name))


@pytest.mark.parametrize("name", TOO_MANY)
async def test_rights_that_are_too_many(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    postgres_database: Database,
    name: str,
) -> None:
    await provider.negotiate(timeout=10)
    await change(admin, postgres_database, TOO_MANY[name])
    assert await refusal(provider) == "rights"


@pytest.mark.parametrize("name", ROLE_WIDE)
async def test_roles_that_are_too_mighty(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    postgres_database: Database,
    name: str,
) -> None:
    grant, revoke = ROLE_WIDE[name]
    await change(admin, postgres_database, grant)
    try:
        assert await refusal(provider) == "rights"
    finally:
        await change(admin, postgres_database, revoke)
    await provider.negotiate(timeout=10)


@pytest.mark.parametrize("name", TOO_FEW)
async def test_rights_that_are_missing(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    postgres_database: Database,
    name: str,
) -> None:
    await change(admin, postgres_database, TOO_FEW[name])
    assert await refusal(provider) == "rights"


@pytest.mark.parametrize("name", OTHER_SCHEMA)
async def test_another_schema(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    postgres_database: Database,
    name: str,
) -> None:
    await change(admin, postgres_database, OTHER_SCHEMA[name])
    assert await refusal(provider) == "schema"


async def test_a_database_that_was_never_migrated(postgres_backend: PostgresBackend) -> None:
    database = await postgres_backend.empty_database()
    provider = PostgresMemoryProvider(database.options())
    assert await refusal(provider) == "schema"
    with pytest.raises(NegotiationRefusedError):
        await provider.ready(timeout=10)
    await provider.close()
    await postgres_backend.drop(database)


async def test_a_database_without_a_marker(postgres_backend: PostgresBackend) -> None:
    database = await postgres_backend.empty_database()
    await migrate(TREE, database.admin_dsn, database.runtime_role)
    provider = PostgresMemoryProvider(database.options())
    with pytest.raises(ResourceMismatchError):
        await provider.negotiate(timeout=10)
    await provider.close()
    await postgres_backend.drop(database)


@pytest.mark.parametrize("given", [{"resource_id": "another"}, {"generation": 2}])
async def test_another_marker(postgres_database: Database, given: dict[str, object]) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(**given))
    with pytest.raises(ResourceMismatchError):
        await provider.negotiate(timeout=10)
    await provider.close()


async def test_another_database_behind_the_same_address(postgres_database: Database) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(database_name="knowledge"))
    assert await refusal(provider) == "name"
    await provider.close()


async def test_commits_that_a_crash_may_lose(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, postgres_database: Database
) -> None:
    await change(admin, postgres_database, "ALTER DATABASE {name} SET synchronous_commit = off")
    assert await refusal(provider) == "durability"


async def test_a_superuser_is_no_runtime_role(postgres_database: Database) -> None:
    provider = PostgresMemoryProvider(postgres_database.options(dsn=postgres_database.admin_dsn))
    assert await refusal(provider) == "rights"
    await provider.close()


async def test_false_credentials_are_not_told(postgres_database: Database) -> None:
    dsn = postgres_database.runtime_dsn.replace("@", "tail@")
    provider = PostgresMemoryProvider(postgres_database.options(dsn=dsn))
    with pytest.raises(ProviderUnavailableError) as refused:
        await provider.negotiate(timeout=10)
    assert "tail" not in str(refused.value)
    with pytest.raises(ProviderUnavailableError):
        await provider.ready(timeout=10)
    await provider.close()


async def test_a_closed_provider_does_not_negotiate(provider: PostgresMemoryProvider) -> None:
    await provider.close()
    with pytest.raises(ProviderClosedError):
        await provider.negotiate(timeout=10)


def test_options_do_not_show_the_address() -> None:
    options = PostgresOptions(
        dsn="postgresql://user:secret@host.test/db?sslmode=verify-full",
        resource_id="r",
        generation=1,
        database_name="db",
        options_revision="v1",
    )
    assert "secret" not in f"{options!r} {options}"
    assert "host.test" not in repr(options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dsn", "mysql://user:secret@host/db"),
        ("dsn", ""),
        ("dsn", "postgresql://user:secret@host.test/db"),
        ("resource_id", ""),
        ("resource_id", "a b"),
        ("resource_id", "a" * 257),
        ("generation", 0),
        ("database_name", ""),
        ("database_name", "d" * 64),
        ("options_revision", ""),
        ("pool_size", 0),
        ("pool_size", 201),
        ("pool_ready", 17),
        ("connect_ms", 0),
        ("statement_ms", 600_001),
        ("lock_ms", 0),
    ],
)
def test_options_that_are_not_valid(name: str, value: object) -> None:
    given: dict[str, object] = {
        "dsn": "postgresql://user:secret@localhost/db",
        "resource_id": "r",
        "generation": 1,
        "database_name": "db",
        "options_revision": "v1",
        name: value,
    }
    with pytest.raises(ValueError, match=name) as refused:
        PostgresOptions(**given)  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)

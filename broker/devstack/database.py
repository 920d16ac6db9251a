"""The database of a development stack, and the roles that use it.

The migrator owns the database and is used for migrations only. The runtime role may connect and
nothing more; what it may do with each table is granted together with the migrations. The role of
the Events service owns the schema ``events``, and may do nothing in the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import asyncpg

from broker.devstack.data import Secrets
from broker.devstack.errors import DevStackError
from broker.devstack.postgres import PostgresServer
from broker.devstack.postgres.cluster import SUPERUSER

DATABASE = "knowledge"
MIGRATOR = "broker_migrator"
RUNTIME = "broker_runtime"
EVENTS = "broker_events"
GENERATION = 1

_ROLE_EXISTS = "SELECT count(*) FROM pg_roles WHERE rolname = $1"
_DATABASE_EXISTS = "SELECT count(*) FROM pg_database WHERE datname = $1"
# The server itself puts the quotes.
_CREATE_ROLE = "SELECT format('CREATE ROLE %I', $1::text)"
_PLAIN_LOGIN = """
    SELECT format(
        'ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS
         PASSWORD %L', $1::text, $2::text)
"""
_CREATE_DATABASE = "SELECT format('CREATE DATABASE %I OWNER %I', $1::text, $2::text)"
_CLOSE_DATABASE = "SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', $1::text)"
_PREPARED = "SELECT current_database(), resource_id, generation FROM memory.resource"
_CREATE_EVENTS = "SELECT format('CREATE SCHEMA IF NOT EXISTS events AUTHORIZATION %I', $1::text)"
# Not for the migrator to create: it is no extension that the server trusts an owner with.
_CREATE_VECTORS = "CREATE EXTENSION IF NOT EXISTS vector"
_OPEN_DATABASE = "SELECT format('GRANT CONNECT ON DATABASE %I TO %I', $1::text, $2::text)"


@dataclass(frozen=True)
class Access:
    """The connection URLs of the roles; each holds a password.

    Without the migrator's, somebody else has prepared the database. Without the one for events,
    there is no place for an Events service.
    """

    runtime_dsn: str = field(repr=False)
    migrator_dsn: str = field(repr=False, default="")
    events_dsn: str = field(repr=False, default="")


@dataclass(frozen=True)
class Place:
    """One database with a memory store in it.

    Attributes:
        access: How to reach it.
        database: Its name.
        resource_id: The identity of the memory store.
        generation: The generation of it.
    """

    access: Access
    database: str
    resource_id: str
    generation: int


async def provision(server: PostgresServer, drawn: Secrets) -> Place:
    """Makes the database and the roles where they are missing, and sets the passwords.

    Args:
        server: A running server.
        drawn: The passwords, and the identity that the memory store is to have.
    """
    connection = await asyncpg.connect(server.superuser_dsn)
    try:
        for role, password in (
            (MIGRATOR, drawn.migrator_password),
            (RUNTIME, drawn.runtime_password),
        ):
            await _make_role(connection, role, password)
        if not await connection.fetchval(_DATABASE_EXISTS, DATABASE):
            await _do(connection, _CREATE_DATABASE, DATABASE, MIGRATOR)
        await _do(connection, _CLOSE_DATABASE, DATABASE)
        await _do(connection, _OPEN_DATABASE, DATABASE, RUNTIME)
    finally:
        await connection.close()
    superuser_dsn = server.dsn(SUPERUSER, DATABASE)
    await _create_vectors(superuser_dsn)
    await add_events_role(superuser_dsn, EVENTS, drawn.events_password)
    access = Access(
        migrator_dsn=server.dsn(MIGRATOR, DATABASE, drawn.migrator_password),
        runtime_dsn=server.dsn(RUNTIME, DATABASE, drawn.runtime_password),
        events_dsn=server.dsn(EVENTS, DATABASE, drawn.events_password),
    )
    return Place(access, DATABASE, drawn.resource_id, GENERATION)


async def _create_vectors(superuser_dsn: str) -> None:
    connection = await asyncpg.connect(superuser_dsn)
    try:
        await connection.execute(_CREATE_VECTORS)
    finally:
        await connection.close()


async def add_events_role(superuser_dsn: str, role: str, password: str) -> None:
    """Makes the role of an Events service and its schema where they are missing.

    Args:
        superuser_dsn: The URL of the database that the schema is to be in.
        role: The role's name.
        password: What it is to be from now on.
    """
    connection = await asyncpg.connect(superuser_dsn)
    try:
        await _make_role(connection, role, password)
        name = await connection.fetchval("SELECT current_database()")
        await _do(connection, _OPEN_DATABASE, name, role)
        await _do(connection, _CREATE_EVENTS, role)
    finally:
        await connection.close()


async def prepared(runtime_dsn: str, events_dsn: str | None = None) -> Place:
    """Looks at a database that somebody else has migrated and given its marker.

    Args:
        runtime_dsn: Its URL, of the runtime role.
        events_dsn: The URL of a database for the Events service, of the role that owns the schema
            ``events`` in it; without one there is no Events service.

    Raises:
        DevStackError: It is not prepared.
    """
    connection = await asyncpg.connect(runtime_dsn)
    try:
        found = await connection.fetchrow(_PREPARED)
    except asyncpg.SyntaxOrAccessError:
        found = None
    finally:
        await connection.close()
    if found is None:
        raise DevStackError(
            "the given PostgreSQL is not prepared: run broker migrate and broker init-resource"
        )
    return Place(Access(runtime_dsn, events_dsn=events_dsn or ""), *found)


async def _make_role(connection: asyncpg.Connection, role: str, password: str) -> None:
    if not await connection.fetchval(_ROLE_EXISTS, role):
        await _do(connection, _CREATE_ROLE, role)
    await _do(connection, _PLAIN_LOGIN, role, password)


async def _do(connection: asyncpg.Connection, statement: str, *names: str) -> None:
    await connection.execute(await connection.fetchval(statement, *names))

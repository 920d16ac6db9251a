"""Runs the migrations of one PostgreSQL schema, the same way for everybody who owns one.

Only an operator's identity runs them; an ordinary start never does (004-101).
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
from alembic import command, context
from alembic.config import Config
from sqlalchemy import Connection, MetaData, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from providers.address import is_postgres

_TREE = "tree"
_CONNECTION = "connection"
_IS_MIGRATOR = text("SELECT CAST(:role AS text) IN (current_user, session_user)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationTree:
    """One schema and how it comes to be.

    ``folder`` holds ``env.py``, whose one line calls ``run_environment``, and ``versions/``.
    ``grants`` is SQL that gives the role named by the setting ``knowledge_broker.runtime_role`` its
    rights and takes all others away. ``lock`` is any number of its own. ``closing`` are statements
    that end every migration, before the rights are given; each may be repeated.
    """

    metadata: MetaData
    folder: Path
    grants: str
    lock: int
    closing: tuple[str, ...] = ()

    @property
    def schema(self) -> str:
        """The schema's name."""
        if self.metadata.schema is None:
            raise ValueError("the metadata must name its schema")
        return self.metadata.schema


async def migrate(tree: MigrationTree, dsn: str, runtime_role: str) -> None:
    """Bring a schema to the newest revision and give the runtime role its rights.

    All of it is one transaction under an advisory lock: starters that run it at once wait for each
    other, and all but the first find nothing to do. Rights that are too many are taken away.

    Args:
        tree: The schema.
        dsn: ``postgresql://`` address of the database, of a role that may create schemas.
        runtime_role: The role the broker runs as. It must exist and be another one.

    Raises:
        ValueError: ``dsn`` is no PostgreSQL address, or its role is the runtime role. Nothing was
            changed.
        sqlalchemy.exc.DBAPIError: The server refused, or cannot be reached. Nothing was changed.
    """
    engine = open_engine(dsn, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_migrate, tree, runtime_role)
    finally:
        await engine.dispose()


def open_engine(dsn: str, **options: Any) -> AsyncEngine:
    """Return an engine whose connections the driver opens by the address as it is written.

    So the address means here what it means to adapters: SQLAlchemy's own reading knows neither
    ``sslmode`` nor the other parameters of libpq.

    Args:
        dsn: ``postgresql://`` address.
        options: As for ``create_async_engine``.

    Raises:
        ValueError: it is no PostgreSQL address.
    """
    if not is_postgres(dsn):
        raise ValueError("the address is not one of PostgreSQL")
    return create_async_engine(
        "postgresql+asyncpg://", async_creator=partial(asyncpg.connect, dsn), **options
    )


def configuration(tree: MigrationTree) -> Config:
    """Return Alembic's configuration of a tree."""
    config = Config()
    config.set_main_option("script_location", str(tree.folder))
    config.set_main_option("path_separator", "os")
    config.attributes[_TREE] = tree
    return config


def run_environment() -> None:
    """What every ``env.py`` calls: run the migrations on the connection that was handed over."""
    tree: MigrationTree = context.config.attributes[_TREE]
    connection: Connection = context.config.attributes[_CONNECTION]
    # Alembic writes its version table, which lives in the schema, before the first migration.
    connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {tree.schema}"))
    context.configure(
        connection=connection,
        target_metadata=tree.metadata,
        version_table_schema=tree.schema,
        include_schemas=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def _migrate(connection: Connection, tree: MigrationTree, runtime_role: str) -> None:
    if connection.execute(_IS_MIGRATOR, {"role": runtime_role}).scalar_one():
        raise ValueError("the runtime role must be another role than the one that migrates")
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": tree.lock})
    config = configuration(tree)
    config.attributes[_CONNECTION] = connection
    command.upgrade(config, "head")
    for statement in tree.closing:
        connection.exec_driver_sql(statement)
    connection.execute(
        text("SELECT set_config('knowledge_broker.runtime_role', :role, true)"),
        {"role": runtime_role},
    )
    connection.exec_driver_sql(tree.grants)

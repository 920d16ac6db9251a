"""Alembic's entry: runs migrations on the connection that ``migrate`` hands over."""

from alembic import context
from sqlalchemy import text

from providers.postgres.schema import METADATA, SCHEMA

connection = context.config.attributes["connection"]
# Alembic writes its version table, which lives in the schema, before the first migration.
connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
context.configure(
    connection=connection,
    target_metadata=METADATA,
    version_table_schema=SCHEMA,
    include_schemas=True,
)
with context.begin_transaction():
    context.run_migrations()

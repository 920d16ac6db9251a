"""A private PostgreSQL server for development and tests, run from an installed wheel."""

from broker.devstack.postgres.server import PostgresServer

__all__ = ["PostgresServer"]

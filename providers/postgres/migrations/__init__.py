"""Migrations of schema ``memory``, and the one way to run them.

Only an operator's identity runs them; an ordinary start never does (004-101).
"""

from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

_GRANTS = files("providers.postgres").joinpath("grants.sql").read_text(encoding="utf-8")
# Any constant does: it only has to be the same for all who migrate one database.
_LOCK = 0x6B62_6D65_6D6F_7279


async def migrate(dsn: str, runtime_role: str) -> None:
    """Bring schema ``memory`` to the newest revision and give the runtime role its rights.

    All of it is one transaction under an advisory lock: starters that run it at once wait for each
    other, and all but the first find nothing to do. Rights that are too many are taken away.

    Args:
        dsn: ``postgresql://`` address of the database, of a role that may create schemas.
        runtime_role: The role the broker runs as. It must exist and be another one.

    Raises:
        ValueError: ``dsn`` is no PostgreSQL address.
        sqlalchemy.exc.DBAPIError: The server refused, or cannot be reached. Nothing was changed.
    """
    engine = create_async_engine(_driver_url(dsn), poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_migrate, runtime_role)
    finally:
        await engine.dispose()


def alembic_config() -> Config:
    """Return the configuration that names these migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def _driver_url(dsn: str) -> URL:
    url = make_url(dsn)
    if url.get_backend_name() not in {"postgres", "postgresql"}:
        raise ValueError("the address is not one of PostgreSQL")
    return url.set(drivername="postgresql+asyncpg")


def _migrate(connection: Connection, runtime_role: str) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.execute(
        text("SELECT set_config('knowledge_broker.runtime_role', :role, true)"),
        {"role": runtime_role},
    )
    connection.exec_driver_sql(_GRANTS)

"""What the commands do. Each is a coroutine that ends when its work is done."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg
from sqlalchemy.exc import SQLAlchemyError

from broker.cli.choices import Embeddings, Schema
from broker.cli.garbage import settle
from broker.cli.refusals import SETTINGS_REFUSALS
from broker.config import Settings
from broker.domain.errors import StorageUnavailableError
from broker.readiness import ConfigurationError
from broker.safety import verify_dsn
from broker.server.app import stop_requested
from broker.services.reindexing import NothingKeptError
from broker.store.migrations import TREE as KNOWLEDGE
from broker.telemetry.logs import configure_logging, logger
from broker.wiring import Part, reindexing, serving
from providers.errors import (
    NegotiationRefusedError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
)
from providers.migration import migrate as migrate_schema
from providers.model import ProjectKey
from providers.registry import NATIVE, adapter, migrate_native


class NotInstalledError(Exception):
    """A command needs an extra that is not installed."""


class StackEndedError(Exception):
    """A development stack cannot start or go on."""


class UnreachableError(Exception):
    """The database of a command does not answer."""


REFUSALS: Final = (
    *SETTINGS_REFUSALS,
    ConfigurationError,
    ProviderError,
    NothingKeptError,
    StorageUnavailableError,
    SQLAlchemyError,
    asyncpg.PostgresError,
    NotInstalledError,
    StackEndedError,
    UnreachableError,
)
"""What an operator can mend: told as one line."""


async def serve(settings: Settings, listen: str) -> None:
    """Serve as the only process until a signal comes."""
    configure_logging()
    stop = stop_requested()
    async with serving(settings, Part(listen=listen, tell=lambda _: None)) as address:
        settle()
        logger("broker").info("serving", port=int(address.rpartition(":")[2]), workers=1)
        await stop.wait()


async def migrate(dsn: str, runtime_role: str, schema: Schema) -> None:
    """Migrate one schema or both, and grant the runtime role its rights."""
    verify_dsn("the migration's address", dsn)
    with _reaching(dsn):
        if schema in (Schema.ALL, Schema.KNOWLEDGE):
            await migrate_schema(KNOWLEDGE, dsn, runtime_role)
            _tell(f"schema knowledge is migrated, {runtime_role} has its rights on it")
        if schema in (Schema.ALL, Schema.MEMORY):
            await migrate_native(dsn, runtime_role)
            _tell(f"schema memory is migrated, {runtime_role} has its rights on it")


async def init_resource(
    dsn: str, name: str | None, resource_id: str, generation: int, *, if_absent: bool
) -> None:
    """Write the marker of a resource; without a name, of the native adapter.

    With ``if_absent`` a marker that says the same already is accepted.
    """
    logging.getLogger("azure.identity").setLevel(logging.CRITICAL)  # its advice hides our one line
    try:
        with _reaching(dsn):
            await adapter(name or NATIVE).init_resource(dsn, resource_id, generation)
        _tell(f"the marker is written: {resource_id}, generation {generation}")
    except NegotiationRefusedError as error:
        if not if_absent or error.fact != "marker":
            raise
        _tell(f"the marker is there already: {resource_id}, generation {generation}")


async def reindex(settings: Settings, provider_id: str, project: ProjectKey) -> None:
    """Make entries for the memories of a project that have none or lack a vector."""
    configure_logging()
    async with reindexing(settings, provider_id) as work:
        put = await work.run(project)
    _tell(f"{put} memories of project {project.project_id} were indexed")


async def dev(
    data: Path,
    port: int,
    provider: str,
    postgres_dsn: str | None,
    events_dsn: str | None,
    *,
    embeddings: Embeddings,
) -> None:
    """Run a development stack, against a PostgreSQL of its own or a given one."""
    try:
        from broker.devstack.dev import dev as run_stack
        from broker.devstack.errors import DevStackError
    except ModuleNotFoundError as error:
        raise NotInstalledError(
            f"broker dev runs from a source tree with the extra [dev]: {error.name}"
        ) from error
    try:
        await run_stack(
            data,
            port=port,
            provider=provider,
            postgres_dsn=postgres_dsn,
            events_dsn=events_dsn,
            embeddings=embeddings,
        )
    except DevStackError as error:
        raise StackEndedError(str(error)) from error


def _tell(done: str) -> None:
    print(f"broker: {done}", flush=True)


@contextmanager
def _reaching(dsn: str) -> Iterator[None]:
    """Name host and port of a store that cannot be reached; never user and password."""
    try:
        yield
    except (OSError, ProviderUnavailableError, ProviderTimeoutError) as error:
        place = urlsplit(dsn).netloc.rpartition("@")[2] or "the host of the address"
        why = str(error) or type(error).__name__
        raise UnreachableError(f"the store at {place} does not answer: {why}") from error

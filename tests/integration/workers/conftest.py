"""A broker of two workers for the tests that leave it as they found it."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.fixtures.broker import Stand
from tests.fixtures.postgres import PostgresBackend
from tests.integration.workers.crew import Crew, crew_of, settings_for


@pytest.fixture(scope="module")
def crew(
    stand: Stand, postgres_backend: PostgresBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crew]:
    """Two workers with a database of their own."""
    database = asyncio.run(postgres_backend.database())
    settings = settings_for(stand, database)
    with crew_of(stand, database, settings, tmp_path_factory.mktemp("crew")) as running:
        yield running
    asyncio.run(postgres_backend.drop(database))

"""An owner to ask and a place for a development stack, fresh for each test."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest

from tests.fixtures.owner import Asker, OwnerStand, owner_stand


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[OwnerStand]:
    async with owner_stand(tmp_path) as running:
        yield running


@pytest.fixture(params=[False, True], ids=["single", "streams"])
async def ask(stand: OwnerStand, request: pytest.FixtureRequest) -> AsyncIterator[Asker]:
    async with grpc.aio.insecure_channel(stand.server.address) as channel:
        yield Asker(stand, channel, streams=request.param)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A place that the account of the database server can reach, also under root."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o711)
        yield Path(place) / "stack"

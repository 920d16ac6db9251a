"""An owner to ask, fresh for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from tests.fixtures.owner import Asker, OwnerStand, owner_stand


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[OwnerStand]:
    async with owner_stand(tmp_path) as running:
        yield running


@pytest.fixture
async def ask(stand: OwnerStand) -> AsyncIterator[Asker]:
    async with grpc.aio.insecure_channel(stand.server.address) as channel:
        yield Asker(stand, channel)

"""The pins of a project: which are found, in what order, and how many (004-69)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from broker.domain.errors import StorageUnavailableError
from broker.domain.ports import Pin, PinQuery
from broker.store.pins import PostgresPinStore
from providers.migration import open_engine
from tests.fixtures.postgres import Database
from tests.integration.store.test_schema import PIN


@dataclass
class Kept:
    """Pins that were committed one after the other."""

    store: PostgresPinStore
    pins: dict[str, Pin]

    async def runs(self, **wanted: Any) -> list[str]:
        given: dict[str, Any] = {"tenant_id": "t", "project_id": "p", "limit": 100}
        query = PinQuery(**(given | wanted))
        found = await self.store.list(query)
        assert await self.store.count(query) == len(found)
        assert all(pin.create_time is not None for pin in found)
        return [pin.run_id for pin in found]


@pytest.fixture
async def kept(postgres_database: Database) -> AsyncIterator[Kept]:
    """Runs whose order as bytes is not that of any language."""
    engine = open_engine(postgres_database.runtime_dsn, pool_size=2)
    store = PostgresPinStore(engine)
    pins = {
        run: await store.insert_if_absent(replace(PIN, run_id=run))
        for run in ("b", "a", "B", "a_", "a.", "r-10", "r-9")
    }
    for tenant, project in (("T", "p"), ("t", "P"), ("t", "p2")):
        other = replace(PIN, tenant_id=tenant, project_id=project, run_id="other")
        await store.insert_if_absent(other)
    yield Kept(store, pins)
    await engine.dispose()


async def test_every_pin_of_a_project(kept: Kept) -> None:
    """004-56, 004-69: byte for byte, whole, and nothing of another tenant or project."""
    found = await kept.store.list(PinQuery(tenant_id="t", project_id="p", limit=100))
    assert [pin.run_id for pin in found] == ["B", "a", "a.", "a_", "b", "r-10", "r-9"]
    assert list(found) == [kept.pins[pin.run_id] for pin in found]
    assert await kept.runs(limit=2) == ["B", "a"]
    assert await kept.runs(tenant_id="T") == ["other"]
    assert await kept.runs(project_id="%") == []


async def test_named_runs(kept: Kept) -> None:
    """004-69: those that are pinned, each once; a name is no pattern."""
    assert await kept.runs(run_ids=("r-9", "absent", "a", "%", "other")) == ["a", "r-9"]
    assert await kept.runs(run_ids=(*(f"n{n}" for n in range(499)), "b")) == ["b"]


async def test_times(kept: Kept) -> None:
    """004-69: from a time on, and before another."""
    at = kept.pins["a."].create_time
    assert at is not None
    assert await kept.runs(committed_from=at) == ["a.", "r-10", "r-9"]
    assert await kept.runs(committed_before=at) == ["B", "a", "a_", "b"]
    later = at + timedelta(microseconds=1)
    assert await kept.runs(committed_from=at, committed_before=later) == ["a."]
    assert await kept.runs(committed_from=at, run_ids=("a", "r-9")) == ["r-9"]


async def test_a_provider(kept: Kept) -> None:
    """004-69: those of one provider, byte for byte."""
    await kept.store.insert_if_absent(replace(PIN, run_id="r-8", provider_id="other"))
    assert await kept.runs(provider_id="other") == ["r-8"]
    assert await kept.runs(provider_id="Other") == []
    assert len(await kept.runs(provider_id=PIN.provider_id)) == len(kept.pins)


async def test_a_store_that_is_away() -> None:
    """004-101: retryable, and nothing is taken for no pin."""
    engine = open_engine("postgresql://nobody:x@127.0.0.1:1/none", pool_size=1)
    with pytest.raises(StorageUnavailableError):
        await PostgresPinStore(engine).list(PinQuery(tenant_id="t", project_id="p", limit=1))
    await engine.dispose()

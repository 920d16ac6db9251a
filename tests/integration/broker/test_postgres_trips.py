"""How often a broker speaks to PostgreSQL for each kind of call, and what it says.

Counted on the wire; the broker of these tests looks at its readiness once an hour.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.broker import Stand
from tests.fixtures.desk import Desk
from tests.fixtures.muting_proxy import in_thread
from tests.fixtures.own_broker import UNHURRIED, Settings, own_broker
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_proxy import PostgresProxy, proxy_before
from tests.fixtures.record_calls import (
    BATCH,
    COMPILE,
    CREATE,
    EFFECT,
    EXPORT,
    GET,
    IMPORT,
    LIST,
    PENDING,
    PROMOTE,
    PROPOSE,
    REVISION,
    SEARCH,
    UPDATE,
)

STATEMENT = ["B", "E", "S"]
"""Bind, Execute, Sync: a statement that was prepared before, in a transaction of its own."""


@dataclass
class Wire:
    """A project, and what passes on the way to its memory."""

    desk: Desk
    proxy: PostgresProxy

    async def statements(self, rpc: str, **changes: Any) -> int:
        """Make a call; return how many statements it took, each one round trip."""
        trips, said = self.proxy.round_trips, len(self.proxy.types)
        await self.desk.done(rpc, **changes)
        count = self.proxy.round_trips - trips
        assert self.proxy.types[said:] == STATEMENT * count, "no transaction, nothing prepared"
        return count


@pytest.fixture
async def wire(stand: Stand, postgres_database: Database, tmp_path: Path) -> AsyncIterator[Wire]:
    """A run that is pinned, on connections that are open."""
    with in_thread(proxy_before(postgres_database.runtime_dsn)) as proxy:

        def through(settings: Settings) -> None:
            options = settings["providers"][0]["options"]
            options["dsn"] = proxy.dsn(options["dsn"])

        with own_broker(stand, tmp_path, postgres_database, through, UNHURRIED) as own:
            async with own.channel() as channel:
                desk = Desk(own, channel, own.project())
                await desk.made()
                yield Wire(desk, proxy)


async def test_what_each_call_says(wire: Wire) -> None:
    """004-15: a write is at most two statements, a read is one, each a round trip of its own."""
    named = {"record_id": (await wire.desk.made("key-0")).record_id}
    assert await wire.statements(CREATE, idempotency_key="another", content="another") == 1
    assert await wire.statements(UPDATE, **named) == 2
    assert await wire.statements(PROPOSE, content="proposed") == 2
    assert await wire.statements(IMPORT) == 2
    for rpc in (GET, BATCH, REVISION, LIST, SEARCH, EXPORT, COMPILE, PENDING):
        assert await wire.statements(rpc, **named) == 1, rpc


async def test_what_is_remembered_and_recalled(wire: Wire) -> None:
    """000-41, 001-04: a telling looks for its like, a recall reads the heads of what it found."""
    stripes = {"idempotency_key": "one", "memory": {"content": "zebras wear stripes"}}
    # What was said before, what is like it, the write.
    assert await wire.statements("Remember", **stripes) == 3
    # One more: what is like it is read.
    stripes = {"idempotency_key": "two", "memory": {"content": "zebras wear boots"}}
    assert await wire.statements("Remember", **stripes) == 4
    # Instead of both: who holds the key is read.
    stripes = {"idempotency_key": "three", "memory": {"content": "Zebras  wear stripes"}}
    assert await wire.statements("Remember", **stripes) == 3
    assert await wire.statements("Recall", query="zebra") == 2
    assert await wire.statements("Recall", query="giraffe") == 1
    assert await wire.statements("RecallByTags") == 1


async def test_what_is_done_again(wire: Wire) -> None:
    """004-62, 004-63: a replay is two reads; a promotion is told and acknowledged besides."""
    changed = {"record_id": (await wire.desk.made("key-0")).record_id, "idempotency_key": "again"}
    assert await wire.statements(UPDATE, **changed) == 2
    assert await wire.statements(UPDATE, **changed) == 2
    # One that nothing was loaded for runs into its receipt, and looks what it was.
    assert await wire.statements(CREATE, idempotency_key="key-0") == 3
    made = await wire.desk.done(PROPOSE, idempotency_key="propose", content="proposed")
    asked = {"proposal_id": made.proposal.record_id, "idempotency_key": "promote"}
    # The text, and with it the key that may forbid it, is known after the first load.
    assert await wire.statements(PROMOTE, **asked) == 5
    assert await wire.statements(PROMOTE, **asked) == 3
    receipt = (await wire.desk.done(PROMOTE, **asked)).receipt_id
    assert await wire.statements(EFFECT, receipt_id=receipt) == 1

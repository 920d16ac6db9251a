"""How often a broker speaks to Redis for each kind of call, and what it says, counted on the wire.

The broker of these tests looks at its readiness once an hour, so that all that comes is of calls.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from providers.redis.scripts import FLAGGED, Script
from tests.fixtures.broker import Stand
from tests.fixtures.desk import Desk
from tests.fixtures.memory import Memory
from tests.fixtures.muting_proxy import in_thread
from tests.fixtures.own_broker import UNHURRIED, Settings, own_broker
from tests.fixtures.postgres import Database
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
from tests.fixtures.redis_memory import RedisMemory
from tests.fixtures.redis_proxy import RedisProxy

pytestmark = pytest.mark.memories("redis", "valkey")

RIDES_ALONG: Final = {b"CONFIG", b"ACL"}
"""What is asked in the same trip as a script: settings; of a write, what a restart leaves out."""
NAMES: Final = {loaded.digest.encode(): script for script, loaded in FLAGGED.items()}


@dataclass
class Wire:
    """A project, and what passes on the way to its memory."""

    desk: Desk
    proxy: RedisProxy

    async def said(self, rpc: str, **changes: Any) -> tuple[int, dict[Script, int]]:
        """Make a call; return how many round trips it took, and which scripts ran."""
        trips, scripts = self.proxy.round_trips, Counter(self.proxy.scripts)
        commands = Counter(self.proxy.commands)
        await self.desk.done(rpc, **changes)
        ran = Counter(self.proxy.scripts) - scripts
        came = Counter(self.proxy.commands) - commands
        assert came.keys() <= {b"EVALSHA", *RIDES_ALONG}
        assert came[b"EVALSHA"] == came[b"CONFIG"] == ran.total()
        return self.proxy.round_trips - trips, {NAMES[each]: count for each, count in ran.items()}


@pytest.fixture
async def wire(
    stand: Stand, postgres_database: Database, own_memory: Memory, tmp_path: Path
) -> AsyncIterator[Wire]:
    """A run that is pinned, on connections that are open."""
    assert isinstance(own_memory, RedisMemory)
    with in_thread(own_memory.backend.proxy()) as proxy:

        def through(settings: Settings) -> None:
            settings["providers"][0]["options"]["endpoint"] = proxy.endpoint

        with own_broker(stand, tmp_path, postgres_database, through, UNHURRIED, own_memory) as own:
            async with own.channel() as channel:
                desk = Desk(own, channel, own.project())
                await desk.made()
                yield Wire(desk, proxy)


async def test_what_each_call_says(wire: Wire) -> None:
    """004-15, 004-45: a write is two trips, a read is one; health rides along with each script."""
    record = await wire.desk.head((await wire.desk.made("key-0")).record_id)
    named = {"record_id": record.record_id}
    write = (2, {Script.LOAD: 1, Script.COMMIT: 1})
    assert await wire.said(CREATE, idempotency_key="another", content="another") == write
    assert await wire.said(UPDATE, **named) == write
    assert await wire.said(PROPOSE, content="proposed") == write
    assert await wire.said(IMPORT) == write
    for rpc, script in (
        *((rpc, Script.LOAD) for rpc in (GET, BATCH, REVISION)),
        *((LIST, Script.REVISIONS), (SEARCH, Script.SEARCH), (EXPORT, Script.EXPORT)),
        *((COMPILE, Script.CANDIDATES), (PENDING, Script.PENDING)),
    ):
        assert await wire.said(rpc, **named) == (1, {script: 1}), rpc


async def test_what_is_done_again(wire: Wire) -> None:
    """004-43, 004-62: a replay is two reads; the driver sends no commit for it, nor one twice."""
    named = {"idempotency_key": "key-1"}
    assert await wire.said(CREATE, **named) == (2, {Script.LOAD: 2})
    made = await wire.desk.done(PROPOSE, idempotency_key="propose", content="proposed")
    asked = {"proposal_id": made.proposal.record_id, "idempotency_key": "promote"}
    # The text, and with it the key that may forbid it, is known after the first load.
    steps = {Script.LOAD: 2, Script.COMMIT: 1, Script.DELIVER: 2}
    assert await wire.said(PROMOTE, **asked) == (5, steps)
    again = {Script.LOAD: 2, Script.DELIVER: 1}
    assert await wire.said(PROMOTE, **asked) == (3, again)
    receipt = (await wire.desk.done(PROMOTE, **asked)).receipt_id
    assert await wire.said(EFFECT, receipt_id=receipt) == (1, {Script.EFFECT: 1})

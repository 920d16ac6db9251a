"""A Redis server that stops being fit while it is served with: every call is refused until then."""

import json
from typing import Any

import pytest

from tests.fixtures.broker import Stand
from tests.fixtures.desk import Desk, desk
from tests.fixtures.own_broker import NOT_SERVING, SERVING, health_becomes
from tests.fixtures.record_calls import CREATE, GET, SEARCH, UPDATE, Refused
from tests.fixtures.redis_memory import RedisMemory
from tests.fixtures.redis_spoilt import EVERY, OTHERS, UNFIT
from tests.fixtures.stand_records import stored

__all__ = ["desk"]

pytestmark = pytest.mark.memories("redis", "valkey")


def memory_of(stand: Stand) -> RedisMemory:
    """Return the memory of a stand, which is in Redis."""
    assert isinstance(stand.memory, RedisMemory)
    return stand.memory


async def told(desk: Desk, rpc: str, **changes: Any) -> tuple[str, str, dict[str, str]]:
    """Call; return code, reason and metadata of the refusal."""
    refused = await desk.told(rpc, **changes)
    return refused.code, refused.reason, refused.metadata


@pytest.mark.parametrize("name", EVERY)
async def test_what_is_not_fit_is_refused_at_the_next_call(desk: Desk, name: str) -> None:
    """004-38, 004-39, 004-45: reads, writes and first uses, with the fact; and nothing written."""
    memory = memory_of(desk.stand)
    record = await desk.made()
    kept = await stored(desk.stand, [desk.project])
    of_calls: tuple[str, str, dict[str, str]]
    if name in OTHERS:
        of_calls, fact = ("FAILED_PRECONDITION", "BINDING_MISMATCH", {}), "identity"
    else:
        fact = UNFIT[name][1]
        of_calls = ("FAILED_PRECONDITION", "PROVIDER_NEGOTIATION_FAILED", {"fact": fact})
    with EVERY[name](memory):
        for rpc in (GET, SEARCH, CREATE, UPDATE):
            named = {"record_id": record.record_id, "idempotency_key": f"key-{rpc}"}
            assert await told(desk, rpc, **named) == of_calls, rpc
        code, reason, metadata = await told(desk, GET, record_id=record.record_id, run="run-b")
        assert (code, reason) == ("FAILED_PRECONDITION", "PROVIDER_NEGOTIATION_FAILED")
        assert metadata == {"provider_id": "redis", "fact": fact}
    assert await stored(desk.stand, [desk.project]) == kept
    assert await desk.stand.rows("knowledge.pins", desk.project) == 1
    assert await desk.head(record.record_id) == record
    assert (await desk.changed(UPDATE, record, content="later")).revision == 2


async def test_an_append_only_file_that_is_switched_off(desk: Desk) -> None:
    """004-38: and on again it is refused until it holds everything; then calls go on by itself."""
    memory, record = memory_of(desk.stand), await desk.made()
    unfit = ("FAILED_PRECONDITION", "PROVIDER_NEGOTIATION_FAILED", {"fact": "aof"})
    with memory.setting("appendonly", "no", "yes"):
        assert await told(desk, GET, record_id=record.record_id) == unfit
    while isinstance(reply := await desk.call(GET, record_id=record.record_id), Refused):
        assert (reply.code, reply.reason, reply.metadata) == unfit
    assert reply.record == record


async def test_health_tells_of_a_server_that_is_not_fit(desk: Desk) -> None:
    """004-101: not ready while it is not, with the fact in the log; ready again by itself."""
    memory, broker = memory_of(desk.stand), desk.stand.broker
    await health_becomes(desk.channel, SERVING)
    before = len(broker.log().splitlines())
    for name in ("not_synced_always", "marker_of_another_generation"):
        with EVERY[name](memory):
            await health_becomes(desk.channel, NOT_SERVING)
        await health_becomes(desk.channel, SERVING)
    lines = [json.loads(line) for line in broker.log().splitlines()[before:]]
    unready = [line for line in lines if line.get("state") == "not_serving"]
    assert [(line["what"], line["error_type"], line.get("fact")) for line in unready] == [
        ("provider/redis", "NegotiationRefusedError", "aof"),
        ("provider/redis", "ResourceMismatchError", None),
    ]

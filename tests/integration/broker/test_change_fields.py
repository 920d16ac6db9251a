"""Fields of the changing RPCs and of BatchGetRecords over the wire: limits, and what is named."""

from typing import Any, Final

import pytest

from tests.fixtures.desk import Desk, desk
from tests.fixtures.record_calls import (
    BATCH,
    CHANGES,
    REJECT,
    RESTORE,
    SUPERSEDE,
)
from tests.fixtures.seeds import seed

pytestmark = pytest.mark.memories("postgres", "redis")

__all__ = ["desk"]

SKY: Final = "\U0001f308"
HIGHEST: Final = 2**63 - 1
IDENTIFIER: Final = "must be 1-256 ASCII letters, digits, . _ : -"
KEY: Final = "must be 1-128 ASCII letters, digits, . _ : -"
POSITIVE: Final = "must be greater than 0"
BAD: Final[list[tuple[str, list[Any], str]]] = [
    ("idempotency_key", ["", "k" * 129, "a b", "a/b", "\u00e4", "key\n"], KEY),
    ("record_id", ["", "a b", "a" * 257, "a/b", "a\x00"], IDENTIFIER),
    ("expected_revision", [0, -1, -HIGHEST - 1], POSITIVE),
    ("reason", [SKY * 1_025], "must be at most 1024 code points"),
    ("reason", ["a\nb"], "must not hold control characters"),
]
OWN: Final[dict[str, tuple[str, list[Any], str]]] = {
    SUPERSEDE: ("replacement_record_id", ["", "a/b", "a" * 257], IDENTIFIER),
    RESTORE: ("source_revision", [0, -1], POSITIVE),
    REJECT: ("reject_kind", [4, 99, -1], "must be a known value"),
}
"""The field that only one of them has."""


@pytest.mark.parametrize("rpc", CHANGES)
async def test_bad_fields(desk: Desk, rpc: str) -> None:
    """004-48, 004-55: each bad field is named, alone and with all others; nothing is written."""
    bad = [*BAD, *([OWN[rpc]] if rpc in OWN else [])]
    for field, values, rule in bad:
        for value in values:
            reply = await desk.told(rpc, **({"record_id": "any"} | {field: value}))
            assert (reply.code, reply.reason) == ("INVALID_ARGUMENT", "FIELD_INVALID")
            assert reply.violations == {field: rule}, value
    every = {field: values[0] for field, values, _ in bad}
    reply = await desk.told(rpc, **every)
    assert set(reply.violations) == set(every)
    assert await desk.stand.rows("memory.receipts", desk.project) == 0


@pytest.mark.parametrize("rpc", CHANGES)
async def test_fields_at_their_limits(desk: Desk, rpc: str) -> None:
    """004-48, 004-55: the longest key and reason are taken; the highest revision is a number."""
    named = await seed(desk.stand, desk.channel, rpc, desk.project)
    expected = named.get("expected_revision", 1)
    stale = await desk.told(rpc, **(named | {"expected_revision": HIGHEST}))
    assert (stale.reason, stale.metadata) == ("REVISION_STALE", {"current_revision": str(expected)})
    named |= {"reason": SKY * 1_024, "idempotency_key": "K._:-9" + "k" * 122}
    after = (await desk.done(rpc, **named)).record
    assert (await desk.revision(after)).reason == SKY * 1_024


async def test_batch(desk: Desk) -> None:
    """004-56: 1-25 ids; order and repetitions are kept; all of them or none."""
    made = [await desk.made(f"key-{n}", content=f"{n}") for n in range(3)]
    ids = [record.record_id for record in made]
    wanted = [2, 0, 0, 1, 2]
    records = (await desk.done(BATCH, record_ids=[ids[n] for n in wanted])).records
    assert [*records] == [made[n] for n in wanted]
    assert len((await desk.done(BATCH, record_ids=ids[:1] * 25)).records) == 25
    foreign = (await desk.made("key-foreign", agent="agent-b")).record_id
    for gone in (foreign, "absent"):
        reply = await desk.told(BATCH, record_ids=[*ids, gone])
        assert (reply.code, reply.reason) == ("NOT_FOUND", "RECORD_NOT_FOUND")
        assert reply.metadata == {}
    for count in (0, 26):
        reply = await desk.told(BATCH, record_ids=ids[:1] * count)
        assert reply.violations == {"record_ids": "must be 1-25 ids"}
    reply = await desk.told(BATCH, record_ids=[ids[0], "", "a/b"])
    assert reply.violations == dict.fromkeys(["record_ids[1]", "record_ids[2]"], IDENTIFIER)


async def test_a_large_batch(desk: Desk) -> None:
    """004-56: what no reply can hold is refused, not cut."""
    ids = [(await desk.made(f"key-{n}", content=SKY * 40_000)).record_id for n in range(22)]
    reply = await desk.told(BATCH, record_ids=ids)
    assert (reply.code, reply.reason) == ("INVALID_ARGUMENT", "REPLY_TOO_LARGE")
    assert len((await desk.done(BATCH, record_ids=ids[:18])).records) == 18

"""What was forgotten or rejected comes back by no method; who says the same meets at one key."""

import asyncio
import secrets
from datetime import UTC, datetime
from typing import Any, Final

import grpc
import pytest

from broker.api.v1 import record_pb2
from broker.domain.idempotency import receipt_for
from broker.memory.keys import content_key
from providers.model import ProjectKey, ReceiptKey, Tombstone, WriteSet
from providers.requests import Committed, KeyHolder, LoadRequest
from tests.fixtures import bundles
from tests.fixtures.decisions import ACTOR, SECONDS, provider_of
from tests.fixtures.desk import Desk, desk
from tests.fixtures.record_calls import (
    ARCHIVE,
    CREATE,
    IMPORT,
    REJECT,
    REOPEN,
    UNARCHIVE,
    UPDATE,
    Refused,
    is_refusal,
)
from tests.fixtures.stand_records import provider_operations
from tests.integration.broker.test_admission import WAYS, kept

__all__ = ["desk"]
pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

TOMBSTONED: Final = ("FAILED_PRECONDITION", "TOMBSTONED")
TEXT, SAME = "The moon is made of cheese.", "the MOON is\u00a0made  of cheese.\n"
OTHER: Final = "The moon is made of stone."
UNTRUE, CHANGED = record_pb2.REJECT_KIND_UNTRUE, record_pb2.REJECT_KIND_CHANGED
KEY: Final = content_key("agent-a", None, TEXT)


async def bury(desk: Desk, key: str = KEY) -> None:
    """Put a tombstone on a key, as forgetting does."""
    now = datetime.now(UTC)
    receipt = receipt_for(
        key=ReceiptKey(ACTOR, f"bury-{secrets.token_hex(8)}"),
        method="Forget",
        fingerprint=secrets.token_hex(32),
        refs=(),
        create_time=now,
    )
    write_set = WriteSet(
        project=ProjectKey("tenant-a", desk.project),
        receipt=receipt,
        tombstones=(Tombstone(key, "forgotten", now),),
    )
    async with provider_of(desk.stand) as provider:
        assert await provider.commit(write_set, timeout=SECONDS) == Committed()


async def holder(desk: Desk, key: str = KEY) -> KeyHolder | None:
    """Return what a key holds."""
    asked = LoadRequest(project=ProjectKey("tenant-a", desk.project), keys=(key,))
    async with provider_of(desk.stand) as provider:
        return (await provider.load(asked, timeout=SECONDS)).keys.get(key)


def held_by(record: record_pb2.Record) -> KeyHolder:
    """Return what a key holds that a record claims."""
    return KeyHolder(record.record_id, None)


async def barred(desk: Desk, attempt: Any, index: str = "") -> None:
    """Prove that an attempt is refused, and nothing written."""
    before = await kept(desk)
    refused = await attempt()
    assert isinstance(refused, Refused)
    assert (refused.code, refused.reason) == TOMBSTONED
    assert refused.metadata == ({"index": index} if index else {})
    assert "moon" not in refused.text().lower()
    assert await kept(desk) == before


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_forgotten(desk: Desk, way: Any) -> None:
    """002-17: the same text, in whatever case, composition and spacing."""
    await desk.made()
    attempt = await way(desk, SAME)
    await bury(desk)
    await barred(desk, attempt, "0" if way.__name__ == "bring" else "")


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_rejected(desk: Desk, way: Any) -> None:
    """002-16: as untrue or changed; archiving it changes nothing, reopening it lifts it."""
    attempt = await way(desk, SAME)
    made = await desk.made("key-m", content=TEXT)
    index = "0" if way.__name__ == "bring" else ""
    made = await desk.changed(REJECT, made, reject_kind=UNTRUE if index else CHANGED)
    await barred(desk, attempt, index)
    made = await desk.changed(ARCHIVE, made)
    await barred(desk, attempt, index)
    made = await desk.changed(UNARCHIVE, made)
    await desk.changed(REOPEN, made)
    assert not isinstance(await attempt(), Refused)


async def test_what_was_rejected_for_another_reason(desk: Desk) -> None:
    """002-16: not here, and unspecified, do not block; the key goes to who says it next."""
    for kind in (record_pb2.REJECT_KIND_NOT_HERE, record_pb2.REJECT_KIND_UNSPECIFIED):
        made = await desk.made(f"key-{kind}", content=TEXT)
        assert await holder(desk) == held_by(made)
        await desk.changed(REJECT, made, reject_kind=kind)
    made = await desk.made("key-last", content=SAME)
    assert await holder(desk) == held_by(made)


async def test_a_text_leaves_its_key_and_takes_another(desk: Desk) -> None:
    """An edit gives up what it does not say any more; who archives does not say it either."""
    first = await desk.made("key-1", content=TEXT)
    first = await desk.changed(UPDATE, first, content=OTHER)
    assert await holder(desk) is None
    second = await desk.made("key-2", content=TEXT)
    await desk.changed(UPDATE, first, content=SAME)
    assert await holder(desk) == held_by(second)
    await desk.changed(ARCHIVE, second)
    third = await desk.made("key-3", content=TEXT)
    assert await holder(desk) == held_by(third)


async def test_a_rejected_memory_keeps_what_it_said(desk: Desk) -> None:
    """002-18: an edit frees nothing while it is rejected."""
    made = await desk.made("key-1", content=TEXT)
    made = await desk.changed(REJECT, made, reject_kind=UNTRUE)
    await desk.changed(UPDATE, made, content=OTHER)
    for text in (TEXT, OTHER):
        refused = await desk.told(CREATE, idempotency_key="key-2", content=text)
        assert (refused.code, refused.reason) == TOMBSTONED


async def test_an_import_is_checked_before_it_is_tried(desk: Desk) -> None:
    """004-86: what only checks tells of it, too."""
    await desk.made()
    await bury(desk)
    good = bundles.history(desk.project, "good")
    bad = bundles.history(desk.project, "bad", content=SAME)
    refused = await desk.told(
        IMPORT, bundle=bundles.bundle(desk.project, good, bad), validate_only=True
    )
    assert (refused.reason, refused.metadata) == ("TOMBSTONED", {"index": "1"})


async def test_many_at_once_hold_one_key(desk: Desk) -> None:
    """Concurrent memories of one text meet at its key: one claims it, all are kept."""
    made = await asyncio.gather(*(desk.made(f"key-{n}", content=TEXT) for n in range(16)))
    held = await holder(desk)
    assert held in [held_by(each) for each in made]


async def test_a_rejection_among_writers(desk: Desk) -> None:
    """From the moment a rejection is told, nobody writes its text; before, anybody may."""
    first = await desk.made("key-first", content=TEXT)
    told = asyncio.Event()
    after: list[Any] = []

    async def write(n: int) -> None:
        began_after = told.is_set()
        reply = await desk.call(CREATE, idempotency_key=f"key-{n}", content=SAME)
        if began_after:
            after.append(reply)

    async def reject() -> None:
        await desk.changed(REJECT, first, reject_kind=UNTRUE)
        told.set()

    async def writers(lane: int) -> None:
        for n in range(6):
            await write(10 * lane + n)

    await asyncio.gather(reject(), *(writers(lane) for lane in range(4)))
    after.append(await desk.call(CREATE, idempotency_key="key-after", content=TEXT))
    assert all(
        is_refusal(each, grpc.StatusCode.FAILED_PRECONDITION, "TOMBSTONED") for each in after
    )
    assert await holder(desk) == held_by(first)


async def test_what_a_held_key_costs(desk: Desk) -> None:
    """B1: one trip more where somebody says the same, on PostgreSQL two."""

    async def cost(attempt: Any) -> dict[str, int]:
        before = provider_operations(desk.stand)
        reply = await attempt()
        assert not isinstance(reply, Refused)
        return dict(provider_operations(desk.stand) - before)

    first = await desk.made("key-1", content=TEXT)
    free, held = {"load": 1, "commit": 1}, {"load": 2, "commit": 1}
    if desk.stand.creates_unseen:
        held = {"load": 1, "commit": 2}
    made = await cost(lambda: desk.call(CREATE, idempotency_key="key-2", content=OTHER))
    assert made == ({"commit": 1} if desk.stand.creates_unseen else free)
    assert await cost(lambda: desk.call(CREATE, idempotency_key="key-3", content=SAME)) == held
    named = {"record_id": first.record_id}
    assert (
        await cost(lambda: desk.call(UPDATE, idempotency_key="u", content="new", **named)) == free
    )
    rejected = {"expected_revision": 2, "reject_kind": UNTRUE}
    assert await cost(lambda: desk.call(REJECT, **named, **rejected)) == free

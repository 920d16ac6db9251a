"""The Events service makes receipts facts: once, in order, all or nothing (004-80)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import grpc
import pytest
from structlog.testing import capture_logs

from tests.fixtures.events_calls import EventsDesk, events_desk
from tests.fixtures.postgres import Database
from tests.fixtures.receipt_broker import PROJECT, RUN, receipt

ONE_FACT = {"facts": 1, "inbox": 1, "streams": 1}
NOTHING = {"facts": 0, "inbox": 0, "streams": 0}


@pytest.fixture
async def desk(tmp_path: Path, postgres_database: Database) -> AsyncIterator[EventsDesk]:
    async with events_desk(tmp_path, postgres_database) as running:
        yield running


async def test_an_unbound_caller_who_may_write_gets_an_acknowledgement(desk: EventsDesk) -> None:
    """004-80, A6: receipt, token and the owner's answer are all without bounds; one fact."""
    answer = await desk.admitted()
    assert answer.receipt_id == "receipt-1"
    assert (answer.schema_version, answer.event_version) == (1, 1)
    assert (answer.project_id, answer.sequence) == (PROJECT, 1)
    (fact,) = await desk.site.facts(PROJECT)
    assert (fact.fact_id, fact.sequence) == (answer.fact_id, 1)
    assert fact.receipt_id == "receipt-1"
    assert await desk.site.counts(PROJECT) == ONE_FACT


async def test_each_peer_gets_its_own_token(desk: EventsDesk) -> None:
    """004-76, 004-80: knowledge's goes to the broker, that of Events to the owner."""
    events, knowledge = desk.identity.token(aud="events-tests"), desk.identity.token()
    metadata = [
        *desk.metadata(events, knowledge),
        ("x-tenant", "tenant-a"),
        ("x-request-id", "call-7"),
    ]
    outcome = await desk.admit(metadata=metadata)
    assert outcome.acknowledgement.sequence == 1
    common = {("x-tenant", "tenant-a"), ("x-request-id", "call-7")}
    (told,) = desk.broker.metadata
    assert {("authorization", f"Bearer {knowledge}"), *common} <= set(told)
    (question,) = desk.owner.questions[PROJECT]
    assert {("authorization", f"Bearer {events}"), *common} <= set(question.metadata)
    for metadata_seen in (told, question.metadata):
        assert not any(key == "x-knowledge-authorization" for key, _ in metadata_seen)


async def test_tokens_are_kept_nowhere(desk: EventsDesk) -> None:
    """004-76: neither the receipt that is kept nor the acknowledgement holds one."""
    token = desk.identity.token(aud=["events-tests", "knowledge-tests"])
    await desk.admit(metadata=desk.metadata(token))
    (fact,) = await desk.site.facts(PROJECT)
    assert token not in fact.receipt
    assert token.encode() not in fact.acknowledgement


async def test_facts_of_a_project_are_numbered_without_gaps(desk: EventsDesk) -> None:
    """004-80: many at once, and another project's count for nothing."""
    own = [receipt(f"receipt-{number}") for number in range(12)]
    other = receipt("other", project_id="project-b", authorization_resource_id="project-b")
    desk.broker.holds(*own, other)
    outcomes = await asyncio.gather(
        *(desk.admit(each.receipt_id) for each in own),
        desk.admit("other", project_id="project-b"),
    )
    *sequences, of_other = [each.acknowledgement.sequence for each in outcomes]
    assert sorted(sequences) == list(range(1, 13))
    assert of_other == 1
    assert [fact.sequence for fact in await desk.site.facts(PROJECT)] == list(range(1, 13))


async def test_the_same_receipt_again_gives_the_same_bytes(desk: EventsDesk) -> None:
    """004-80: also after a restart, when others came in between."""
    first = await desk.admit()
    desk.broker.holds(receipt(), receipt("receipt-2"))
    await desk.admit("receipt-2")
    again = await desk.admit()
    desk.site.stop()
    desk.site.start(desk.broker.address)
    after = await desk.admit()
    assert first.content == again.content == after.content
    assert len(first.content) > 0
    facts = await desk.site.facts(PROJECT)
    assert [fact.receipt_id for fact in facts] == ["receipt-1", "receipt-2"]
    assert facts[0].acknowledgement == first.content


async def test_identical_admissions_that_race_make_one_fact(desk: EventsDesk) -> None:
    """004-80, X3: all of them get the acknowledgement of the one that won."""
    outcomes = await asyncio.gather(*(desk.admit() for _ in range(8)))
    assert len({each.acknowledgement.SerializeToString() for each in outcomes}) == 1
    assert await desk.site.counts(PROJECT) == ONE_FACT


@pytest.mark.parametrize(
    "changes",
    [
        {"effect_id": "decision-x", "record_id": "decision-x"},
        {"context_revision": "context-v2"},
        {"membership_revision": 2},
        {"run_id": "run-b"},
    ],
    ids=str,
)
async def test_a_changed_receipt_is_a_conflict(desk: EventsDesk, changes: dict[str, Any]) -> None:
    """004-80, A3: one receipt id is one receipt for ever."""
    first = await desk.admit()
    desk.broker.holds(receipt(**changes))
    outcome = await desk.admit(run_id=changes.get("run_id", RUN))
    assert outcome.status is grpc.StatusCode.ALREADY_EXISTS
    assert outcome.code == "accepted_effect_identity_conflict"
    assert await desk.site.counts(PROJECT) == ONE_FACT
    desk.broker.holds(receipt())
    assert (await desk.admit()).content == first.content


async def test_one_receipt_id_in_two_tenants_is_two_facts(desk: EventsDesk) -> None:
    """004-80: the inbox is of a tenant and project."""
    first = (await desk.admit()).acknowledgement
    desk.broker.holds(receipt(tenant_id="tenant-b"))
    token = desk.identity.token(aud=["events-tests", "knowledge-tests"], tenant="tenant-b")
    second = (await desk.admit(metadata=desk.metadata(token))).acknowledgement
    assert (first.sequence, second.sequence) == (1, 1)
    assert first.fact_id != second.fact_id


@pytest.mark.parametrize("table", ["facts", "inbox", "streams"])
async def test_what_fails_in_between_leaves_nothing_and_tells_nothing(
    desk: EventsDesk, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    """004-79, 004-80, A4: fact, sequence and inbox are kept together; logs hold no id, no token."""
    token = desk.identity.token(aud=["events-tests", "knowledge-tests"])
    text = f"receipt-1 of Bearer {token}"
    await desk.site.break_table(table, text)
    with capture_logs() as lines:
        outcome = await desk.admit(metadata=desk.metadata(token))
    assert outcome.status is grpc.StatusCode.UNAVAILABLE
    assert outcome.code == "project_fact_unavailable"
    assert await desk.site.counts(PROJECT) == NOTHING
    (line,) = lines
    assert line["log_level"] == "warning"
    assert line["reason"] == "project_fact_unavailable"
    assert line["error_type"] == "RaiseError"
    said = f"{lines}{caplog.text}"
    for secret in ("receipt-1", token, "Bearer", PROJECT):
        assert secret not in said
    await desk.site.mend()
    assert (await desk.admit()).acknowledgement.sequence == 1


async def test_authority_that_is_gone_ends_replays_too(desk: EventsDesk) -> None:
    """004-80: what was acknowledged before is told to nobody who may not write now."""
    await desk.admit()
    desk.owner.scripts[PROJECT] = _without_grants
    outcome = await desk.admit()
    assert outcome.status is grpc.StatusCode.PERMISSION_DENIED
    assert outcome.code == "missing_effective_writeprojects"
    assert outcome.content == b""


@pytest.mark.parametrize("table", ["facts", "inbox"])
async def test_what_is_kept_never_changes(
    desk: EventsDesk, table: str, postgres_database: Database
) -> None:
    """004-80: not even for the role that owns the tables."""
    await desk.admit()
    for sql in (
        f"UPDATE events.{table} SET sequence = 2",
        f"DELETE FROM events.{table}",
        f"TRUNCATE events.{table} CASCADE",
    ):
        connection = await asyncpg.connect(desk.site.dsn)
        try:
            with pytest.raises(asyncpg.RaiseError, match="never change"):
                await connection.execute(sql)
        finally:
            await connection.close()
    assert await desk.site.counts(PROJECT) == ONE_FACT


async def test_the_role_of_events_sees_nothing_of_the_broker(desk: EventsDesk) -> None:
    """004-80: a schema of its own, and no other."""
    connection = await asyncpg.connect(desk.site.dsn)
    try:
        for sql in (
            "SELECT * FROM memory.records",
            "SELECT * FROM knowledge.pins",
            "CREATE SCHEMA mine",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(sql)
    finally:
        await connection.close()


async def _without_grants(_question: object, answer: Any, _context: object) -> bytes:
    del answer.context.grants[:]
    content: bytes = answer.SerializeToString()
    return content

"""Leases under locks, the acknowledgement's columns, and the look-up without a project."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator

import asyncpg
import pytest

from providers.conformance.delivery_steps import (
    accepted,
    acknowledge,
    acquire,
    deliver,
    effect_of,
    leased,
    release,
    undelivered,
)
from providers.deliveries import Acquired, UnscopedEffectRequest
from providers.errors import (
    NegotiationRefusedError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    ResourceMismatchError,
    StoredDataInvalidError,
)
from providers.model import AcceptedEffect, ProjectKey
from providers.postgres import statements
from providers.postgres.provider import PostgresMemoryProvider
from tests.fixtures.postgres import Database
from tests.integration.providers.waiting import blocked_sessions

PROJECT = ProjectKey("t1", "p1")
LEASE_MS = 400
LATE_SECONDS = LEASE_MS / 1000 + 0.2
ASKED = UnscopedEffectRequest(tenant_id="t1", receipt_id="e", issuer="i", subject="s")
DELIVERED = (
    "UPDATE memory.effects SET delivered = true, lease_token = NULL, leased_until = NULL,"
    " fact_id = 'f', fact_sequence = 7"
)


@pytest.fixture
async def effect(provider: PostgresMemoryProvider) -> AcceptedEffect:
    """An effect that is to be delivered, the only one there is."""
    return (await accepted(provider, PROJECT))[0]


@pytest.fixture
async def crowd(postgres_database: Database) -> AsyncIterator[PostgresMemoryProvider]:
    """A provider with connections enough for all to be inside the server at once."""
    made = PostgresMemoryProvider(postgres_database.options(pool_size=50))
    yield made
    await made.close()


async def hold(admin: asyncpg.Connection) -> None:
    """Lock the effect and change nothing of it."""
    await admin.execute("BEGIN")
    await admin.execute("SELECT FROM memory.effects FOR UPDATE")


# -------------------- what is judged after a lock


async def test_an_acknowledgement_that_waited_too_long_is_refused(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, effect: AcceptedEffect
) -> None:
    """004-74: judged after the wait, also where the one that was waited for changed nothing."""
    token = await leased(provider, PROJECT, effect, lease_ms=LEASE_MS)
    await hold(admin)
    task = asyncio.create_task(acknowledge(provider, PROJECT, effect, token))
    await blocked_sessions(admin, 1)
    await asyncio.sleep(LATE_SECONDS)
    await admin.execute("ROLLBACK")
    assert await task is False
    await undelivered(provider, PROJECT, effect)


async def test_an_acknowledgement_that_waited_for_a_live_lease_counts(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, effect: AcceptedEffect
) -> None:
    """004-74: a wait alone costs nobody the lease."""
    token = await leased(provider, PROJECT, effect)
    await hold(admin)
    task = asyncio.create_task(acknowledge(provider, PROJECT, effect, token))
    await blocked_sessions(admin, 1)
    await admin.execute("UPDATE memory.effects SET last_code = 'meanwhile'; COMMIT")
    assert await task is True
    assert (await effect_of(provider, PROJECT, effect)).delivered


async def test_a_lease_that_ended_during_the_wait_is_taken_for_its_whole_time(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, effect: AcceptedEffect
) -> None:
    """004-74: who waits for a lock is judged, and leases, by the time at its end."""
    await leased(provider, PROJECT, effect, lease_ms=LEASE_MS)
    await hold(admin)
    task = asyncio.create_task(acquire(provider, PROJECT, effect, lease_ms=60_000))
    await blocked_sessions(admin, 1)
    await asyncio.sleep(LATE_SECONDS)
    end = await admin.fetchval("SELECT clock_timestamp() + interval '1 minute'")
    await admin.execute("ROLLBACK")
    assert (await task).token is not None
    assert await admin.fetchval("SELECT leased_until FROM memory.effects") >= end


async def test_a_delivery_during_the_wait_is_seen(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, effect: AcceptedEffect
) -> None:
    """004-77: who comes second gets the acknowledgement that came first."""
    token = await leased(provider, PROJECT, effect)
    await hold(admin)
    tasks = [
        asyncio.create_task(acquire(provider, PROJECT, effect)),
        asyncio.create_task(acknowledge(provider, PROJECT, effect, token)),
        asyncio.create_task(release(provider, PROJECT, effect, token)),
    ]
    await blocked_sessions(admin, 3)
    await admin.execute(f"{DELIVERED}; COMMIT")
    found = await effect_of(provider, PROJECT, effect)
    assert await asyncio.gather(*tasks) == [
        Acquired(None, effect, True, found.acknowledgement),
        False,
        False,
    ]
    assert found.acknowledgement is not None
    assert found.acknowledgement.sequence == 7


async def test_a_lease_taken_during_the_wait_is_not_given_back(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, effect: AcceptedEffect
) -> None:
    """004-74: the old token is compared with the newest row."""
    token = await leased(provider, PROJECT, effect)
    await hold(admin)
    task = asyncio.create_task(release(provider, PROJECT, effect, token))
    await blocked_sessions(admin, 1)
    await admin.execute("UPDATE memory.effects SET lease_token = 'another'; COMMIT")
    assert await task is False
    assert await admin.fetchval("SELECT lease_token FROM memory.effects") == "another"


async def test_fifty_claims_of_one_effect(
    crowd: PostgresMemoryProvider, effect: AcceptedEffect
) -> None:
    """004-74: all inside the server at once, and one of them is the holder."""
    claims = await asyncio.gather(*(acquire(crowd, PROJECT, effect) for _ in range(50)))
    assert Counter(each.token is None for each in claims) == {True: 49, False: 1}
    assert {each.effect == effect for each in claims} == {True}


async def test_statements_of_delivery_look_at_the_clock_itself() -> None:
    """004-74: the time of a transaction or statement stands still while it waits for a lock."""
    wrong = re.compile(r"\b(now\s*\(|current_timestamp|localtimestamp|\w*(statement|transaction)_)")
    for name in ("ACQUIRE", "ACKNOWLEDGE", "RELEASE", "EFFECT", "PENDING"):
        sql = "\n".join(line.partition("--")[0] for line in getattr(statements, name).splitlines())
        assert wrong.search(sql) is None
        assert ("clock_timestamp()" in sql) == (name in {"ACQUIRE", "ACKNOWLEDGE"})


# -------------------- what the server refuses


@pytest.mark.parametrize(
    ("option", "wanted"),
    [("lock_ms", ProviderUnavailableError), ("statement_ms", ProviderTimeoutError)],
)
async def test_a_lock_that_is_not_given_leaves_no_doubt(
    postgres_database: Database,
    admin: asyncpg.Connection,
    effect: AcceptedEffect,
    option: str,
    wanted: type[Exception],
) -> None:
    """004-35: the server said that it did nothing, so nothing is unknown."""
    provider = PostgresMemoryProvider(postgres_database.options(**{option: 100}))
    token = await leased(provider, PROJECT, effect)
    await hold(admin)
    for call in (
        acquire(provider, PROJECT, effect),
        acknowledge(provider, PROJECT, effect, token),
        release(provider, PROJECT, effect, token),
    ):
        with pytest.raises(wanted):
            await call
    await admin.execute("ROLLBACK")
    assert await acknowledge(provider, PROJECT, effect, token)
    await provider.close()


async def test_nothing_is_leased_or_delivered_on_another_resource(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, effect: AcceptedEffect
) -> None:
    """004-45: the marker guards the statement that writes, not only its answer."""
    token = await leased(provider, PROJECT, effect)
    before = await admin.fetchrow("SELECT * FROM memory.effects")
    for marker in ("UPDATE memory.resource SET generation = 9", "DELETE FROM memory.resource"):
        await admin.execute(marker)
        for call in (
            acknowledge(provider, PROJECT, effect, token),
            release(provider, PROJECT, effect, token),
            acquire(provider, PROJECT, effect),
            provider.unscoped_effect(ASKED, timeout=10),
        ):
            with pytest.raises(ResourceMismatchError):
                await call
    await admin.execute("UPDATE memory.effects SET lease_token = NULL, leased_until = NULL")
    with pytest.raises(ResourceMismatchError):
        await acquire(provider, PROJECT, effect)
    after = await admin.fetchrow("SELECT * FROM memory.effects")
    assert before is not None
    assert after is not None
    assert dict(after) == {**before, "lease_token": None, "leased_until": None}


@pytest.mark.parametrize(
    "change",
    ["delivered = false", "fact_sequence = 8", "lease_token = 'x'", "last_code = 'x'"],
)
async def test_a_delivered_effect_changes_no_more(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    effect: AcceptedEffect,
    change: str,
) -> None:
    """004-72, 004-77: the database itself keeps a delivery as it was acknowledged."""
    await deliver(provider, PROJECT, effect)
    with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError):
        await admin.execute(f"UPDATE memory.effects SET {change}")


@pytest.mark.parametrize(
    "change",
    [
        "fact_id = 'f', fact_sequence = 1",
        "delivered = true, fact_id = 'f'",
        "delivered = true, fact_sequence = 1",
        "delivered = true, fact_id = 'f', fact_sequence = 0",
    ],
)
async def test_an_acknowledgement_is_whole_and_of_a_delivered_effect(
    admin: asyncpg.Connection, effect: AcceptedEffect, change: str
) -> None:
    """004-77: both columns or none, and only with a delivery."""
    with pytest.raises(asyncpg.CheckViolationError):
        await admin.execute(f"UPDATE memory.effects SET {change}")


@pytest.mark.parametrize(
    "damage",
    [
        "receipt = '[1]'",
        """receipt = '{"a": 1.5}'""",
        """receipt = '{"a": true}'""",
        """receipt = '{"a": {}}'""",
        "accept_time = 'infinity'",
        "delivered = true, fact_id = '', fact_sequence = 1",
    ],
)
async def test_a_damaged_effect_is_told(
    provider: PostgresMemoryProvider,
    admin: asyncpg.Connection,
    effect: AcceptedEffect,
    damage: str,
) -> None:
    """004-44: by every method that would return it."""
    await admin.execute("ALTER TABLE memory.effects DISABLE TRIGGER USER")
    await admin.execute(f"UPDATE memory.effects SET {damage}")
    for call in (effect_of(provider, PROJECT, effect), acquire(provider, PROJECT, effect)):
        with pytest.raises(StoredDataInvalidError):
            await call


@pytest.mark.parametrize("index", ["effects_pending", "effects_unscoped"])
async def test_a_lost_index_is_told_at_negotiation(
    provider: PostgresMemoryProvider, admin: asyncpg.Connection, index: str
) -> None:
    """004-27: without them a page walks through all that was ever delivered."""
    await provider.negotiate(timeout=10)
    await admin.execute(f"DROP INDEX memory.{index}")
    with pytest.raises(NegotiationRefusedError) as refused:
        await provider.negotiate(timeout=10)
    assert refused.value.fact == "index"

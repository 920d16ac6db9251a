"""How a test knows that a statement has come as far as a lock."""

import asyncio

import asyncpg


async def blocked_sessions(admin: asyncpg.Connection, number: int) -> None:
    """Return once so many sessions of the database wait for a lock."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    while await admin.fetchval(waiting) < number:
        await admin.execute("SELECT pg_stat_clear_snapshot()")
        await asyncio.sleep(0.01)

"""How a test stores what the database would refuse."""

import asyncpg

_CHECKS = """
SELECT format('ALTER %s DROP CONSTRAINT %I', CASE
    WHEN contypid = 0 THEN 'TABLE ' || conrelid::regclass
    ELSE 'DOMAIN ' || contypid::regtype
END, conname)
FROM pg_constraint
WHERE contype = 'c' AND connamespace = 'memory'::regnamespace
"""


async def drop_checks(admin: asyncpg.Connection) -> None:
    """Take away the checks of all tables and of all domains."""
    for row in await admin.fetch(_CHECKS):
        await admin.execute(row[0])

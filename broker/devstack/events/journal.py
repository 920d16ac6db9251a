"""Keeps facts, their order, and the receipts they came from, in PostgreSQL."""

from __future__ import annotations

import json
from importlib.resources import files as resources
from typing import Any
from uuid import uuid4

import asyncpg
from google.protobuf.json_format import MessageToDict

from broker.api.v1 import effect_pb2
from broker.devstack.events.refusal import Refusal, RefusalError
from broker.owners.v1 import events_service_pb2 as pb

CONNECTIONS = 4
STATEMENT_S = 5.0
_STARTERS_LOCK = 4_004_080

_MAKE_STREAM = """
    INSERT INTO events.streams (tenant_id, project_id, last_sequence) VALUES ($1, $2, 0)
    ON CONFLICT DO NOTHING
"""
_LOCK_STREAM = """
    SELECT last_sequence FROM events.streams WHERE tenant_id = $1 AND project_id = $2 FOR UPDATE
"""
_ADVANCE_STREAM = """
    UPDATE events.streams SET last_sequence = $3 WHERE tenant_id = $1 AND project_id = $2
"""
_KEPT = """
    SELECT receipt, acknowledgement FROM events.inbox
    WHERE tenant_id = $1 AND project_id = $2 AND receipt_id = $3
"""
_ADD_FACT = """
    INSERT INTO events.facts (tenant_id, project_id, sequence, fact_id, effect_id, event_version)
    VALUES ($1, $2, $3, $4, $5, $6)
"""
_ADD_RECEIPT = """
    INSERT INTO events.inbox
        (tenant_id, project_id, receipt_id, receipt, acknowledgement, sequence)
    VALUES ($1, $2, $3, $4, $5, $6)
"""


class Journal:
    """The schema ``events`` of one database. Open before use."""

    def __init__(self, dsn: str) -> None:
        """Describes the database.

        Args:
            dsn: Its URL, of the role that owns the schema ``events``.
        """
        self._dsn = dsn
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None

    async def open(self) -> None:
        """Connects, and makes the tables where they are missing.

        Raises:
            OSError, asyncpg.PostgresError: The database cannot be reached or refuses.
        """
        pool = await asyncpg.create_pool(
            self._dsn, min_size=1, max_size=CONNECTIONS, command_timeout=STATEMENT_S
        )
        self._pool = pool
        tables = (resources("broker.devstack.events") / "schema.sql").read_text(encoding="utf-8")
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _STARTERS_LOCK)
            await connection.execute(tables)

    async def close(self) -> None:
        """Closes the connections; a transaction that runs is undone."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.terminate()

    async def admit(self, receipt: effect_pb2.EffectReceipt) -> pb.AdmitAcceptedEffectResponse:
        """Makes a receipt the next fact of its project: fact, sequence and inbox in one commit.

        Whoever admits into a project waits for those before, so the sequence has no gap. The same
        receipt again gives what was acknowledged the first time.

        Raises:
            RefusalError: Another receipt has this id.
            OSError, asyncpg.PostgresError, asyncpg.InterfaceError: Nothing was kept, or it is not
                known whether it was; the same receipt may be admitted again.
        """
        assert self._pool is not None, "open the journal first"
        said = canonical(receipt)
        stream = receipt.tenant_id, receipt.project_id
        async with (
            self._pool.acquire(timeout=STATEMENT_S) as connection,
            connection.transaction(),
        ):
            await connection.execute(_MAKE_STREAM, *stream)
            last = await connection.fetchval(_LOCK_STREAM, *stream)
            kept = await connection.fetchrow(_KEPT, *stream, receipt.receipt_id)
            if kept is None:
                return await _added(connection, receipt, said, last + 1)
            if kept["receipt"] != said:
                raise RefusalError(Refusal.RECEIPT_CONFLICT)
            return pb.AdmitAcceptedEffectResponse.FromString(kept["acknowledgement"])


def canonical(receipt: effect_pb2.EffectReceipt) -> str:
    """Returns the one text of a receipt: equal receipts have equal texts, others do not."""
    said = MessageToDict(receipt, preserving_proto_field_name=True)
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


async def _added(
    connection: Any, receipt: effect_pb2.EffectReceipt, said: str, sequence: int
) -> pb.AdmitAcceptedEffectResponse:
    stream = receipt.tenant_id, receipt.project_id
    acknowledgement = pb.AdmitAcceptedEffectResponse(
        receipt_id=receipt.receipt_id,
        schema_version=receipt.schema_version,
        event_version=receipt.event_version,
        fact_id=str(uuid4()),
        project_id=receipt.project_id,
        sequence=sequence,
    )
    fact = acknowledgement.fact_id, receipt.effect_id, receipt.event_version
    sent = acknowledgement.SerializeToString(deterministic=True)
    await connection.execute(_ADVANCE_STREAM, *stream, sequence)
    await connection.execute(_ADD_FACT, *stream, sequence, *fact)
    await connection.execute(_ADD_RECEIPT, *stream, receipt.receipt_id, said, sent, sequence)
    return acknowledgement

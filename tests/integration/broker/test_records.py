"""RecordService of a real broker process, as a caller sees it."""

from typing import Any

import pytest

from broker.api.v1 import record_pb2, record_service_pb2
from tests.fixtures.broker import Stand, records

pytestmark = pytest.mark.memories("postgres", "redis", "valkey", "cosmos")


def create(
    project: str, key: str = "key-1", **changes: Any
) -> record_service_pb2.CreateRecordRequest:
    """Return a request for a memory."""
    given: dict[str, Any] = {
        "scope": record_pb2.Scope(project_id=project, run_id="run-a", agent_id="agent-a"),
        "idempotency_key": key,
        "kind": record_pb2.RECORD_KIND_MEMORY,
        "type": "note",
        "content": "the sky is blue",
    }
    return record_service_pb2.CreateRecordRequest(**(given | changes))


async def test_a_memory_lives(stand: Stand) -> None:
    """004-51, 004-52, 004-63: create, get, update, retry, history."""
    project = stand.project()
    async with stand.channel() as channel:
        made = await records(channel).CreateRecord(create(project), metadata=stand.metadata())
        again = await records(channel).CreateRecord(create(project), metadata=stand.metadata())
    assert not made.replayed and again.replayed
    assert again.record == made.record
    assert stand.owner.counts[project] == 2 + 3

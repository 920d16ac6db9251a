"""Whose memories reach whom, through gRPC, over every store."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from broker.api.v1 import memory_service_pb2 as pb
from broker.api.v1 import record_pb2
from tests.fixtures.broker import Stand
from tests.fixtures.memory_calls import SKIPPED, Agent
from tests.fixtures.record_calls import COMPILE, CREATE, GET, PROPOSE, UPDATE, Refused

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

TEA: Final = "Mira drinks green tea every morning before work"


@pytest.fixture
async def agent(stand: Stand) -> AsyncIterator[Agent]:
    """An agent of a fresh project."""
    async with stand.channel() as channel:
        yield Agent(stand, channel)


async def test_what_one_run_remembers_another_recalls(agent: Agent) -> None:
    """003-07, 003-09: runs and sources tell where a memory came from, and part nothing."""
    kept = await agent.kept(TEA, source="session-1")
    other = Agent(agent.stand, agent.channel, agent.project, run="run-b")
    assert await other.texts("green tea") == [TEA]
    told = (await other.remember(TEA, source="session-2")).remembered
    assert (told.action, told.record.record_id) == (SKIPPED, kept.record_id)
    assert (told.record.source_run_id, told.record.facet.source) == ("run-a", "session-1")


async def test_only_memories_are_recalled(agent: Agent) -> None:
    """001-23: neither a session's note nor a proposal, by words or by tags."""
    kept = await agent.kept(TEA)
    note: dict[str, Any] = {"content": TEA, "title": "tea", "tags": ["tea"]}
    for rpc, more in (
        (CREATE, {"kind": record_pb2.RECORD_KIND_SESSION_CONTEXT}),
        (PROPOSE, {"type": "scope"}),
    ):
        made = await agent.change(rpc, kept, **note, **more)
        assert not isinstance(made, Refused), made
    found = await agent.recall("green tea")
    assert [each.record.record_id for each in found.results] == [kept.record_id]
    tagged = await agent.send("RecallByTags", filter=pb.RecallFilter(tags_all=["tea"]))
    assert not isinstance(tagged, Refused) and not tagged.records


async def test_reading_keeps_nothing(agent: Agent) -> None:
    """003-08: memories are those that somebody told."""
    kept = await agent.kept(TEA)
    await agent.recall("does Mira like coffee?")
    await agent.send("RecallByTags", filter=pb.RecallFilter(tags_all=["coffee"]))
    compiled = await agent.change(COMPILE, kept, query="coffee")
    assert not isinstance(compiled, Refused), compiled
    assert await agent.stand.rows("memory.records", agent.project) == 1
    assert await agent.stand.rows("memory.revisions", agent.project) == 1


async def test_each_result_says_when_and_by_whom(agent: Agent) -> None:
    """000-31, R4: the stored date and a label of origin and trust, which are two things."""
    external = await agent.kept("Tea one is green")
    spoken = await agent.kept("Tea two is black", source_type=record_pb2.SOURCE_TYPE_AGENT)
    manual = await agent.kept("Tea three is white", source_type=record_pb2.SOURCE_TYPE_MANUAL)
    found = (await agent.recall("tea")).results
    assert {each.record.record_id: each.trust_label for each in found} == {
        external.record_id: "external, pending",
        spoken.record_id: "agent, pending",
        manual.record_id: "operator, approved",
    }
    for each in found:
        assert each.HasField("store_time")
        assert each.store_time == each.record.create_time


async def test_memories_of_others_are_absent(agent: Agent) -> None:
    """002-19: neither read, edited nor forgotten; an own edit keeps what it is about."""
    kept = await agent.kept(TEA, source="session-1", subject="tea")
    other = Agent(agent.stand, agent.channel, agent.project, "agent-b")
    for rpc in (GET, UPDATE):
        refused = await other.change(rpc, kept)
        assert (refused.code, refused.reason) == ("NOT_FOUND", "RECORD_NOT_FOUND")
    assert not (await other.forget(kept)).found
    assert await agent.texts("green tea") == [TEA]
    edited = (await agent.change(UPDATE, kept, content="Mira drinks coffee")).record
    assert (edited.facet.source, edited.facet.subject) == ("session-1", "tea")

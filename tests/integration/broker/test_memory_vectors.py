"""Memories with vectors of the local model, over every store, before and after a restart."""

from pathlib import Path
from typing import Any, Final

import pytest

from broker.api.v1 import memory_service_pb2 as pb
from broker.api.v1 import record_pb2
from tests.fixtures.broker import Stand
from tests.fixtures.memory import Memory
from tests.fixtures.memory_calls import CREATED, SKIPPED, Agent
from tests.fixtures.own_broker import Settings, own_broker
from tests.fixtures.postgres import Database
from tests.fixtures.record_calls import REJECT, UPDATE

pytestmark = pytest.mark.memories("postgres", "redis", "cosmos")

CAT: Final = "The office cat is called Miso"
CAT_AGAIN: Final = "Miso is the name of the office cat"
KITTEN: Final = "pet feline of the workplace"
"""Asks for the cat without one of its words."""


def with_model(settings: Settings) -> None:
    """Have vectors made in the process."""
    settings["embeddings"] = {"provider": "local"}


async def found(agent: Agent, query: str = KITTEN, **fields: Any) -> dict[str, tuple[int, int]]:
    """Return the texts that are recalled, with their places by words and by vectors."""
    reply = await agent.recall(query, **fields)
    assert reply.arms[1].ran, reply.arms
    return {each.record.content: (each.keyword_rank, each.vector_rank) for each in reply.results}


async def test_what_vectors_find_and_what_they_do_not(
    stand: Stand, tmp_path: Path, postgres_database: Database, own_memory: Memory
) -> None:
    """§6.3, 6.6-11, 6.6-12, 6.6-16: no arm finds what is out of use, by its old text or any."""
    with own_broker(stand, tmp_path, postgres_database, with_model, memory=own_memory) as own:
        async with own.channel() as channel:
            agent = Agent(own, channel)
            cat = await agent.kept(CAT)
            assert await found(agent) == {CAT: (0, 1)}
            again = await agent.remember(CAT.upper())
            assert again.remembered.signal == pb.DEDUP_SIGNAL_EXACT
            near = await agent.remember("The office cat is called Miso.")
            assert (near.remembered.action, near.vectors.ran) == (SKIPPED, True)
            assert near.remembered.signal == pb.DEDUP_SIGNAL_COSINE
            other = await agent.kept("The printer on floor two is out of paper")
            dog = await agent.change(
                UPDATE, cat, content="The printer is out of toner", type="note"
            )
            rejected = await agent.kept("A parrot lives in the lobby of the workplace")
            kind = record_pb2.REJECT_KIND_UNTRUE
            await agent.change(REJECT, rejected, reject_kind=kind)
        own.broker.stop()
        own.broker.start()
        async with own.channel() as channel:
            agent = Agent(own, channel, agent.project)
            assert set(await found(agent)) == {other.content, dog.record.content}
            assert (await found(agent, "where is toner missing"))[dog.record.content][1] == 1
            assert (await agent.forget(other)).found
            assert set(await found(agent)) == {dog.record.content}
            assert (await agent.remember(other.content)).reason == "TOMBSTONED"
            assert (await agent.remember(rejected.content)).reason == "TOMBSTONED"
            assert (await agent.remember(CAT_AGAIN)).remembered.action == CREATED
            only = await found(agent, mode=pb.RECALL_MODE_HYBRID)
            assert next(iter(only)) == CAT_AGAIN

"""Callers of the Cosmos adapter who leave in the middle of a call: what that costs the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.devstack.cosmos import CosmosServer
from providers.conformance import specimens
from providers.conformance.steps import load, stored
from providers.cosmos.provider import CosmosMemoryProvider
from providers.model import ProjectKey
from providers.requests import LoadRequest, Replayed
from tests.fixtures.cosmos_resource import CosmosResource

PROJECT = ProjectKey("t1", "p1")
CALLERS = 8
SECONDS = 20.0


@pytest.fixture
def server(memory: CosmosResource) -> CosmosServer:
    return memory.server


async def becomes(server: CosmosServer, name: str, wanted: int) -> None:
    """Wait until a number of what is under way is the wanted one."""
    while server.control.traffic()[name] != wanted:  # noqa: ASYNC110 - another process's
        await asyncio.sleep(0.01)


async def answered(server: CosmosServer, before: dict[str, int]) -> None:
    """Let held requests go on, and wait until no more of them run than before."""
    server.control.release()
    while server.control.traffic()["running"] > before["running"]:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)


@asynccontextmanager
async def held(server: CosmosServer, kind: str, *calls: Any) -> AsyncIterator[dict[str, int]]:
    """Let callers leave whose requests are held; give what was under way, those left aside."""
    server.control.hold(kind)
    try:
        callers = [asyncio.ensure_future(call) for call in calls]
        await becomes(server, "held", len(calls))
        before = server.control.traffic()
        before["running"] -= len(calls)
        for each in callers:
            each.cancel()
        await asyncio.wait(callers)
        assert all(each.cancelled() for each in callers)
        yield before
    finally:
        server.control.release()


async def test_who_leaves_takes_no_connection_along(
    cosmos_provider: CosmosMemoryProvider, server: CosmosServer
) -> None:
    """G-4: requests are answered all the same, and others use their connections."""
    asked = LoadRequest(project=PROJECT, graph=True)
    calls = (cosmos_provider.load(asked, timeout=SECONDS) for _ in range(CALLERS))
    async with held(server, "query", *calls) as before:
        await answered(server, before)
        await load(cosmos_provider, PROJECT, graph=True)
        assert server.control.traffic()["connections"] >= before["connections"]


async def test_what_is_not_answered_is_given_up(
    cosmos_provider: CosmosMemoryProvider, server: CosmosServer
) -> None:
    """G-4: a while later; no caller waits for a connection that another one left waiting."""
    asked = LoadRequest(project=PROJECT, graph=True)
    calls = (cosmos_provider.load(asked, timeout=SECONDS) for _ in range(CALLERS))
    async with held(server, "query", *calls) as before:
        await becomes(server, "connections", before["connections"] - CALLERS)


async def test_a_commit_without_its_caller_is_found_by_the_next(
    cosmos_provider: CosmosMemoryProvider, server: CosmosServer
) -> None:
    """004-63, C-9: it was sent, so it is there with its receipt; and it was sent once."""
    record = specimens.memory("r1")
    write = specimens.create(PROJECT, record)
    async with held(server, "batch", cosmos_provider.commit(write, timeout=SECONDS)) as before:
        await answered(server, before)
    again = await cosmos_provider.commit(write, timeout=SECONDS)
    assert again == Replayed(write.receipt)
    await stored(cosmos_provider, PROJECT, record)
    assert server.control.counts()["batch"] == 1

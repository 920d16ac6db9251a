"""What is left of connections to Cosmos DB after the provider was closed: nothing."""

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from broker.devstack.cosmos import CosmosServer, Fault
from providers.cosmos.provider import CosmosMemoryProvider
from providers.errors import NegotiationRefusedError, ProviderTimeoutError
from tests.fixtures.cosmos_memory import CosmosMemory, fresh_database

ROUNDS = 10
OTHER_KEY = "b3RoZXI="
LATE = Fault(kind="account", after=1, late_ms=300)
"""The SDK asks for the account once more in the background, while the provider is in use."""


@pytest.fixture
def kept(cosmos: CosmosServer) -> Iterator[CosmosMemory]:
    """A fresh resource, for loops that begin and end."""
    yield CosmosMemory(cosmos, fresh_database(cosmos))
    cosmos.control.clear()


async def used(kept: CosmosMemory) -> None:
    """Look at the account and the marker, and close."""
    provider = kept.provider()
    await provider.negotiate(timeout=10)
    await provider.ready(timeout=10)
    await provider.close()


async def while_it_is_asked(kept: CosmosMemory) -> None:
    """Close while the SDK waits for an answer that nobody asked it for."""
    kept.server.control.inject(LATE)
    provider = kept.provider()
    await provider.ready(timeout=10)
    await provider.close()
    kept.server.control.clear()


async def let_in_nowhere(kept: CosmosMemory) -> None:
    """Be refused by the account, and close."""
    provider = CosmosMemoryProvider(kept.settings(key=OTHER_KEY))
    with pytest.raises(NegotiationRefusedError):
        await provider.ready(timeout=10)
    await provider.close()


async def in_doubt(kept: CosmosMemory) -> None:
    """Give up on a call that is not answered, and close."""
    provider = kept.provider()
    await provider.ready(timeout=10)
    kept.server.freeze()
    with pytest.raises(ProviderTimeoutError):
        await provider.ready(timeout=0.05)
    await provider.close()
    kept.server.thaw()


@pytest.mark.parametrize("work", [used, while_it_is_asked, let_in_nowhere, in_doubt])
def test_a_closed_provider_leaves_no_connection(
    kept: CosmosMemory, work: Callable[[CosmosMemory], Coroutine[Any, Any, None]]
) -> None:
    """Clauses G-8 and G-9: the loop can end at once, and no transport is left open to it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(ROUNDS):
            asyncio.run(work(kept))
            gc.collect()
    assert [str(each.message) for each in told] == []

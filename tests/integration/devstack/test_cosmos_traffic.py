"""Requests of the stand-in that a test holds, and connections that it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import AzureError

from tests.fixtures.cosmos import Place

BATCH: list[Any] = [("create", ({"id": "a", "projectId": "p"},))]


@pytest.fixture(autouse=True)
def _released(place: Place) -> Iterator[None]:
    yield
    place.server.control.release()


def send(place: Place) -> asyncio.Task[Any]:
    """Begins to send a batch."""
    return asyncio.ensure_future(place.container.execute_item_batch(BATCH, "p"))


async def becomes(place: Place, name: str, wanted: int) -> None:
    """Waits until a number of what is under way is the wanted one."""
    while place.server.control.traffic()[name] != wanted:  # noqa: ASYNC110 - another process's
        await asyncio.sleep(0.01)


async def ended(place: Place, before: int) -> None:
    """Waits until no more requests run than before; earlier tests may have left some."""
    while place.server.control.traffic()["running"] > before:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)


async def test_held_requests_wait_and_others_do_not(place: Place) -> None:
    """Nothing of a batch is there before it is let go on; reads are answered meanwhile."""
    before = place.server.control.traffic()["running"]
    place.server.control.hold("batch")
    sent = send(place)
    await becomes(place, "held", 1)
    assert await place.ids() == set()
    assert not sent.done()
    place.server.control.release()
    assert len(await sent) == 1
    assert await place.ids() == {"a"}
    assert place.server.control.traffic()["held"] == 0
    await ended(place, before)
    await place.container.execute_item_batch([("delete", ("a",))], "p")


async def test_one_kind_is_held_at_a_time(place: Place) -> None:
    place.server.control.hold("batch")
    sent = send(place)
    await becomes(place, "held", 1)
    place.server.control.hold("delete")
    await sent
    deleting = asyncio.ensure_future(place.container.delete_item("a", "p"))
    await becomes(place, "held", 1)
    place.server.control.release()
    await deleting


@pytest.mark.parametrize("leaving", ["client", "connection"])
async def test_a_held_request_is_done_without_its_client(place: Place, leaving: str) -> None:
    """C17: who went before the answer cannot know, and it was done."""
    before = place.server.control.traffic()["running"]
    place.server.control.hold("batch")
    sent = send(place)
    await becomes(place, "held", 1)
    assert place.server.control.traffic()["running"] > 0
    if leaving == "client":
        sent.cancel()
    else:
        place.server.control.disconnect()
    with pytest.raises((asyncio.CancelledError, AzureError)):
        await sent
    place.server.control.release()
    await ended(place, before)
    await place.container.read()
    assert await place.ids() == {"a"}


async def test_connections_are_counted_and_ended(place: Place) -> None:
    """A client that was idle opens another one, and notices nothing."""
    await place.container.read()
    assert place.server.control.traffic()["connections"] >= 1
    place.server.control.disconnect()
    await becomes(place, "connections", 0)
    await place.container.read()
    assert place.server.control.traffic()["connections"] == 1

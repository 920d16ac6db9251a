"""Facts about the real SDK that an adapter builds on, measured at the stand-in.

They hold for the locked version. Where one changes with an upgrade, so may what keeps a write from
being sent twice: read them again before changing the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient

from broker.devstack.cosmos import CosmosServer, Fault
from tests.fixtures.cosmos import SINGLE_SEND, Place, SentAgainError, cosmos_client

BATCH: list[Any] = [("create", ({"id": "a", "projectId": "p"},))]
MANY = 50
FAULTS = {
    "429": Fault.throttled("batch", retry_after_ms=1, times=MANY),
    "408": Fault.timed_out("batch", applied=True, times=MANY),
    "410/1002": Fault.refused("batch", 410, 1002, times=MANY),
    "413": Fault.refused("batch", 413, times=MANY),
    "449": Fault.refused("batch", 449, times=MANY),
    "500": Fault.refused("batch", 500, times=MANY),
    "503": Fault.refused("batch", 503, times=MANY),
    "403/3": Fault.refused("batch", 403, 3, times=2),
    "403/1008": Fault.refused("batch", 403, 1008, times=2),
    "403/1014": Fault.refused("batch", 403, 1014, times=MANY),
    "404/1002": Fault.refused("batch", 404, 1002, times=MANY),
    "400/1024": Fault.refused("batch", 400, 1024, times=MANY),
    "lost": Fault.dropped("batch", applied=True, times=MANY),
    "late": Fault(kind="batch", late_ms=60_000, times=MANY),
}
QUICK = {"retry_backoff_max": 0.01, "retry_backoff_factor": 0.01}


async def sends(
    place: Place, fault: Fault, options: Mapping[str, Any], *, once: bool = False
) -> int:
    """Returns how many POSTs one batch becomes while a fault strikes each of them."""
    async with cosmos_client(place.server, options, once=once) as client:
        database = client.get_database_client(place.database.id)
        container = database.get_container_client(place.container.id)
        await container.read()
        place.server.control.forget()
        place.server.control.inject(fault)
        try:
            await container.execute_item_batch(BATCH, "p", read_timeout=0.3)
        except (AzureError, SentAgainError):
            place.server.control.clear()
        return place.server.control.counts()["batch"]


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "429": 10,
        "503": 2,
        "403/3": 3,
        "404/1002": 2,
        "400/1024": 2,
        "lost": 4,
        "late": 4,
        "408": 1,
        "410/1002": 1,
        "413": 1,
        "449": 1,
        "500": 1,
        "403/1014": 1,
    }.items(),
)
async def test_by_default_a_batch_is_sent_again(place: Place, name: str, expected: int) -> None:
    """C-9: also after a lost or late reply of a batch that was done."""
    assert await sends(place, FAULTS[name], QUICK) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"retry_throttle_total": 0}, 10),
        ({"retry_total": 0}, 10),
        ({"retry_throttle_total": -1}, 1),
    ],
    ids=str,
)
async def test_no_retries_is_spelt_minus_one(
    place: Place, options: dict[str, Any], expected: int
) -> None:
    """C-9: 0 counts as not given."""
    assert await sends(place, FAULTS["429"], QUICK | options) == expected


@pytest.mark.parametrize("name", FAULTS)
async def test_one_commit_is_one_post(place: Place, name: str) -> None:
    """C-9, 004-35: options do it for all but a container made anew, and the guard for that too."""
    expected = 2 if name == "400/1024" else 1
    assert await sends(place, FAULTS[name], SINGLE_SEND) == expected
    assert await sends(place, FAULTS[name], SINGLE_SEND, once=True) == 1


@pytest.mark.parametrize("once", [False, True])
async def test_a_container_made_anew_gets_the_batch_unless_it_is_guarded(
    place: Place, once: bool
) -> None:
    """C-9: the SDK reads the container again and sends the batch to the new one by itself."""
    async with cosmos_client(place.server, once=once) as client:
        database = client.get_database_client(place.database.id)
        container = database.get_container_client(place.container.id)
        await container.read()
        await anew(place)
        place.server.control.forget()
        if once:
            with pytest.raises(SentAgainError):
                await container.execute_item_batch(BATCH, "p")
        else:
            await container.execute_item_batch(BATCH, "p")
        assert place.server.control.counts()["batch"] == (1 if once else 2)
        assert await found(place) == (0 if once else 1)


async def anew(place: Place) -> None:
    await place.database.delete_container(place.container.id)
    await place.database.create_container(place.container.id, PartitionKey("/projectId"))


async def found(place: Place) -> int:
    body = {"query": "SELECT VALUE COUNT(1) FROM c"}
    query = {"x_ms_documentdb_isquery": "True", "content_type": "application/query+json"}
    (count,) = (await place.write("POST", "docs", body, **query)).body["Documents"]
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("kind", ["replace", "delete"])
async def test_the_transport_sends_put_and_delete_again(place: Place, kind: str) -> None:
    """C-9: on a connection that was used before, below every option; a batch of one is not."""
    item = {"id": "a", "projectId": "p"}
    await place.container.create_item(item)
    place.server.control.forget()
    place.server.control.inject(Fault.dropped(kind, applied=True))
    if kind == "replace":
        await place.container.replace_item("a", item)
    else:
        with pytest.raises(AzureError):
            await place.container.delete_item("a", "p")
    assert place.server.control.counts()[kind] == 2


async def test_reads_are_tried_again_only_by_the_transport(place: Place) -> None:
    """A GET on a used connection once more; a query not at all, but for 410/1002."""
    item = {"id": "a", "projectId": "p"}
    await place.container.create_item(item)
    place.server.control.forget()
    place.server.control.inject(Fault.dropped("read", applied=True))
    await place.container.read_item("a", "p")
    assert place.server.control.counts() == {"read": 2}
    assert await queries(place, Fault.refused("query", 503, times=MANY)) == 1
    assert await queries(place, Fault.throttled("query", times=MANY)) == 1
    assert await queries(place, Fault.refused("query", 410, 1002, times=MANY)) == 4


async def queries(place: Place, fault: Fault) -> int:
    place.server.control.forget()
    place.server.control.inject(fault)
    with pytest.raises(AzureError):
        await place.ids()
    place.server.control.clear()
    return place.server.control.counts()["query"]


@pytest.mark.parametrize("compact", [False, True])
async def test_text_is_sent_compactly_where_the_client_says_so(place: Place, compact: bool) -> None:
    """004-35: the default escapes what is not ASCII, and doubles the size of CJK."""
    async with cosmos_client(place.server, enable_compact_utf8_item_writes=compact) as client:
        database = client.get_database_client(place.database.id)
        container = database.get_container_client(place.container.id)
        item = {"id": "a", "projectId": "p", "text": "记" * 1000}
        await container.execute_item_batch([("create", (item,))], "p")
        (sent,) = [head["bytes"] for head in place.batches()]
        assert sent < 3_200 if compact else sent > 6_000
        assert (await container.read_item("a", "p"))["text"] == "记" * 1000


async def test_a_container_is_read_once_by_itself(place: Place) -> None:
    """The SDK needs its ``_rid``; after that a commit is one request and a read is one."""
    async with cosmos_client(place.server) as client:
        database = client.get_database_client(place.database.id)
        container: ContainerProxy = database.get_container_client(place.container.id)
        place.server.control.forget()
        await container.execute_item_batch(BATCH, "p")
        await container.read_item("a", "p")
        await container.execute_item_batch([("read", ("a",))], "p")
        counts = place.server.control.counts()
        assert counts | {"account": 0} == {
            "account": 0,
            "read container": 1,
            "batch": 2,
            "read": 1,
        }


async def test_the_sdk_itself_trusts_any_certificate_of_this_machine(cosmos: CosmosServer) -> None:
    """So the tests' clients have the connector check it; see ``Guard``."""
    async with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        found = client.list_databases()
        assert {str(each["id"]) async for each in found} >= set()

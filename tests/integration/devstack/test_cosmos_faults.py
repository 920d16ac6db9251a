"""Scripted faults of the stand-in, as the real SDK sees them when it sends each write once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from broker.devstack.cosmos import Fault
from tests.fixtures.cosmos import Place

BATCH: list[Any] = [("create", ({"id": each, "projectId": "p"},)) for each in "ab"]
DONE = {"a", "b"}
REPLIES = {
    "429": (Fault.throttled("batch", retry_after_ms=1234), 429, 3200),
    "408": (Fault.timed_out("batch", applied=False), 408, 0),
    "408 applied": (Fault.timed_out("batch", applied=True), 408, 0),
    "410/1002": (Fault.refused("batch", 410, 1002), 410, 1002),
    "413": (Fault.refused("batch", 413), 413, 0),
    "449": (Fault.refused("batch", 449), 449, 0),
    "500": (Fault.refused("batch", 500), 500, 0),
    "503": (Fault.refused("batch", 503), 503, 0),
    "403/1014": (Fault.refused("batch", 403, 1014), 403, 1014),
    "403/3": (Fault.refused("batch", 403, 3), 403, 3),
    "404/1002": (Fault.refused("batch", 404, 1002), 404, 1002),
}


async def ids(place: Place) -> set[str]:
    """Returns what is there; a read comes first, so that no query goes out on a dead connection."""
    await place.container.read()
    return await place.ids()


@pytest.mark.parametrize(("fault", "status", "substatus"), REPLIES.values(), ids=REPLIES)
async def test_a_reply(place: Place, fault: Fault, status: int, substatus: int) -> None:
    """004-35, C17: status and substatus arrive; one POST; done where the fault says so."""
    place.server.control.inject(fault)
    with pytest.raises(CosmosHttpResponseError) as failed:
        await place.container.execute_item_batch(BATCH, "p")
    assert (failed.value.status_code, failed.value.sub_status) == (status, substatus)
    assert place.server.control.counts()["batch"] == 1
    assert [head["status"] for head in place.batches()] == [status]
    assert await place.ids() == (DONE if fault.applied else set())


async def test_how_long_to_wait(place: Place) -> None:
    """004-35: the delay of a 429 is in the error's headers."""
    place.server.control.inject(Fault.throttled("batch", retry_after_ms=1234))
    with pytest.raises(CosmosHttpResponseError) as failed:
        await place.container.execute_item_batch(BATCH, "p")
    assert failed.value.headers["x-ms-retry-after-ms"] == "1234"


@pytest.mark.parametrize("applied", [False, True])
async def test_a_connection_that_ends(place: Place, applied: bool) -> None:
    """004-43: a lost reply looks to the SDK like a request that was never sent, done or not."""
    place.server.control.inject(Fault.dropped("batch", applied=applied))
    with pytest.raises(ServiceRequestError):
        await place.container.execute_item_batch(BATCH, "p")
    assert place.server.control.counts()["batch"] == 1
    assert await ids(place) == (DONE if applied else set())


@pytest.mark.parametrize("fault", [Fault(kind="batch", delay_ms=60_000), Fault(late_ms=60_000)])
async def test_a_reply_that_is_late(place: Place, fault: Fault) -> None:
    """G-4: whether it was done depends on where the time went."""
    place.server.control.inject(fault)
    with pytest.raises(ServiceResponseError):
        await place.container.execute_item_batch(BATCH, "p", read_timeout=0.3)
    assert place.server.control.counts()["batch"] == 1
    assert await ids(place) == (DONE if fault.late_ms else set())


@pytest.mark.parametrize("results", [0, 1])
async def test_a_short_list_of_results_is_no_error_to_the_sdk(place: Place, results: int) -> None:
    """004-35: the caller has to count."""
    place.server.control.inject(Fault(kind="batch", results=results))
    assert len(await place.container.execute_item_batch(BATCH, "p")) == results
    assert await place.ids() == DONE


@pytest.mark.parametrize("status", [409, 412, 413, 429, 449])
async def test_an_operation_that_fails(place: Place, status: int) -> None:
    """004-35: 207 with the status inside; nothing is done."""
    place.server.control.inject(Fault(kind="batch", inner=status, index=1))
    with pytest.raises(CosmosBatchOperationError) as failed:
        await place.container.execute_item_batch(BATCH, "p")
    assert (failed.value.status_code, failed.value.error_index) == (status, 1)
    statuses = [each["statusCode"] for each in failed.value.operation_responses]
    assert statuses == [424, status]
    assert [head["status"] for head in place.batches()] == [207]
    assert await place.ids() == set()


async def test_faults_strike_their_kind_in_their_order(place: Place) -> None:
    """Each counts what it lets pass and what it meets; others are left alone."""
    place.server.control.inject(
        Fault(kind="read", after=1, times=2, status=449), Fault.refused("read", 413)
    )
    await place.container.create_item({"id": "a", "projectId": "p"})
    seen = [(await place.write("GET", "docs/a")).status for _ in range(5)]
    assert seen == [200, 449, 449, 413, 200]
    assert place.server.control.counts()["read"] == 5


async def test_any_request_can_be_struck(place: Place) -> None:
    place.server.control.inject(Fault.refused("any", 503, times=3))
    statuses = [
        (await place.raw.send("GET", "")).status,
        (await place.raw.send("GET", place.path)).status,
        (await place.write("POST", "docs", {"id": "a", "projectId": "p"})).status,
        (await place.raw.send("GET", place.path)).status,
    ]
    assert statuses == [503, 503, 503, 200]
    assert await place.ids() == set()


@pytest.mark.parametrize(
    "kind", ["account", "read container", "query", "create", "read", "replace", "delete"]
)
async def test_every_kind_can_be_struck(place: Place, kind: str) -> None:
    await place.container.create_item({"id": "a", "projectId": "p"})
    item = {"id": "a", "projectId": "p"}
    body = {"query": "SELECT * FROM c"}
    query = {"x_ms_documentdb_isquery": "True", "content_type": "application/query+json"}
    place.server.control.inject(Fault.refused(kind, 449))
    answers = {
        "account": await place.raw.send("GET", ""),
        "read container": await place.raw.send("GET", place.path),
        "query": await place.write("POST", "docs", body, **query),
        "read": await place.write("GET", "docs/a"),
        "replace": await place.write("PUT", "docs/a", item),
        "delete": await place.write("DELETE", "docs/a"),
        "create": await place.write("POST", "docs", item | {"id": "b"}),
    }
    assert {name for name, answer in answers.items() if answer.status == 449} == {kind}


async def test_a_refused_request_uses_no_fault_up(place: Place) -> None:
    """Who may not ask is told so first."""
    place.server.control.inject(Fault.refused("read container", 503))
    assert (await place.raw.send("GET", place.path, authorization=None)).status == 401
    assert (await place.raw.send("GET", place.path)).status == 503


async def test_faults_can_be_dropped(place: Place) -> None:
    place.server.control.inject(Fault.refused("any", 503, times=100))
    place.server.control.clear()
    assert (await place.raw.send("GET", place.path)).status == 200


async def test_others_are_served_during_a_delay(place: Place) -> None:
    place.server.control.inject(Fault(kind="read container", delay_ms=60_000))
    waiting = asyncio.create_task(place.raw.send("GET", place.path))
    await asyncio.wait([waiting], timeout=0.3)
    assert (await place.raw.send("GET", "")).status == 200
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_what_was_asked_is_kept_and_nothing_secret(place: Place) -> None:
    """One request, one entry: how many operations a batch had, and how large it was."""
    await place.container.execute_item_batch(BATCH, "p")
    (head,) = place.batches()
    assert (head["method"], head["operations"]) == ("POST", 2)
    assert head["path"] == f"/{place.path}/docs/"
    assert head["headers"]["x-ms-documentdb-partitionkey"] == '["p"]'
    assert head["bytes"] == int(head["headers"]["content-length"])
    assert "authorization" not in head["headers"]
    assert place.server.key not in str(head)

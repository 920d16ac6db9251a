"""Databases and containers of the stand-in: what is defined is what is read back."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import (
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from tests.fixtures.cosmos import POLICY, Place

KEY = {"paths": ["/projectId"], "kind": "Hash", "version": 2}
ITEM = {"id": "a", "projectId": "p"}


async def test_a_container_is_read_back_exactly(place: Place) -> None:
    """004-34, C1, C2: partition key, indexing policy and TTL can be judged."""
    await place.database.create_container(
        "a", PartitionKey("/projectId"), indexing_policy=POLICY, default_ttl=3600
    )
    read = await place.database.get_container_client("a").read()
    assert read["partitionKey"] == KEY
    assert read["indexingPolicy"] == POLICY
    assert read["defaultTtl"] == 3600
    assert read["_self"].endswith(f"colls/{read['_rid']}/")
    assert read["_etag"].startswith('"')
    assert isinstance(read["_ts"], int)


async def test_without_a_ttl_none_is_told(place: Place) -> None:
    """004-34: off and -1 are two things."""
    assert "defaultTtl" not in await place.container.read()
    await place.database.create_container("a", PartitionKey("/projectId"), default_ttl=-1)
    assert (await place.database.get_container_client("a").read())["defaultTtl"] == -1


async def test_without_a_policy_everything_is_indexed_alone(place: Place) -> None:
    """C2: the default has no composite index."""
    await place.database.create_container("a", PartitionKey("/projectId"))
    policy = (await place.database.get_container_client("a").read())["indexingPolicy"]
    assert policy["includedPaths"] == [{"path": "/*"}]
    assert "compositeIndexes" not in policy


async def test_other_partition_keys_can_be_defined(place: Place) -> None:
    """C1: for an adapter to refuse them; several paths keep no items here."""
    await place.database.create_container("a", PartitionKey("/agentId"))
    several = PartitionKey(["/projectId", "/agentId"], kind="MultiHash")
    await place.database.create_container("b", several)
    read = await place.database.get_container_client("b").read()
    assert read["partitionKey"]["paths"] == ["/projectId", "/agentId"]
    link = f"dbs/{place.database.id}/colls/b/docs"
    answer = await place.raw.send("POST", link, ITEM, x_ms_documentdb_partitionkey='["p"]')
    assert answer.refusal == (400, 0)


async def test_names_are_taken_once(place: Place) -> None:
    with pytest.raises(CosmosResourceExistsError):
        await place.client.create_database(place.database.id)
    with pytest.raises(CosmosResourceExistsError):
        await place.database.create_container(place.container.id, PartitionKey("/projectId"))


async def test_databases_and_containers_are_listed(place: Place) -> None:
    databases = [each["id"] async for each in place.client.list_databases()]
    assert place.database.id in databases
    await place.database.create_container("other", PartitionKey("/projectId"))
    containers = [each["id"] async for each in place.database.list_containers()]
    assert containers == ["other", "things"]


async def test_what_is_absent_is_not_found(place: Place) -> None:
    """004-34: 404 for the thing itself, 404/1003 for what would be inside."""
    path = f"dbs/{place.database.id}/colls/none"
    assert (await place.raw.send("GET", path)).refusal == (404, 0)
    assert (await place.raw.send("GET", "dbs/none")).refusal == (404, 0)
    assert (await place.raw.send("GET", "dbs/none/colls/none")).refusal == (404, 1003)
    assert (await place.raw.send("GET", "dbs/none/colls")).refusal == (404, 1003)
    partition: dict[str, Any] = {"x_ms_documentdb_partitionkey": '["p"]'}
    assert (await place.raw.send("GET", f"{path}/docs/a", **partition)).refusal == (404, 1003)
    with pytest.raises(CosmosResourceNotFoundError):
        await place.database.get_container_client("none").read()


async def test_a_container_made_anew_is_another_one(place: Place) -> None:
    """A request that names the old one by its ``_rid`` is refused: 400/1024."""
    await place.container.create_item(ITEM)
    old = (await place.container.read())["_rid"]
    await place.database.delete_container(place.container.id)
    await place.database.create_container(place.container.id, PartitionKey("/projectId"))
    assert (await place.raw.send("GET", place.path)).body["_rid"] != old
    assert (await place.write("GET", "docs/a")).refusal == (404, 0)
    stale = await place.write("GET", "docs/a", x_ms_cosmos_intended_collection_rid=old)
    assert stale.refusal == (400, 1024)


async def test_a_deleted_database_takes_its_containers_along(place: Place) -> None:
    await place.container.create_item(ITEM)
    await place.client.delete_database(place.database.id)
    await place.client.create_database(place.database.id)
    assert [each async for each in place.database.list_containers()] == []


async def test_policy_and_ttl_change_in_place(place: Place) -> None:
    """004-34: what was fit once can become unfit under the same ``_rid``."""
    before = await place.container.read()
    await place.container.create_item(ITEM)
    await place.database.replace_container(
        place.container.id, PartitionKey("/projectId"), default_ttl=60
    )
    after = (await place.raw.send("GET", place.path)).body
    assert after["_rid"] == before["_rid"]
    assert after["_etag"] != before["_etag"]
    assert after["defaultTtl"] == 60
    assert "compositeIndexes" not in after["indexingPolicy"]
    assert await place.ids() == {"a"}
    body = {"id": place.container.id, "partitionKey": KEY}
    assert (await place.raw.send("PUT", place.path, body)).status == 200
    assert "defaultTtl" not in (await place.raw.send("GET", place.path)).body


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ""},
        {"id": "a/b"},
        {"id": 7},
        {"id": "a" * 256},
        {"partitionKey": None},
        {"partitionKey": KEY | {"version": 1}},
        {"partitionKey": KEY | {"kind": "Range"}},
        {"partitionKey": KEY | {"paths": ["projectId"]}},
        {"partitionKey": KEY | {"paths": []}},
        {"partitionKey": KEY | {"systemKey": True}},
        {"defaultTtl": 0},
        {"defaultTtl": -2},
        {"defaultTtl": True},
        {"defaultTtl": None},
        {"uniqueKeyPolicy": {"uniqueKeys": []}},
        {"indexingPolicy": {"indexingMode": "none"}},
        {"indexingPolicy": {"automatic": False}},
        {"indexingPolicy": {"spatialIndexes": []}},
        {"indexingPolicy": {"includedPaths": [{"path": "id"}]}},
        {"indexingPolicy": {"compositeIndexes": [[{"path": "/a"}]]}},
        {"indexingPolicy": {"compositeIndexes": [[{"path": "/a"}, {"path": "/b/?"}]]}},
        {"indexingPolicy": {"compositeIndexes": [[{"path": "/a"}, {"path": "/b", "order": "up"}]]}},
    ],
    ids=str,
)
async def test_a_definition_that_is_not_known_is_refused(
    place: Place, changes: dict[str, Any]
) -> None:
    body = {"id": "a", "partitionKey": KEY} | changes
    link = f"dbs/{place.database.id}/colls"
    assert (await place.raw.send("POST", link, body)).refusal == (400, 0)
    assert [each["id"] async for each in place.database.list_containers()] == ["things"]


@pytest.mark.parametrize("changes", [{"id": "b"}, {"partitionKey": KEY | {"paths": ["/b"]}}])
async def test_name_and_partition_key_of_a_container_stay(
    place: Place, changes: dict[str, Any]
) -> None:
    body = {"id": place.container.id, "partitionKey": KEY} | changes
    assert (await place.raw.send("PUT", place.path, body)).refusal == (400, 0)


async def test_throughput_is_not_known(place: Place) -> None:
    with pytest.raises(CosmosHttpResponseError) as refused:
        await place.container.get_throughput()
    assert refused.value.status_code == 400

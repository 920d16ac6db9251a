"""Single items of the stand-in: ids, partitions, etags, expiry and limits."""

from __future__ import annotations

from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from tests.fixtures.cosmos import Place

LARGE = pytest.mark.filterwarnings("ignore:Sending a large body")
SAME = MatchConditions.IfNotModified


def item(item_id: str = "a", partition: str = "p", **more: Any) -> dict[str, Any]:
    return {"id": item_id, "projectId": partition, **more}


async def test_an_item_comes_back_as_it_was_given(place: Place) -> None:
    """Text of every kind, numbers and nests; what the service adds beside it."""
    given = item(
        text='é 记忆 🙂 \t\u0000"\\', number=1.5, whole=2**53, none=None, nest={"a": [1, {}]}
    )
    made = await place.container.create_item(given)
    read = await place.container.read_item("a", "p")
    assert {name: read[name] for name in given} == given
    assert read == made
    assert {"_rid", "_self", "_etag", "_ts", "_attachments"} == read.keys() - given.keys()


async def test_an_id_is_taken_once_in_a_partition(place: Place) -> None:
    await place.container.create_item(item())
    with pytest.raises(CosmosResourceExistsError):
        await place.container.create_item(item())
    assert (await place.write("POST", "docs", item())).refusal == (409, 0)


async def test_what_is_absent_is_not_found(place: Place) -> None:
    """404 with substatus 0: the item, not its container."""
    for method in ("GET", "DELETE"):
        assert (await place.write(method, "docs/a")).refusal == (404, 0)
    assert (await place.write("PUT", "docs/a", item())).refusal == (404, 0)
    stale = await place.write("PUT", "docs/a", item(), if_match='"gone"')
    assert stale.refusal == (404, 0)


async def test_every_write_gives_another_etag(place: Place) -> None:
    made = await place.container.create_item(item())
    changed = [await place.container.replace_item("a", item()) for _ in range(3)]
    etags = [each["_etag"] for each in (made, *changed)]
    assert len(set(etags)) == 4
    assert all(etag.startswith('"') and etag.endswith('"') for etag in etags)


async def test_a_stale_etag_changes_nothing(place: Place) -> None:
    """004-35: replace and delete compare what they are told with what is there."""
    first = await place.container.create_item(item(n=1))
    second = await place.container.replace_item(
        "a", item(n=2), etag=first["_etag"], match_condition=SAME
    )
    for etag in (first["_etag"], second["_etag"].strip('"'), '""'):
        with pytest.raises(CosmosAccessConditionFailedError):
            await place.container.replace_item("a", item(n=3), etag=etag, match_condition=SAME)
        with pytest.raises(CosmosAccessConditionFailedError):
            await place.container.delete_item("a", "p", etag=etag, match_condition=SAME)
    assert await place.container.read_item("a", "p") == second
    await place.container.delete_item("a", "p", etag=second["_etag"], match_condition=SAME)
    with pytest.raises(CosmosResourceNotFoundError):
        await place.container.read_item("a", "p")


async def test_any_etag_will_do_where_none_is_named(place: Place) -> None:
    await place.container.create_item(item())
    present = MatchConditions.IfPresent
    await place.container.replace_item("a", item(), match_condition=present)
    await place.container.delete_item("a", "p", match_condition=present)
    assert await place.ids() == set()


async def test_an_item_that_is_known_is_not_sent_again(place: Place) -> None:
    etag = (await place.container.create_item(item()))["_etag"]
    answer = await place.write("GET", "docs/a", if_none_match=etag)
    assert (answer.status, answer.body) == (304, None)
    assert (await place.write("GET", "docs/a", if_none_match='"other"')).status == 200


async def test_partitions_do_not_see_each_other(place: Place) -> None:
    """G-2, 004-35: equal ids of two partitions are two items, whatever their names look like."""
    partitions = ["t/p", "t", "t/", "T/p", "t/p/", "t%2Fp", "t/pp", "/", "p", " p"]
    for partition in partitions:
        await place.container.create_item(item("a", partition, of=partition))
    for partition in partitions:
        assert (await place.container.read_item("a", partition))["of"] == partition
        assert await place.query("SELECT VALUE c.of FROM c", partition) == [partition]
    with pytest.raises(CosmosResourceNotFoundError):
        await place.container.read_item("a", "t/P")
    await place.container.delete_item("a", "t")
    assert await place.ids("t/p") == {"a"}
    assert await place.ids("t") == set()


@pytest.mark.parametrize("body", [item(partition="q"), {"id": "a"}, item() | {"projectId": None}])
async def test_an_item_is_put_where_it_says(place: Place, body: dict[str, Any]) -> None:
    """400/1001 where the item names another partition than the request, or none."""
    assert (await place.write("POST", "docs", body)).refusal == (400, 1001)
    await place.container.create_item(item())
    assert (await place.write("PUT", "docs/a", body)).refusal == (400, 1001)
    assert await place.ids("q") == set()


@pytest.mark.parametrize("header", [None, "[]", "[{}]", "[1]", "[null]", '"p"', '["p","q"]', "p"])
async def test_a_request_names_one_partition(place: Place, header: str | None) -> None:
    await place.container.create_item(item())
    answer = await place.write("GET", "docs/a", x_ms_documentdb_partitionkey=header)
    assert answer.refusal == (400, 0)


@pytest.mark.parametrize(
    "item_id", ["", "a/b", "a\\b", "a?b", "a#b", "a\n", "a ", "é" * 256, 7, None]
)
async def test_an_id_keeps_to_the_rules(place: Place, item_id: object) -> None:
    assert (await place.write("POST", "docs", item() | {"id": item_id})).refusal == (400, 0)
    assert await place.ids() == set()


async def test_an_id_may_have_255_characters(place: Place) -> None:
    for longest in ("a" * 255, "记" * 255):
        await place.container.create_item(item(longest))
        assert (await place.container.read_item(longest, "p"))["id"] == longest


async def test_an_id_does_not_change(place: Place) -> None:
    await place.container.create_item(item())
    assert (await place.write("PUT", "docs/a", item("b"))).refusal == (400, 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"id":"a","projectId":"p","n":9007199254740993}',
        b'{"id":"a","projectId":"p","n":1e999}',
        b'{"id":"a","projectId":"p","n":NaN}',
        b'{"id":"a","projectId":"p","id":"b"}',
        b'{"id":"a","projectId":"p","text":"\\ud800"}',
        b'{"id":"a","projectId":"p","nest":' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"id":"a","projectId":"p","nest":' + b"[" * 9999 + b"]" * 9999 + b"}",
        b'{"id":"a","projectId":"p","ttl":0}',
        b'{"id":"a","projectId":"p","ttl":"7"}',
    ],
    ids=range(13),
)
async def test_what_could_not_come_back_is_refused(place: Place, body: bytes) -> None:
    assert (await place.write("POST", "docs", body)).refusal == (400, 0)
    assert await place.ids() == set()


@LARGE
async def test_an_item_has_at_most_2_mb(place: Place) -> None:
    """004-35: 413, of its form without white space and with what the service adds."""
    await place.container.create_item(item(text="x" * 1_999_000))
    assert (await place.write("POST", "docs", item("b", text="x" * 1_999_900))).status == 413
    assert (await place.write("POST", "docs", item("b", text="é" * 1_000_000))).status == 413
    assert (await place.write("POST", "docs", b" " * 5_000_000)).status == 413
    assert await place.ids() == {"a"}


@pytest.mark.parametrize("options", [{"content_type": "text/plain"}, {"content_type": None}])
async def test_a_body_says_that_it_is_json(place: Place, options: dict[str, Any]) -> None:
    assert (await place.write("POST", "docs", item(), **options)).refusal == (400, 0)


async def test_upsert_and_patch_are_refused(place: Place) -> None:
    """004-35: an adapter that used them would fail its tests; they are counted like all else."""
    place.server.control.forget()
    with pytest.raises(CosmosHttpResponseError) as refused:
        await place.container.upsert_item(item())
    assert refused.value.status_code == 400
    with pytest.raises(CosmosHttpResponseError) as refused:
        await place.container.patch_item("a", "p", [{"op": "add", "path": "/n", "value": 1}])
    assert refused.value.status_code == 400
    assert await place.ids() == set()
    assert place.server.control.counts()["upsert"] == 1


async def test_a_write_can_do_without_its_answer(place: Place) -> None:
    await place.container.create_item(item(n=1), no_response=True)
    answer = await place.write("PUT", "docs/a", item(n=2), prefer="return=minimal")
    assert (answer.status, answer.body) == (200, None)
    assert answer.headers["etag"] == (await place.container.read_item("a", "p"))["_etag"]


async def test_an_answer_tells_where_it_comes_from(place: Place) -> None:
    """The container's ``_rid`` is in every answer about items."""
    rid = (await place.container.read())["_rid"]
    made = await place.write("POST", "docs", item(), x_ms_activity_id="mine")
    assert made.headers["x-ms-activity-id"] == "mine"
    assert made.headers["etag"] == made.body["_etag"]
    assert made.headers["x-ms-session-token"] == "0:-1#1"
    assert made.headers["x-ms-alt-content-path"] == place.path
    for answer in (made, await place.write("GET", "docs/a"), await place.write("DELETE", "docs/a")):
        assert answer.headers["x-ms-content-path"] == rid
        assert float(answer.headers["x-ms-request-charge"]) > 0


async def container(place: Place, default_ttl: int | None) -> ContainerProxy:
    key = PartitionKey("/projectId")
    return await place.database.create_container(f"ttl{default_ttl}", key, default_ttl=default_ttl)


async def ids(items: ContainerProxy) -> set[str]:
    found = items.query_items("SELECT VALUE c.id FROM c", partition_key="p")
    return {str(each) async for each in found}


async def test_expiry_of_items(place: Place) -> None:
    """004-34: by the container's time, or by their own where the container knows one."""
    off, none, hour = [await container(place, ttl) for ttl in (None, -1, 3600)]
    for items in (off, none, hour):
        await items.create_item(item("default"))
        await items.create_item(item("short", ttl=60))
        await items.create_item(item("ever", ttl=-1))
    seen = {}
    for seconds in (0, 50, 70, 3590, 3610):
        place.server.control.skew(seconds)
        seen[seconds] = [len(await ids(items)) for items in (off, none, hour)]
    assert seen == {0: [3, 3, 3], 50: [3, 3, 3], 70: [3, 2, 2], 3590: [3, 2, 2], 3610: [3, 2, 1]}
    with pytest.raises(CosmosResourceNotFoundError):
        await hour.read_item("default", "p")
    with pytest.raises(CosmosResourceNotFoundError):
        await hour.replace_item("default", item("default"))
    await hour.create_item(item("default"))
    assert await ids(hour) == {"default", "ever"}


async def test_the_clock_can_be_put_wrong(place: Place) -> None:
    """004-42: ``_ts`` follows the server's clock, not the client's."""
    before = (await place.container.create_item(item()))["_ts"]
    place.server.control.skew(86_400)
    after = (await place.container.replace_item("a", item()))["_ts"]
    assert 86_400 <= after - before <= 86_400 + 120

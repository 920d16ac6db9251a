"""Queries of the stand-in as requests: one partition, indexes, pages."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

from broker.devstack.cosmos import Fault
from tests.fixtures.cosmos import Answer, Place

QUERY = {"x_ms_documentdb_isquery": "True", "content_type": "application/query+json"}
SEARCH = "SELECT VALUE c.id FROM c ORDER BY c.updated DESC, c.id ASC"
ALL = "SELECT VALUE c.id FROM c"


async def fill(place: Place, count: int, **more: Any) -> None:
    """Creates items 000, 001, ... of which always three were updated at once."""
    items = [
        {"id": f"{n:03}", "projectId": "p", "updated": n // 3, "n": n, **more} for n in range(count)
    ]
    for start in range(0, count, 100):
        batch = [("create", (item,)) for item in items[start : start + 100]]
        await place.container.execute_item_batch(batch, "p")


async def ask(place: Place, text: object, given: object = None, **options: Any) -> Answer:
    body = {"query": text, "parameters": given or []}
    return await place.write("POST", "docs", body, **(QUERY | options))


async def pages(place: Place, text: str, size: int, **more: Any) -> list[list[Any]]:
    """Returns the pages that the SDK gets."""
    found = place.container.query_items(text, partition_key="p", max_item_count=size, **more)
    return [[each async for each in page] async for page in found.by_page()]


def in_order(count: int) -> list[str]:
    return [f"{n:03}" for n in sorted(range(count), key=lambda n: (-(n // 3), n))]


async def test_search_order_is_served_by_its_index(place: Place) -> None:
    """S-2, C2: also in the opposite direction of both."""
    await fill(place, 10)
    assert await place.query(SEARCH) == in_order(10)
    opposite = "SELECT VALUE c.id FROM c ORDER BY c.updated ASC, c.id DESC"
    assert await place.query(opposite) == [*reversed(in_order(10))]


@pytest.mark.parametrize(
    "order",
    [
        "c.updated DESC, c.id DESC",
        "c.updated, c.id",
        "c.id ASC, c.updated DESC",
        "c.updated DESC, c.id ASC, c.n ASC",
        "c.updated DESC, c.n ASC",
        "c.content",
        "c._etag",
    ],
)
async def test_an_order_without_its_index_is_refused(place: Place, order: str) -> None:
    """C2: other directions, sequence, number or names; or a property that is not indexed."""
    await fill(place, 1, content="x")
    with pytest.raises(CosmosHttpResponseError) as refused:
        await place.query(f"SELECT VALUE c.id FROM c ORDER BY {order}")
    assert refused.value.status_code == 400


async def test_a_missing_index_is_missed_at_once(place: Place) -> None:
    """C2: the policy counts as it is now, whether there are items or not."""
    assert await place.query(SEARCH) == []
    key = (await place.container.read())["partitionKey"]
    body = {"id": place.container.id, "partitionKey": key}
    assert (await place.raw.send("PUT", place.path, body)).status == 200
    assert (await ask(place, SEARCH)).refusal == (400, 0)


async def test_parameters_mean_themselves(place: Place) -> None:
    await fill(place, 3, s='it\'s "@n" -- c.n')
    assert await place.query(f"{ALL} WHERE c.s = @s", s='it\'s "@n" -- c.n') != []
    assert await place.query(f"{ALL} WHERE c.n = @n", n=2) == ["002"]
    assert await place.query(f"{ALL} WHERE c.n = @n", n="2") == []
    assert await place.query(f"{ALL} WHERE c.n = @n", n=None) == []
    assert await place.query(f"{ALL} WHERE ARRAY_CONTAINS(@ids, c.id)", ids=["001", "x"]) == ["001"]


async def test_the_time_is_the_servers(place: Place) -> None:
    """004-42: in milliseconds, as its clock says, in what is selected and in conditions."""
    await fill(place, 1)
    (true,) = await place.query("SELECT VALUE GetCurrentTimestamp() FROM c")
    place.server.control.skew(86_400)
    (ahead,) = await place.query("SELECT VALUE GetCurrentTimestamp() FROM c")
    assert 86_400_000 <= ahead - true <= 86_520_000
    condition = f"{ALL} WHERE GetCurrentTimestamp() > @until"
    assert await place.query(condition, until=true + 3_600_000) == ["000"]
    assert await place.query(condition, until=ahead + 3_600_000) == []


@pytest.mark.parametrize("header", [None, '["p","q"]', "[{}]"])
async def test_a_query_is_of_one_partition(place: Place, header: str | None) -> None:
    """G-2: without a partition it is refused, and no plan is made for the SDK."""
    assert (await ask(place, ALL, x_ms_documentdb_partitionkey=header)).status == 400
    with pytest.raises(CosmosHttpResponseError) as refused:
        [each async for each in place.container.query_items(ALL)]
    assert refused.value.status_code == 400
    with pytest.raises(CosmosHttpResponseError) as refused:
        [each async for each in place.container.read_all_items()]
    assert refused.value.status_code == 400


@pytest.mark.parametrize(
    ("text", "given", "options"),
    [
        (7, [], {}),
        ("", [], {}),
        (ALL, {"@a": 1}, {}),
        (ALL, [{"name": "@a"}], {}),
        (ALL, [{"name": "@a", "value": 1}, {"name": "@a", "value": 2}], {}),
        (ALL, [{"name": 1, "value": 1}], {}),
        (ALL, [{"name": "@a", "value": 1, "type": "number"}], {}),
        (ALL, [], {"content_type": "application/json"}),
        (ALL, [], {"x_ms_documentdb_query_enablecrosspartition": "True"}),
        (ALL, [], {"x_ms_documentdb_query_iscontinuationexpected": "True"}),
        (ALL, [], {"x_ms_cosmos_is_query_plan_request": "True"}),
        (ALL, [], {"x_ms_max_item_count": "0"}),
        (ALL, [], {"x_ms_max_item_count": "1001"}),
        (ALL, [], {"x_ms_max_item_count": "many"}),
        (ALL, [], {"x_ms_max_item_count": "²"}),
        (ALL, [], {"x_ms_continuation": "mine"}),
        (ALL, [], {"x_ms_continuation": "N"}),
        ("SELECT TOP @n VALUE c.id FROM c", [{"name": "@n", "value": -1}], {}),
        ("SELECT TOP @n VALUE c.id FROM c", [{"name": "@n", "value": 1.5}], {}),
        ("SELECT TOP @n VALUE c.id FROM c", [{"name": "@n", "value": True}], {}),
        ("SELECT TOP @n VALUE c.id FROM c", [{"name": "@n", "value": "1"}], {}),
        ("SELECT TOP @n VALUE c.id FROM c", [], {}),
        (ALL + " WHERE " + "true OR " * 70_000 + "true", [], {}),
    ],
    ids=range(23),
)
async def test_a_query_that_is_not_known_is_refused(
    place: Place, text: object, given: object, options: dict[str, Any]
) -> None:
    assert (await ask(place, text, given, **options)).status == 400


async def test_pages_follow_each_other(place: Place) -> None:
    """S-2: without gap or repetition, in order."""
    await fill(place, 250)
    found = await pages(place, SEARCH, 100)
    assert [len(page) for page in found] == [100, 100, 50]
    assert [*chain(*found)] == in_order(250)
    assert sorted(chain(*await pages(place, ALL, 99))) == [f"{n:03}" for n in range(250)]


async def test_a_page_has_100_items_where_nothing_is_asked_for(place: Place) -> None:
    """The SDK goes on by itself; who asks by hand gets a continuation."""
    await fill(place, 150)
    answer = await ask(place, ALL)
    assert (len(answer.body["Documents"]), answer.headers["x-ms-item-count"]) == (100, "100")
    assert answer.body["_count"] == 100
    rest = await ask(place, ALL, x_ms_continuation=answer.headers["x-ms-continuation"])
    assert len(rest.body["Documents"]) == 50
    assert "x-ms-continuation" not in rest.headers
    place.server.control.forget()
    assert len(await place.query(ALL)) == 150
    assert place.server.control.counts()["query"] == 2


async def test_a_page_has_at_most_4_mb(place: Place) -> None:
    """004-35: one of the service's limits; the first item always comes."""
    for n in range(5):
        item = {"id": str(n), "projectId": "p", "text": "x" * 1_000_000}
        await place.container.create_item(item)
    found = await pages(place, "SELECT * FROM c", 100)
    assert [len(page) for page in found] == [3, 2]


async def test_pages_while_items_change(place: Place) -> None:
    """S-2: what does not change is neither skipped nor repeated."""
    await fill(place, 30)
    seen: list[Any] = []
    found = place.container.query_items(SEARCH, partition_key="p", max_item_count=7)
    async for page in found.by_page():
        seen += [each async for each in page]
        await place.container.delete_item(seen[-1], "p")
        new = {"id": f"new{len(seen)}", "projectId": "p", "updated": 1000}
        await place.container.create_item(new)
    assert seen == in_order(30)


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_top_offset_and_limit_count_over_pages(place: Place, size: int) -> None:
    await fill(place, 12)
    expected = in_order(12)
    top = SEARCH.replace("SELECT", "SELECT TOP 5")
    assert [*chain(*await pages(place, top, size))] == expected[:5]
    given = [{"name": "@skip", "value": 4}, {"name": "@take", "value": 5}]
    text = f"{SEARCH} OFFSET @skip LIMIT @take"
    assert [*chain(*await pages(place, text, size, parameters=given))] == expected[4:9]
    assert [*chain(*await pages(place, f"{SEARCH} OFFSET 10 LIMIT 5", size))] == expected[10:]
    assert await pages(place, f"{SEARCH} OFFSET 20 LIMIT 5", size) == []
    assert await pages(place, SEARCH.replace("SELECT", "SELECT TOP 0"), size) == []


async def test_a_full_last_page_promises_no_more(place: Place) -> None:
    await fill(place, 6)
    first = await ask(place, SEARCH, x_ms_max_item_count="3")
    token = first.headers["x-ms-continuation"]
    last = await ask(place, SEARCH, x_ms_max_item_count="3", x_ms_continuation=token)
    assert len(last.body["Documents"]) == 3
    assert "x-ms-continuation" not in last.headers


async def test_a_continuation_belongs_to_its_query(place: Place) -> None:
    await fill(place, 3)
    given = [{"name": "@n", "value": 9}]
    text = f"{ALL} WHERE c.n < @n"
    token = (await ask(place, text, given, x_ms_max_item_count="1")).headers["x-ms-continuation"]
    for other, parameters, partition in (
        (text.replace("<", "<="), given, "p"),
        (text, [{"name": "@n", "value": 8}], "p"),
        (text, given, "q"),
    ):
        key = f'["{partition}"]'
        answer = await ask(
            place, other, parameters, x_ms_continuation=token, x_ms_documentdb_partitionkey=key
        )
        assert answer.refusal == (400, 0)
    assert (await ask(place, text, given, x_ms_continuation=token)).body["_count"] == 2


async def test_no_order_is_an_order_of_its_own(place: Place) -> None:
    """Neither by id nor by age: nobody can come to rely on it."""
    await fill(place, 50)
    found = await place.query(ALL)
    assert found == await place.query(ALL)
    assert found not in (sorted(found), sorted(found, reverse=True))


async def test_a_page_may_be_short_or_empty(place: Place) -> None:
    """As the service's may: only the continuation tells the end, which the SDK knows."""
    await fill(place, 10)
    place.server.control.inject(Fault(kind="query", items=0, times=2), Fault(kind="query", items=3))
    place.server.control.forget()
    assert await place.query(SEARCH) == in_order(10)
    assert place.server.control.counts()["query"] == 4

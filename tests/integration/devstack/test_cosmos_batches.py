"""Transactional batches of the stand-in: all operations or none."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos.exceptions import CosmosBatchOperationError

from tests.fixtures.cosmos import Answer, Place

LARGE = pytest.mark.filterwarnings("ignore:Sending a large body")
ATOMIC = {"x_ms_cosmos_is_batch_request": "True", "x_ms_cosmos_batch_atomic": "True"}


def item(item_id: str, partition: str = "p", **more: Any) -> dict[str, Any]:
    return {"id": item_id, "projectId": partition, **more}


def create(item_id: str, **more: Any) -> tuple[str, tuple[dict[str, Any]]]:
    return ("create", (item(item_id, **more),))


async def raw(place: Place, operations: object, **options: Any) -> Answer:
    return await place.write("POST", "docs", operations, **(ATOMIC | options))


async def content(place: Place) -> list[Any]:
    return sorted(await place.query("SELECT * FROM c"), key=lambda each: str(each["id"]))


async def test_each_operation_has_a_result(place: Place) -> None:
    """004-35: 201, 200, 200 and 204, in their order, with fresh etags."""
    old = [await place.container.create_item(item(each)) for each in ("r", "d", "g")]
    results = await place.container.execute_item_batch(
        [
            create("c"),
            ("replace", ("r", item("r", n=1)), {"if_match_etag": old[0]["_etag"]}),
            ("read", ("g",)),
            ("delete", ("d",), {"if_match_etag": old[1]["_etag"]}),
        ],
        "p",
    )
    assert [each["statusCode"] for each in results] == [201, 200, 200, 204]
    assert "resourceBody" not in results[3]
    replaced = await place.container.read_item("r", "p")
    assert results[1]["resourceBody"] == replaced
    assert results[1]["eTag"] == replaced["_etag"] != old[0]["_etag"]
    assert results[2]["resourceBody"] == old[2]
    assert await place.ids() == {"c", "r", "g"}
    assert place.server.control.counts()["batch"] == 1


@pytest.mark.parametrize("position", [0, 2, 4])
@pytest.mark.parametrize("kind", ["replace", "delete"])
async def test_a_stale_etag_anywhere_undoes_everything(
    place: Place, kind: str, position: int
) -> None:
    """004-35, R8: 412 for it, 424 for all others, and not even an etag has changed."""
    old = await place.container.create_item(item("old", n=0))
    await place.container.replace_item("old", item("old", n=1))
    await place.container.create_item(item("other"))
    before = await content(place)
    arguments: tuple[Any, ...] = ("old", item("old", n=2)) if kind == "replace" else ("old",)
    operations: list[Any] = [
        create("a"),
        create("b"),
        ("replace", ("other", item("other", n=2))),
        ("delete", ("other",)),
    ]
    operations.insert(position, (kind, arguments, {"if_match_etag": old["_etag"]}))
    with pytest.raises(CosmosBatchOperationError) as failed:
        await place.container.execute_item_batch(operations, "p")
    assert failed.value.status_code == 412
    assert failed.value.error_index == position
    statuses = [each["statusCode"] for each in failed.value.operation_responses]
    assert statuses == [412 if index == position else 424 for index in range(5)]
    assert await content(place) == before


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        (create("there"), 409),
        (create("no", text="x" * 1_999_800), 413),
        (("create", ({"id": "no", "projectId": "q"},)), 400),
        (("create", ({"id": "a/b", "projectId": "p"},)), 400),
        (("replace", ("none", item("none"))), 404),
        (("replace", ("there", item("none"))), 400),
        (("delete", ("none",)), 404),
        (("read", ("none",)), 404),
        (("delete", ("a/b",)), 400),
    ],
)
@pytest.mark.parametrize("position", [0, 1])
@LARGE
async def test_a_failed_operation_undoes_everything(
    place: Place, operation: Any, status: int, position: int
) -> None:
    """004-35: whichever it is, and wherever it stands."""
    await place.container.create_item(item("there"))
    before = await content(place)
    operations = [create("a")]
    operations.insert(position, operation)
    with pytest.raises(CosmosBatchOperationError) as failed:
        await place.container.execute_item_batch(operations, "p")
    assert failed.value.status_code == status
    assert await content(place) == before
    assert await place.ids("q") == set()


async def test_the_first_failure_is_told(place: Place) -> None:
    """Later operations are not looked at any more."""
    operations = [("delete", ("none",)), create("a"), ("replace", ("a", item("b")))]
    with pytest.raises(CosmosBatchOperationError) as failed:
        await place.container.execute_item_batch(operations, "p")
    assert [each["statusCode"] for each in failed.value.operation_responses] == [404, 424, 424]


async def test_operations_see_those_before_them(place: Place) -> None:
    results = await place.container.execute_item_batch(
        [create("a", n=1), ("replace", ("a", item("a", n=2))), ("read", ("a",)), create("b")], "p"
    )
    assert results[2]["resourceBody"]["n"] == 2
    assert results[0]["eTag"] != results[1]["eTag"] == results[2]["eTag"]
    again = [("delete", ("a",)), create("a", n=3)]
    await place.container.execute_item_batch(again, "p")
    assert (await place.container.read_item("a", "p"))["n"] == 3
    with pytest.raises(CosmosBatchOperationError):
        await place.container.execute_item_batch([create("c"), create("c")], "p")
    assert await place.ids() == {"a", "b"}


async def test_a_batch_is_of_one_partition(place: Place) -> None:
    """G-2, 004-35: it neither sees nor changes another."""
    await place.container.create_item(item("a", "q"))
    with pytest.raises(CosmosBatchOperationError) as failed:
        await place.container.execute_item_batch([("read", ("a",))], "p")
    assert failed.value.status_code == 404
    await place.container.execute_item_batch([create("a", n=1)], "p")
    await place.container.execute_item_batch([("delete", ("a",))], "p")
    assert await place.ids("q") == {"a"}


async def test_a_batch_has_at_most_100_operations(place: Place) -> None:
    """004-35: 100 are done, 101 are refused whole."""
    await place.container.execute_item_batch([create(str(n)) for n in range(100)], "p")
    assert len(await place.ids()) == 100
    many = [{"operationType": "Create", "resourceBody": item(f"n{n}")} for n in range(101)]
    assert (await raw(place, many)).refusal == (400, 0)
    assert len(await place.ids()) == 100
    assert [head["operations"] for head in place.batches()] == [100, 0]


@LARGE
async def test_a_batch_has_at_most_2_mb(place: Place) -> None:
    """004-35: 413 for the request; nothing is done."""
    await place.container.execute_item_batch(
        [create(f"{n}", t="x" * 199_900) for n in range(10)], "p"
    )
    too_much = [create(f"n{n}", t="é" * 100_000) for n in range(10)]
    operations = [{"operationType": "Create", "resourceBody": each[1][0]} for each in too_much]
    body = str(operations).replace("'", '"').encode()
    assert 2_000_000 < len(body) < 2_001_000
    assert (await raw(place, body)).refusal == (413, 0)
    assert len(await place.ids()) == 10


@pytest.mark.parametrize(
    "operation",
    [
        {"operationType": "Upsert", "resourceBody": item("a")},
        {"operationType": "Patch", "id": "a", "resourceBody": {"operations": []}},
        {"operationType": "create", "resourceBody": item("a")},
        {"operationType": ["Create"], "resourceBody": item("a")},
        {"operationType": "Create"},
        {"operationType": "Delete"},
        {"operationType": "Replace", "id": "a"},
        {"operationType": "Create", "resourceBody": item("a"), "ifMatch": '"e"'},
        {"operationType": "Create", "resourceBody": item("a"), "ifNoneMatch": "*"},
        {"operationType": "Delete", "id": "a", "ifMatch": 7},
        {"operationType": "Create", "resourceBody": item("a"), "partitionKey": '["q"]'},
        "Create",
    ],
    ids=str,
)
async def test_an_operation_that_is_not_known_refuses_the_batch(
    place: Place, operation: object
) -> None:
    good = {"operationType": "Create", "resourceBody": item("good")}
    assert (await raw(place, [good, operation])).refusal == (400, 0)
    assert await place.ids() == set()


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ([], {}),
        ({}, {}),
        (b"", {}),
        (None, {"x_ms_cosmos_batch_atomic": "False"}),
        (None, {"x_ms_cosmos_batch_atomic": None}),
        (None, {"x_ms_cosmos_batch_continue_on_error": "True"}),
        (None, {"x_ms_documentdb_partitionkey": None}),
        (None, {"prefer": "return=minimal"}),
        (None, {"content_type": "application/query+json"}),
    ],
    ids=str,
)
async def test_a_batch_that_is_not_known_is_refused(
    place: Place, body: Any, options: dict[str, Any]
) -> None:
    good = [{"operationType": "Create", "resourceBody": item("good")}]
    sent = good if body is None else body
    assert (await raw(place, sent, **options)).refusal == (400, 0)
    assert await place.ids() == set()


async def test_a_refused_batch_says_so_as_a_whole(place: Place) -> None:
    """207 where an operation has failed, 200 where all are done."""
    operation = {"operationType": "Create", "resourceBody": item("a")}
    assert (await raw(place, [operation])).status == 200
    answer = await raw(place, [operation])
    assert answer.status == 207
    assert answer.body == [{"statusCode": 409, "requestCharge": 5}]
    assert answer.headers["x-ms-content-path"] == (await place.container.read())["_rid"]

"""The query language of the Cosmos stand-in: what it selects, and what it refuses to know."""

from __future__ import annotations

from typing import Any

import pytest

from broker.devstack.cosmos.standin.clock import Clock
from broker.devstack.cosmos.standin.lookup import Lookup
from broker.devstack.cosmos.standin.refusals import RefusalError
from broker.devstack.cosmos.standin.sql.evaluation import Scope
from broker.devstack.cosmos.standin.sql.narrowing import narrowed
from broker.devstack.cosmos.standin.sql.parser import parse
from broker.devstack.cosmos.standin.sql.selection import selected

ITEMS: list[dict[str, Any]] = [
    {"id": "1", "n": 1, "s": "Apple", "b": True, "tags": ["x", "y"], "in": {"k": "v"}},
    {"id": "2", "n": 2, "s": "banana", "b": False, "tags": [], "z": None},
    {"id": "3", "n": 2.5, "s": "Äpfel", "z": 7, "value": "v", "tags": [1, True, None, {"a": [1]}]},
    {"id": "4", "n": "2", "z": "", "s": 'say "it\'s"'},
]
PARAMETERS = {
    "@two": 2,
    "@text": "2",
    "@none": None,
    "@true": True,
    "@ids": ["1", "3", "9"],
    "@object": {"a": [1]},
    "@minus": -1,
    "@half": 0.5,
}


def run(query: str) -> list[Any]:
    items = [{"_rid": item["id"], **item} for item in ITEMS]
    results = selected(parse(query), Scope(PARAMETERS, Clock()), items)
    return [result for _, result in results]


def ids(condition: str) -> list[str]:
    return sorted(run(f"SELECT VALUE c.id FROM c WHERE {condition}"))


def among(condition: str) -> set[str]:
    lookup = Lookup()
    for item in ITEMS:
        lookup.add(item)
    where = parse(f"SELECT * FROM c WHERE {condition}").where
    found = narrowed(where, Scope(PARAMETERS, Clock()), lookup.find)
    return {item["id"] for item in ITEMS} if found is None else found


CONDITIONS = {
    # Comparison, within a type.
    "c.n = 1": "1",
    "c.n = @two": "2",
    "c.n >= 2": "23",
    "c.n > 2 AND c.n < 3": "3",
    "c.n <= 2": "12",
    "c.s != 'banana'": "134",
    "c.b != true": "2",
    "c.n = -1": "",
    "c.n = @minus": "",
    "c.n > .5": "123",
    "c.n > 1.5e0": "23",
    "c.s < 'b'": "1",
    'c.s = "banana"': "2",
    "c.s = 'Äpfel'": "3",
    "c.s = '\\u00c4pfel'": "3",
    "c.s = 'say \"it\\'s\"'": "4",
    'c.s = "say \\"it\'s\\""': "4",
    "c.b = true": "1",
    "c.b": "1",
    "c.b < true": "2",
    # Across types, and with what is not there: undefined, and so not selected, nor its opposite.
    "c.n = @text": "4",
    "c.n = '2'": "4",
    "NOT (c.n = '2')": "",
    "NOT (c.n = 2)": "13",
    "c.n < 'a'": "4",
    "c.b = 1": "",
    "c.b = @true": "1",
    "c.z = null": "2",
    "c.z = @none": "2",
    "NOT (c.z = null)": "",
    "c.none = null": "",
    "c.none = c.none": "",
    "c.none = undefined": "",
    "c.s.deeper = 1": "",
    "c.tags < c.tags": "",
    # Three values: and, or, not.
    "c.none = 1 OR c.id = '1'": "1",
    "c.none = 1 AND c.id = '1'": "",
    "NOT (c.none = 1 AND c.id = '1')": "234",
    "NOT (c.none = 1 OR c.id = '1')": "",
    "NOT c.b": "2",
    "NOT NOT c.b": "1",
    "c.n OR c.id = '1'": "1",
    "c.id = '1' OR c.id = '2' AND c.id = '3'": "1",
    "(c.id = '1' OR c.id = '2') AND c.b": "1",
    "c.none = 1 OR " * 250 + "c.id = '1'": "1",
    "(" * 60 + "c.id = '1'" + ")" * 60: "1",
    # Lists.
    "c.id IN ('1', '4')": "14",
    "c.id NOT IN ('1', '4')": "23",
    "c.z IN (7)": "3",
    "c.z NOT IN (7)": "",
    "c.z IN (7, null)": "23",
    "c.id IN (@text)": "2",
    "ARRAY_CONTAINS(@ids, c.id)": "13",
    "array_contains(c.tags, 'x')": "1",
    "ARRAY_CONTAINS(c.tags, 1)": "3",
    "ARRAY_CONTAINS(c.tags, true)": "3",
    "ARRAY_CONTAINS(c.tags, null)": "3",
    "ARRAY_CONTAINS(c.tags, @object)": "3",
    "ARRAY_CONTAINS(c.tags, c.none)": "",
    "NOT ARRAY_CONTAINS(c.tags, 'x')": "23",
    # Functions.
    "IS_DEFINED(c.z)": "234",
    "NOT IS_DEFINED(c.z)": "1",
    "IS_NULL(c.z)": "2",
    "NOT IS_NULL(c.z)": "134",
    "CONTAINS(c.s, 'an')": "2",
    "CONTAINS(c.s, 'A')": "1",
    "CONTAINS(c.s, '')": "1234",
    "CONTAINS(c.z, '')": "4",
    "STARTSWITH(c.s, 'App')": "1",
    "NOT STARTSWITH(c.s, 'App')": "234",
    "CONTAINS(c.s, 1)": "",
    "GetCurrentTimestamp() > 1700000000000": "1234",
    # Paths.
    "c[\"value\"] = 'v'": "3",
    "c['in']['k'] = 'v'": "1",
    "c[\"in\"].k = 'v'": "1",
    "c.n = c.n": "1234",
}


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS.items())
def test_condition(condition: str, expected: str) -> None:
    """S-1, S-3: what is not true is not selected, undefined least of all."""
    assert ids(condition) == [*expected]
    assert {*expected} <= among(condition)


NARROWED = {
    "c.s = 'banana'": "2",
    "'banana' = c.s": "2",
    "c.n = '2'": "4",
    "c.n = @text": "4",
    "c.id IN ('1', '4', '9')": "14",
    "ARRAY_CONTAINS(c.tags, 'x')": "1",
    "c.id IN ('1', '2') AND c.s = 'banana'": "2",
    "c.n = 1 AND c.id = '1'": "1",
    "c.id = '1' AND c.n = 1": "1",
    "c.id = '1' OR c.s = 'banana'": "12",
    "c.id = 'none' OR c.id = '3'": "3",
    # Nothing can be told of these.
    "c.id = '1' OR c.n = 1": "1234",
    "c.id = @two": "1234",
    "c.id IN ('1', 2)": "1234",
    "NOT c.id = '1'": "1234",
    "c.id < '2'": "1234",
    "c.id = c.s": "1234",
    "c['in'].k = 'v'": "1234",
    "c._rid = '1'": "1234",
    f"c.id = '{'1' * 129}'": "1234",
}


@pytest.mark.parametrize(("condition", "expected"), NARROWED.items())
def test_where_to_look(condition: str, expected: str) -> None:
    """A query looks at no more items than equal texts leave, and misses none."""
    assert among(condition) == {*expected}
    assert {*ids(condition)} <= {*expected}


def test_what_was_written_over_is_not_looked_at() -> None:
    """Texts of an item that is gone, or another now, do not find it."""
    lookup = Lookup()
    before = {"id": "1", "s": "a", "tags": ["x", "y"]}
    lookup.add(before)
    lookup.remove(before)
    lookup.add({"id": "1", "s": "a", "tags": ["y", "z"]})
    found = {text: lookup.find("tags", text) for text in "xyz"}
    assert found == {"x": set(), "y": {"1"}, "z": {"1"}}
    assert lookup.find("s", "a") == {"1"}


SELECTIONS: dict[str, list[Any]] = {
    "SELECT c.id, c.z FROM c WHERE c.n = 1": [{"id": "1"}],
    "select c.id as a, c['in'].k from c where c.id = '1'": [{"a": "1", "k": "v"}],
    "SELECT c.id, 7 AS seven, @none AS none FROM c WHERE c.id = '1'": [
        {"id": "1", "seven": 7, "none": None}
    ],
    "SELECT VALUE c.z FROM c WHERE c.id IN ('1', '2')": [None],
    "SELECT VALUE c.n = 2 FROM c WHERE c.id = '2'": [True],
    "SELECT VALUE thing.id FROM thing WHERE thing.id = '1'": ["1"],
    "SELECT VALUE COUNT(1) FROM c": [4],
    "SELECT VALUE COUNT(1) FROM c WHERE c.id = 'none'": [0],
    "SELECT COUNT(1) AS n, SUM(c.n) AS total FROM c WHERE c.n <= 2.5": [{"n": 3, "total": 5.5}],
    "SELECT VALUE SUM(c.none) FROM c": [0],
    "SELECT VALUE SUM(c.n) FROM c WHERE c.id = 'none'": [0],
    "SELECT VALUE c.id FROM c WHERE c.n <= 3 ORDER BY c.n": ["1", "2", "3"],
    "SELECT VALUE c.id FROM c WHERE c.n <= 3 ORDER BY c.n ASC": ["1", "2", "3"],
    "SELECT VALUE c.id FROM c ORDER BY c.id DESC": ["4", "3", "2", "1"],
    "SELECT VALUE c.id FROM c ORDER BY c.s, c.id": ["1", "2", "4", "3"],
}


@pytest.mark.parametrize(("query", "expected"), SELECTIONS.items())
def test_selection(query: str, expected: list[Any]) -> None:
    assert run(query) == expected


def test_a_whole_item() -> None:
    assert run("SELECT * FROM c WHERE c.id = '1'") == [{"_rid": "1", **ITEMS[0]}]
    (result,) = run("SELECT c AS item, GetCurrentTimestamp() AS now FROM c WHERE c.id = '1'")
    assert result["item"] == {"_rid": "1", **ITEMS[0]}
    assert isinstance(result["now"], int)


REFUSED = [
    "",
    "SELECT",
    "SELECT * FROM",
    "SELECT * FROM c x",
    "SELECT * FROM c AS x",
    "SELECT * FROM c IN c.tags",
    "SELECT * FROM c JOIN t IN c.tags",
    "SELECT * FROM c, d",
    "SELECT * FROM c;",
    "SELECT DISTINCT c.id FROM c",
    "SELECT c.id FROM c GROUP BY c.id",
    "SELECT * FROM c WHERE",
    "SELECT * FROM c WHERE c.n = 1 c.n = 2",
    "SELECT * FROM c WHERE c.n == 1",
    "SELECT * FROM c WHERE c.tags = []",
    "SELECT * FROM c WHERE c.in = {}",
    "SELECT * FROM c WHERE c.n <> 1",
    "SELECT * FROM c WHERE c.n + 1 = 2",
    "SELECT * FROM c WHERE c.n BETWEEN 1 AND 2",
    "SELECT * FROM c WHERE c.s LIKE 'a%'",
    "SELECT * FROM c WHERE c.s || 'a' = 'b'",
    "SELECT * FROM c WHERE c.n = 1 ? true : false",
    "SELECT * FROM c WHERE c.n ?? 1 = 1",
    "SELECT * FROM c WHERE c.n IN ()",
    "SELECT * FROM c WHERE c.n NOT 1",
    "SELECT * FROM c WHERE d.n = 1",
    "SELECT * FROM c WHERE n = 1",
    "SELECT * FROM c WHERE c.value = 1",
    "SELECT * FROM c WHERE c.tags[0] = 1",
    "SELECT * FROM c WHERE c[@text] = 1",
    "SELECT * FROM c WHERE c.n = @missing",
    "SELECT * FROM c WHERE c.n = 1 < 2",
    "SELECT * FROM c WHERE c.n = 9007199254740993",
    "SELECT * FROM c WHERE c.n = 1e999",
    "SELECT * FROM c WHERE c.n = 1abc",
    "SELECT * FROM c WHERE c.s = 'a",
    "SELECT * FROM c WHERE c.s = '\\q'",
    "SELECT * FROM c WHERE c.s = 'a' -- comment",
    "SELECT * FROM c WHERE c.n != '1'",
    "SELECT * FROM c WHERE c.tags != 'a'",
    "SELECT * FROM c WHERE c.tags != c.tags",
    "SELECT * FROM c WHERE EXISTS (SELECT 1 FROM c)",
    "SELECT * FROM c WHERE udf.f(c.n)",
    "SELECT * FROM c WHERE LOWER(c.s) = 'a'",
    "SELECT * FROM c WHERE CONTAINS(c.s, 'a', true)",
    "SELECT * FROM c WHERE CONTAINS(c.s)",
    "SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x', true)",
    "SELECT * FROM c WHERE COUNT(1) = 1",
    "SELECT * FROM c WHERE " + "(" * 100 + "true" + ")" * 100,
    "SELECT * FROM c WHERE " + "true OR " * 251 + "true",
    "SELECT *, c.id FROM c",
    "SELECT c.id, c.id FROM c",
    "SELECT c.id AS a, c.n AS a FROM c",
    "SELECT 7 FROM c",
    "SELECT c FROM c",
    "SELECT {'a': c.id} AS a FROM c",
    "SELECT VALUE [c.id] FROM c",
    "SELECT VALUE COUNT(c.n) FROM c",
    "SELECT VALUE COUNT(true) FROM c",
    "SELECT VALUE COUNT(1) FROM c ORDER BY c.id",
    "SELECT c.id, COUNT(1) AS n FROM c",
    "SELECT VALUE SUM(c.s) FROM c",
    "SELECT VALUE SUM(c.b) FROM c",
    "SELECT VALUE MAX(c.n) FROM c",
    "SELECT TOP 1 VALUE COUNT(1) FROM c",
    "SELECT TOP VALUE c.id FROM c",
    "SELECT TOP 1 * FROM c OFFSET 1 LIMIT 1",
    "SELECT * FROM c OFFSET 1",
    "SELECT * FROM c LIMIT 1",
    "SELECT * FROM c ORDER c.id",
    "SELECT * FROM c ORDER BY 'a'",
    "SELECT * FROM c ORDER BY c",
    "SELECT * FROM c ORDER BY c.n",
    "SELECT * FROM c ORDER BY c.z",
    "SELECT * FROM c ORDER BY c.b",
]


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_not_known_is_refused(query: str) -> None:
    with pytest.raises(RefusalError) as refused:
        run(query)
    assert refused.value.status == 400

"""What a grown store is filled with, and what counts as a walk through it."""

from typing import Any

import pytest

from providers import rules
from tests.bench.growth import REVISIONS, _write_sets
from tests.bench.scans import Scan, _literal, _note
from tests.bench.texts import AGENT


@pytest.mark.parametrize("records", [1, 25, 60])
def test_a_project_is_filled_with_just_so_many_whole_histories(records: int) -> None:
    sets = list(_write_sets("grown-0000", AGENT, records))
    heads = [put.record.current for each in sets for put in each.heads]
    assert len({head.record_id for head in heads}) == len(heads) == records
    assert {head.revision for head in heads} == {REVISIONS}
    for each in sets:
        rules.check(each)
        assert len(each.history) == len(each.heads) * (REVISIONS - 1)
        assert all(put.entry is not None for put in each.heads)


def noted(**step: Any) -> Scan:
    scan = Scan("a call", 1.0)
    _note(scan, {"Node Type": "Index Scan", "Actual Rows": 2.0, "Actual Loops": 3, **step})
    return scan


def test_a_table_read_from_end_to_end_is_a_walk() -> None:
    scan = noted(**{"Node Type": "Seq Scan", "Relation Name": "records"})
    assert scan.walked == {"records"}
    assert "WALKS THROUGH records" in str(scan)


def test_an_index_read_from_end_to_end_is_a_walk() -> None:
    found = {"Relation Name": "records", "Index Name": "records_pkey"}
    assert noted(**found).walked == {"records_pkey"}
    assert noted(**found, **{"Index Cond": "(record_id = $3)"}).walked == set()


def test_the_marker_is_read_as_it_is() -> None:
    assert noted(**{"Node Type": "Seq Scan", "Relation Name": "resource"}).walked == set()


def test_rows_that_are_looked_at_in_vain_count() -> None:
    found = {"Relation Name": "records", "Index Name": "i", "Index Cond": "c"}
    assert noted(**found, **{"Rows Removed by Filter": 5}).rows == 21


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (None, "NULL"),
        (7, "7"),
        (True, "True"),
        ("it's", "'it''s'"),
        (["a", None, 'b"'], """'{"a", NULL, "b\\""}'"""),
        ([1, 2.5], "'{1, 2.5}'"),
    ],
)
def test_values_are_written_as_the_server_reads_them(value: object, sql: str) -> None:
    assert _literal(value) == sql

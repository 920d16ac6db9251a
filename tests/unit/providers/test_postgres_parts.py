"""Which of its statements the adapter sends: the least that does all that is asked."""

from functools import partial
from typing import Any

import pytest

from providers.conformance import specimens
from providers.model import ProjectKey, ReceiptKey, ResourceIdentity, RevisionRef, WriteSet
from providers.postgres import commit, reader, statements
from providers.requests import LoadRequest
from tests.bench.floors import statement_of

PROJECT = ProjectKey("t1", "p1")
RESOURCE = ResourceIdentity("resource", 1)
FIRST, OTHER = specimens.memory("r1"), specimens.memory("r2")
UPDATE = specimens.update(PROJECT, FIRST)
WRITES: dict[str, tuple[WriteSet, str]] = {
    "new": (specimens.create(PROJECT, FIRST, must_be_absent=("k1",)), "COMMIT_NEW"),
    "changed": (UPDATE, "COMMIT_CHANGED"),
    "new and changed": (
        specimens.write(PROJECT, specimens.put(OTHER), *UPDATE.heads),
        "COMMIT",
    ),
    "a counter": (specimens.create(PROJECT, FIRST, graph_expected=0), "COMMIT"),
    "an effect": (specimens.create(PROJECT, FIRST, effect=specimens.effect(1)), "COMMIT"),
}
LOADS: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"record_ids": ("r1",)}, "LOAD_HEADS"),
    "a receipt": ({"receipt": ReceiptKey(specimens.ACTOR, "key")}, "LOAD_KEPT"),
    "keys": ({"record_ids": ("r1",), "keys": ("k1",)}, "LOAD_KEPT"),
    "a counter": ({"graph": True}, "LOAD_KEPT"),
    "revisions": ({"revisions": (RevisionRef("r1", 1),)}, "LOAD"),
    "a chain": ({"chain_from": "r1"}, "LOAD"),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_commit_has_the_parts_that_its_write_set_needs(name: str) -> None:
    write_set, wanted = WRITES[name]
    statement, _ = commit.encode(RESOURCE, write_set)
    assert statement == getattr(statements, wanted)


@pytest.mark.parametrize("name", LOADS)
async def test_a_load_has_the_parts_that_its_call_asks_for(name: str) -> None:
    asked, wanted = LOADS[name]
    work = partial(reader.load, request=LoadRequest(project=PROJECT, **asked))
    statement, _ = await statement_of(work, RESOURCE)
    assert statement == getattr(statements, wanted)


def test_the_whole_statements_have_every_part() -> None:
    for statement in (statements.LOAD, statements.COMMIT):
        assert "-- if" not in statement
        assert "-- end" not in statement
    assert statements.COMMIT.count("INSERT INTO") == 8

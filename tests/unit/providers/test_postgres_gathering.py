"""Which loads share a statement."""

from dataclasses import fields, replace
from typing import Any

import pytest

from providers.conformance import specimens
from providers.model import ProjectKey, ReceiptKey, RevisionRef
from providers.postgres.gathering import is_one_head
from providers.requests import LoadRequest

ONE = LoadRequest(project=ProjectKey("t1", "p1"), record_ids=("r1",))
MORE: dict[str, Any] = {
    "record_ids": ("r1", "r2"),
    "revisions": (RevisionRef("r1", 1),),
    "receipt": ReceiptKey(specimens.ACTOR, "key"),
    "keys": ("k1",),
    "chain_from": "",
    "graph": True,
    "transfer": True,
    "stream_run_id": "",
}


def test_one_head_is_one_head() -> None:
    assert is_one_head(ONE)
    assert not is_one_head(replace(ONE, record_ids=()))


@pytest.mark.parametrize("name", [each.name for each in fields(ONE) if each.name != "project"])
def test_what_asks_for_more_is_not(name: str) -> None:
    assert not is_one_head(replace(ONE, **{name: MORE[name]}))

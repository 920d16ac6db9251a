"""Which loads share a statement."""

import asyncio
from dataclasses import fields, replace
from typing import Any

import pytest

from providers.conformance import specimens
from providers.model import ProjectKey, ReceiptKey, ResourceIdentity, RevisionRef
from providers.postgres.gathering import HeadReader, is_one_head
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


class _Cancelled:
    """Connections whose statement is cancelled by nobody who waits for it."""

    def check_open(self) -> None:
        """Open."""

    async def run(self, *_: object, **__: object) -> None:
        raise asyncio.CancelledError


async def test_nobody_waits_for_a_statement_that_is_gone() -> None:
    reader = HeadReader(_Cancelled(), ResourceIdentity("r", "g"))  # type: ignore[arg-type]
    calls = [reader.load(ONE, timeout=60.0) for _ in range(3)]
    told = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)
    assert [type(each) for each in told] == [TimeoutError] * 3

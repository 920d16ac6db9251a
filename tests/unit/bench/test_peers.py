"""How a peer is led: orders in, answers out."""

import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.bench.peers import cases
from tests.bench.peers.cases import PeerProcess
from tests.bench.peers.environment import LOCK
from tests.bench.peers.loop import Operation, lead


class CountingPeer:
    """Keeps the numbers it was called with."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    async def start(self, given: Mapping[str, Any]) -> Mapping[str, Operation]:
        print("what a library prints is no answer")
        if "refuse" in given:
            raise ValueError("it will not start")
        return {"count": self.count, "check": self.check, "fail": self.fail}

    async def stop(self) -> None: ...

    async def count(self, number: int) -> None:
        await asyncio.sleep(0)
        self.seen.append(number)

    async def check(self, number: int) -> None:
        assert sorted(self.seen) == list(range(number + len(self.seen)))

    async def fail(self, number: int) -> None:
        raise LookupError(f"call {number} found nothing")


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> PeerProcess:
    """A process that is led and not yet started."""
    monkeypatch.setattr(cases, "__package__", __name__.rpartition(".")[0])
    return PeerProcess(__name__.rpartition(".")[2], lambda: sys.executable)


async def nothing() -> dict[str, Any]:
    return {}


async def refusing() -> dict[str, Any]:
    return {"refuse": True}


async def test_numbers_count_on_from_run_to_run(process: PeerProcess) -> None:
    assert await process.start(nothing)
    for calls in (5, 7):
        answer = await process.ask(do="run", operation="count", calls=calls, concurrency=3)
        assert len(answer["latencies"]) == calls
        assert answer["seconds"] > 0
    await process.ask(do="run", operation="check", calls=1, concurrency=1)
    assert await process.stop()


async def test_a_call_that_fails_fails_the_run(process: PeerProcess) -> None:
    await process.start(nothing)
    with pytest.raises(RuntimeError, match="LookupError: call 0 found nothing"):
        await process.ask(do="run", operation="fail", calls=3, concurrency=1)
    await process.stop()


async def test_a_start_that_fails_is_told(process: PeerProcess) -> None:
    with pytest.raises(RuntimeError, match="it will not start"):
        await process.start(refusing)
    assert await process.stop()


async def test_it_starts_once_and_ends_with_its_last_user(process: PeerProcess) -> None:
    assert [await process.start(nothing), await process.start(nothing)] == [True, False]
    assert [await process.stop(), await process.stop()] == [False, True]


def test_the_lock_names_versions_and_hashes_alone() -> None:
    text = LOCK.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^--", text, re.MULTILINE)
    for package in ("langgraph-checkpoint-postgres", "mem0ai", "psycopg"):
        assert re.search(rf"^{package}==\S+ \\\n +--hash=sha256:", text, re.MULTILINE)


if __name__ == "__main__":
    lead(CountingPeer())

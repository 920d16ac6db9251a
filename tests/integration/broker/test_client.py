"""The plain client of the memory protocol, against a broker."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from grpc import aio

from broker.client import MemoryClient, MemoryNotFoundError, connect, reason_of
from tests.deploy.files import ROOT
from tests.fixtures.broker import Stand


@pytest.fixture
async def memory(stand: Stand) -> AsyncIterator[MemoryClient]:
    """The client of an agent of a fresh project."""
    async with connect(
        stand.broker.address,
        stand.identity.token,
        project=stand.project(),
        run="run-a",
        agent="agent-a",
    ) as client:
        yield client


async def test_the_five_verbs(memory: MemoryClient) -> None:
    """003-01…06: remember, recall, recall by tags, update and forget, and what each gives back."""
    kept = await memory.remember(
        "Deploys are frozen on Fridays",
        tags=["ops"],
        importance=0.9,
        metadata={"ticket": "T-1"},
        source="session-1",
    )
    assert kept.action == "created"
    again = await memory.remember("deploys are frozen on fridays")
    assert (again.id, again.action) == (kept.id, "skipped")
    (found,) = await memory.recall("when may I deploy?")
    assert (found.id, found.tags, found.importance) == (kept.id, ("ops",), 0.9)
    assert (found.metadata, found.source, found.trust) == (
        {"ticket": "T-1"},
        "session-1",
        "agent, pending",
    )
    assert found.score is not None
    changed = await memory.update(kept.id, "Deploys are frozen on Mondays")
    assert (changed.tags, changed.importance, changed.metadata, changed.revision) == (
        ("ops",),
        0.9,
        {"ticket": "T-1"},
        2,
    )
    (tagged,) = await memory.recall_by_tags(["OPS"])
    assert tagged.content == "Deploys are frozen on Mondays"
    assert await memory.forget(kept.id)
    assert not await memory.forget(kept.id)
    assert await memory.recall("deploys") == []


async def test_what_is_not_there(memory: MemoryClient) -> None:
    """003-05, 003-06: forgetting says no, updating raises."""
    assert not await memory.forget("none")
    with pytest.raises(MemoryNotFoundError):
        await memory.update("none", "text")


async def test_what_is_refused(memory: MemoryClient) -> None:
    """A refusal tells its reason; a text is no list of tags."""
    with pytest.raises(aio.AioRpcError) as refused:
        await memory.remember("password: hunter2hunter2")
    assert reason_of(refused.value) == "CONTENT_REFUSED"
    with pytest.raises(TypeError, match="list of tags"):
        await memory.remember("text", tags="ops")


def test_the_five_lines_of_the_readme(stand: Stand) -> None:
    """003-12: pasted as the README has them, into what it says, they remember and recall.

    Only address and project are the stand's.
    """
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```\n(import os; (?:.+\n){5})```$", readme, re.MULTILINE)
    pasted, addresses = re.subn(r"127\.0\.0\.1:\d+", stand.broker.address, lines)
    pasted, projects = re.subn('"atlas"', f'"{stand.project()}"', pasted)
    assert (addresses, projects) == (1, 1)
    done = subprocess.run(
        [sys.executable, "-m", "asyncio"],
        input=f"{pasted}\n",
        env={**os.environ, "TOKEN": stand.identity.token(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = re.compile(r"\d\.\d+ Deploys are frozen on Fridays agent, pending$", re.MULTILINE)
    assert told.search(done.stdout), (done.stdout, done.stderr)

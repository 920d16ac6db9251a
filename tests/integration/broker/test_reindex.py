"""``broker reindex`` makes what recall finds memories by, for those that lack it."""

import subprocess
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.api.v1 import memory_service_pb2 as pb
from broker.devstack.settings import to_toml
from tests.fixtures.broker import COMMAND, Stand
from tests.fixtures.granting_owner import TENANT
from tests.fixtures.memory_calls import Agent


@pytest.fixture
async def agent(stand: Stand) -> AsyncIterator[Agent]:
    """An agent of a fresh project."""
    async with stand.channel() as channel:
        yield Agent(stand, channel)


def reindex(
    stand: Stand,
    project: str,
    provider_id: str,
    *,
    tenant: str = TENANT,
    config: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command, with the stand's settings unless others are given."""
    options = {
        "--config": str(config or stand.broker.settings_file),
        "--provider-id": provider_id,
        "--tenant": tenant,
        "--project": project,
    }
    command = [*COMMAND, "reindex", *(each for pair in options.items() for each in pair)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


async def test_memories_without_an_entry_are_found_again(agent: Agent) -> None:
    """6.6-10: recall tells of memories that are not indexed; the command makes them be found."""
    record = await agent.kept("The sky is blue")
    await agent.stand.database.execute(
        "UPDATE memory.recall_entries SET length = NULL, terms = NULL, counts = NULL"
        " WHERE record_id = $1",
        record.record_id,
    )
    lost = await agent.recall("sky")
    assert not lost.results
    assert lost.arms[0].gap == pb.ARM_GAP_UNINDEXED
    provider_id = agent.stand.memory.candidate.provider_id
    done = reindex(agent.stand, agent.project, provider_id)
    assert (done.returncode, done.stdout) == (
        0,
        f"broker: 1 memories of project {agent.project} were indexed\n",
    )
    assert await agent.texts("sky") == ["The sky is blue"]
    assert "broker: 0 memories" in reindex(agent.stand, agent.project, provider_id).stdout


async def test_a_project_that_keeps_nothing_here_is_told(agent: Agent) -> None:
    """004-101: a mistyped project or tenant is no project that needs nothing."""
    await agent.kept("The sky is blue")
    provider_id = agent.stand.memory.candidate.provider_id
    for project, tenant in ((f"{agent.project}-not", TENANT), (agent.project, f"{TENANT}-not")):
        done = reindex(agent.stand, project, provider_id, tenant=tenant)
        assert (done.returncode, done.stdout) == (1, "")
        told = f"no run of project {project} of tenant {tenant} keeps memory at {provider_id}"
        assert done.stderr == f"broker: {told}\n"


async def test_pins_that_cannot_be_read_are_told(agent: Agent, tmp_path: Path) -> None:
    """004-101: what is not known is no project without memories."""
    await agent.kept("The sky is blue")
    settings = tomllib.loads(agent.stand.broker.settings_file.read_text(encoding="utf-8"))
    settings["store"]["dsn"] = "postgresql://nobody:hush-hush@127.0.0.1:1/none"
    config = tmp_path / "broker.toml"
    config.write_text(to_toml(settings), encoding="utf-8")
    provider_id = agent.stand.memory.candidate.provider_id
    done = reindex(agent.stand, agent.project, provider_id, config=config)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "broker: the broker's own store does not answer; retry\n"


def test_settings_that_are_not_there_are_told(stand: Stand, tmp_path: Path) -> None:
    """004-101: the file, and that it is not there; no number of an error."""
    absent = tmp_path / "absent.toml"
    done = reindex(stand, "project", "nobody", config=absent)
    assert done.returncode == 1
    assert done.stderr == f"broker: {absent}: No such file or directory\n"


def test_an_unknown_provider_is_told(stand: Stand) -> None:
    """What an operator can mend is one line."""
    done = reindex(stand, "project", "nobody")
    assert done.returncode == 1
    assert "none has the id nobody" in done.stderr

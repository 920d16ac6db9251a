"""What a supervisor does with workers that never serve, and with those that never end."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

from broker.supervision.slot import FAILURES_MAX
from tests.integration.workers.crew import frozen, is_there, until

ROOT = Path(__file__).parents[3]
SUPERVISING = (sys.executable, "-m", "tests.integration.workers.supervising")


async def supervising(module: str) -> asyncio.subprocess.Process:
    """Start a supervisor of two such workers."""
    return await asyncio.create_subprocess_exec(
        *SUPERVISING,
        module,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_workers_that_never_serve_are_not_started_for_ever() -> None:
    """A module that ends at once, without a refusal: a crash, and not the operator's settings."""
    process = await supervising("keyword")
    logged, told = await process.communicate()
    assert process.returncode == 3
    assert told.decode().splitlines()[-1].startswith("processes end before they serve")
    starts = [line for line in logged.splitlines() if b"process_started" in line]
    assert FAILURES_MAX <= len(starts) <= 2 * FAILURES_MAX


async def test_a_worker_that_is_frozen_while_it_starts_ends_with_its_supervisor() -> None:
    """Long before it knows of its supervisor; its order is empty, so that it never serves."""
    process = await supervising("broker.cli.worker")
    assert process.stdout is not None
    started = [json.loads(await process.stdout.readline()) for _ in range(2)]
    assert {line["event"] for line in started} == {"process_started"}
    pids = [line["child_pid"] for line in started]
    with frozen(pids):
        assert all(is_there(pid) for pid in pids)
        process.kill()
        await process.wait()
        await until(lambda: not any(is_there(pid) for pid in pids))


async def test_workers_that_do_not_end_are_killed_after_the_grace() -> None:
    process = await supervising("tests.integration.workers.stubborn_worker")
    assert process.stdout is not None
    lines: list[dict[str, Any]] = []
    while not (lines and lines[-1]["event"] == "serving"):
        lines.append(json.loads(await process.stdout.readline()))
    process.send_signal(signal.SIGTERM)
    rest, _ = await process.communicate()
    assert process.returncode == 1
    lines += [json.loads(line) for line in rest.splitlines()]
    ended = [line for line in lines if line["event"] == "process_ended"]
    assert [line["exit_code"] for line in ended] == [-signal.SIGKILL] * 2
    assert not any(is_there(line["child_pid"]) for line in ended)

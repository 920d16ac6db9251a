"""``broker dev`` against a PostgreSQL that somebody else has prepared."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.fixtures.events_site import events_role
from tests.fixtures.postgres import Database, PostgresBackend

ROOT = Path(__file__).resolve().parents[3]
END_OF_BANNER = "Ctrl-C stops everything"


def started(data: Path, dsn_file: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "broker", "dev", "--data", str(data), "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "BROKER_DEV_POSTGRES_DSN_FILE": str(dsn_file), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_broker_keeps_its_records_in_the_given_database(
    tmp_path: Path, postgres_database: Database
) -> None:
    file = tmp_path / "dsn"
    file.write_text(postgres_database.runtime_dsn)
    with started(tmp_path / "data", file) as process:
        output = banner(process)
        exports = [line for line in output if line.startswith("export ")]
        create = next(line for line in output if line.startswith("buf") and "CreateRecord" in line)
        made = subprocess.run(
            ["bash", "-c", "\n".join(["set -e", *exports[:3], create])],
            capture_output=True,
            text=True,
            check=False,
        )
        stop(process)
    assert made.returncode == 0, made.stderr
    assert not any(line.startswith("PostgreSQL: ") for line in output)
    assert "Events service: none, as it was given no database" in output
    assert not (tmp_path / "data" / "postgres").exists()
    assert count(postgres_database) == 1


def test_the_events_service_keeps_its_facts_in_the_given_database(
    tmp_path: Path, postgres_database: Database
) -> None:
    """004-80: with the address of a role that owns a schema ``events``."""
    file = tmp_path / "dsn"
    file.write_text(postgres_database.runtime_dsn)
    with events_role(postgres_database) as dsn:
        with started(tmp_path / "data", file, BROKER_DEV_EVENTS_DSN=dsn) as process:
            output = banner(process)
            stop(process)
        assert any(line.startswith("Events service: ready on 127.0.0.1:") for line in output)
        made = asyncio.run(postgres_database.fetchval("SELECT to_regclass('events.inbox')::text"))
        assert made == "events.inbox"


async def test_a_database_that_is_not_prepared_is_refused(
    tmp_path: Path, postgres_backend: PostgresBackend
) -> None:
    database = await postgres_backend.empty_database()
    file = tmp_path / "dsn"
    file.write_text(database.runtime_dsn)
    with started(tmp_path / "data", file) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output.splitlines()[-1] == (
        "broker: the given PostgreSQL is not prepared: run broker migrate and broker init-resource"
    )
    await postgres_backend.drop(database)


def banner(process: subprocess.Popen[str]) -> list[str]:
    """Reads what a stack prints until it is ready."""
    assert process.stdout is not None
    output = []
    for line in process.stdout:
        output.append(line.rstrip("\n"))
        if END_OF_BANNER in line:
            break
    assert process.poll() is None, "\n".join(output)
    return output


def stop(process: subprocess.Popen[str]) -> None:
    """Asks a stack to end, and reads what it still prints."""
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0, rest


def count(database: Database) -> int:
    return int(asyncio.run(database.fetchval("SELECT count(*) FROM memory.records")))

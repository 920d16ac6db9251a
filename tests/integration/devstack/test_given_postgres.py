"""``broker dev`` against a PostgreSQL that somebody else has prepared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.fixtures.postgres import Database, PostgresBackend

ROOT = Path(__file__).resolve().parents[3]
END_OF_BANNER = "Ctrl-C stops everything"


def started(data: Path, dsn_file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "broker", "dev", "--data", str(data), "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "BROKER_DEV_POSTGRES_DSN_FILE": str(dsn_file)},
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
        assert process.stdout is not None
        output = []
        for line in process.stdout:
            output.append(line.rstrip("\n"))
            if END_OF_BANNER in line:
                break
        assert process.poll() is None, "\n".join(output)
        exports = [line for line in output if line.startswith("export ")]
        create = next(line for line in output if line.startswith("buf") and "CreateRecord" in line)
        made = subprocess.run(
            ["bash", "-c", "\n".join(["set -e", *exports[:3], create])],
            capture_output=True,
            text=True,
            check=False,
        )
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait() == 0, rest
    assert made.returncode == 0, made.stderr
    assert not any("PostgreSQL" in line for line in output)
    assert not (tmp_path / "data" / "postgres").exists()
    assert count(postgres_database) == 1


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


def count(database: Database) -> int:
    import asyncio

    return int(asyncio.run(database.fetchval("SELECT count(*) FROM memory.records")))

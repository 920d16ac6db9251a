"""What figures were measured on: nobody can read them without."""

import asyncio
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg

from tests.bench.cases import Ground

ROOT = Path(__file__).resolve().parents[2]
_GIB = 1024 * 1024


def facts(ground: Ground) -> Mapping[str, Any]:
    """Return what is known of the machine, the servers and the code."""
    return {
        "cpu": _line("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gib": round(int(_line("/proc/meminfo", "MemTotal").split()[0]) / _GIB, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "postgresql": asyncio.run(_postgresql(ground)),
        "redis": ground.redis.execute("INFO", "server")["redis_version"],
        "commit": _commit(),
    }


def load() -> tuple[float, float, float]:
    """Return how many processes ran at once, in the last minute, five and fifteen."""
    one, five, fifteen = os.getloadavg()
    return round(one, 2), round(five, 2), round(fifteen, 2)


async def _postgresql(ground: Ground) -> str:
    connection = await asyncpg.connect(ground.postgres.superuser_dsn)
    try:
        return str(await connection.fetchval("SHOW server_version"))
    finally:
        await connection.close()


def _line(file: str, name: str) -> str:
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    values = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(values, "unknown")


def _commit() -> str:
    """Return the commit that is measured; a plus behind it: and changes that are not in it."""
    told = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "unknown"

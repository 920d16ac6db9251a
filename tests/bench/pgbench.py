"""The commit of one ``CreateRecord`` through pgbench: no Python at all."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import asyncpg

from providers.postgres import commit
from tests.bench.cases import Ground, Sample
from tests.bench.seeds import created
from tests.fixtures.postgres import Database

MARK = "MARK"
"""Stands in every identifier of the write set, where each transaction puts a number of its own."""
_TPS = re.compile(r"^tps = ([0-9.]+) ", re.MULTILINE)
_PARAMETER = re.compile(r"\$(\d+)")
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
# As the adapter's connections have them.
_OPTIONS = "-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off"


def program() -> str | None:
    """Return where pgbench is; None: this machine has none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))
    return shutil.which("pgbench") or (str(found[-1]) if found else None)


@dataclass
class PgbenchCase:
    """The adapter's commit statement, prepared once on each connection."""

    name: str
    ground: Ground
    program: str
    _database: Database | None = None

    async def start(self) -> None:
        """See ``Case``."""
        self._database = await self.ground.postgres.database()
        asked, given = commit.encode(self._database.resource, created("write", MARK))
        kinds = await self._kinds(asked)
        values = [_value(each, kind) for each, kind in zip(given, kinds, strict=True)]
        # A comment may name parameters that this statement lacks.
        statement = _PARAMETER.sub(lambda found: values[int(found[1]) - 1], _COMMENT.sub("", asked))
        self._script.write_text(
            f"\\set n random(1, 9000000000000000000)\n{statement.rstrip()};\n", encoding="utf-8"
        )

    async def run(self, concurrency: int, calls: int) -> Sample:
        """See ``Case``. The calls are a multiple of the concurrency."""
        each, rest = divmod(calls, concurrency)
        if rest:
            raise ValueError("every client of pgbench makes the same number of calls")
        prefix = self.ground.directory / "pgbench-log"
        options = ["-n", "-M", "prepared", "-f", str(self._script), "-l", f"--log-prefix={prefix}"]
        process = await asyncio.create_subprocess_exec(
            *(self.program, *options, "-c", str(concurrency), "-t", str(each)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **self._environment()},
        )
        said, _ = await process.communicate()
        found = _TPS.search(said.decode())
        latencies = _latencies(prefix.parent, prefix.name)
        if process.returncode != 0 or found is None or len(latencies) != calls:
            raise RuntimeError(f"pgbench failed:\n{said.decode()}")
        return Sample(calls, calls / float(found[1]), latencies)

    async def stop(self) -> None:
        """See ``Case``."""
        if self._database is not None:
            await self.ground.postgres.drop(self._database)

    @property
    def _script(self) -> Path:
        return self.ground.directory / "commit.pgbench"

    def _environment(self) -> Mapping[str, str]:
        assert self._database is not None
        parts = urlsplit(self._database.runtime_dsn)
        return {
            "PGHOST": parts.hostname or "",
            "PGPORT": str(parts.port),
            "PGUSER": parts.username or "",
            "PGPASSWORD": unquote(parts.password or ""),
            "PGDATABASE": self._database.name,
            "PGSSLMODE": "disable",
            "PGOPTIONS": _OPTIONS,
        }

    async def _kinds(self, asked: str) -> list[str]:
        """Return the types of a statement's parameters."""
        assert self._database is not None
        connection = await asyncpg.connect(self._database.runtime_dsn)
        try:
            prepared = await connection.prepare(asked)
            return [each.name for each in prepared.get_parameters()]
        finally:
            await connection.close()


def _value(given: Any, kind: str) -> str:
    """Return an argument as SQL, with the number in place of the mark."""
    if given is None:
        return f"NULL::{kind}"
    if isinstance(given, list):
        values = (_value(each, kind.removesuffix("[]")) for each in given)
        return f"ARRAY[{', '.join(values)}]::{kind}"
    text = _spaced(str(given)).replace("'", "''")
    if MARK in text:
        return f"replace('{text}', '{MARK}', :n::text)::{kind}"
    return f"'{text}'::{kind}"


def _spaced(text: str) -> str:
    """Return JSON with a space behind each colon: pgbench would take a name there for its own."""
    if not text.startswith(("[", "{")):
        return text
    return json.dumps(json.loads(text), ensure_ascii=False)


def _latencies(directory: Path, prefix: str) -> tuple[float, ...]:
    """Read the times of all transactions, which pgbench logs in microseconds, and drop the log."""
    found: list[float] = []
    for file in directory.glob(f"{prefix}.*"):
        lines = file.read_text(encoding="ascii").splitlines()
        found += [int(line.split()[2]) / 1e6 for line in lines]
        file.unlink()
    return tuple(sorted(found))

"""The hot statements, read once. Each stands in a file of its own beside this one."""

from importlib.resources import files

import asyncpg


def _read(name: str) -> str:
    return files("providers.postgres").joinpath(name).read_text(encoding="utf-8")


LOAD = _read("load.sql")
COMMIT = _read("commit.sql")
CLASSIFY = _read("classify.sql")
REVISIONS = _read("revisions.sql")
NEGOTIATE = _read("negotiate.sql")
MARKER = "SELECT resource_id, generation FROM memory.resource"

_NO_KEYS: list[str] = []
_NO_ROWS = "[]"


async def warm(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Prepare the hot statements on a new connection: run them for keys that are null.

    The first call that uses one would have to wait for it otherwise, and a commit that times out
    meanwhile would be taken for sent.
    """
    await connection.fetch(
        LOAD, None, None, _NO_KEYS, None, None, _NO_KEYS, [], _NO_KEYS, _NO_KEYS, None
    )
    await connection.fetch(
        COMMIT,
        *(None, None, None, None, _NO_ROWS, _NO_KEYS, _NO_ROWS, _NO_KEYS, _NO_KEYS, []),
        *(None, None, None, None, None, None, None, None, _NO_ROWS),
    )
    await connection.fetch(CLASSIFY, None, None, None, None, *[_NO_KEYS] * 4)
    await connection.fetch(REVISIONS, None, None, None, None, None, 0)

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

WALK = 500
"""How many heads a search for text looks through before it asks the index of the text."""


def _search(name: str, *, one_agent: bool) -> str:
    statement = _read(name)
    for mark, sql in (
        ("scope", _scope("POSIX", one_agent)),
        ("scope of the text", _scope("ucs_basic", one_agent)),
        ("fits", _read("search_fits.sql")),
        ("walk", str(WALK)),
    ):
        statement = statement.replace(f"/* {mark} */", sql)
    return statement


def _scope(collation: str, one_agent: bool) -> str:
    """Return the condition that the indexes of one collation serve; see ``schema.py``."""
    agent = f'r.agent_id COLLATE "{collation}" = $15' if one_agent else "$15::text IS NULL"
    return (
        f'r.tenant_id COLLATE "{collation}" = $1 AND r.project_id COLLATE "{collation}" = $2'
        f" AND {agent}"
    )


SEARCH_AGENT = _search("search.sql", one_agent=True)
SEARCH_PROJECT = _search("search.sql", one_agent=False)
SEARCH_TEXT_AGENT = _search("search_text.sql", one_agent=True)
SEARCH_TEXT_PROJECT = _search("search_text.sql", one_agent=False)

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
    nothing = (*[None] * 5, _NO_KEYS, *[None] * 6, 0, None, None)
    for statement in (SEARCH_AGENT, SEARCH_PROJECT):
        await connection.fetch(statement, *nothing)
    for statement in (SEARCH_TEXT_AGENT, SEARCH_TEXT_PROJECT):
        await connection.fetch(statement, *nothing, None)

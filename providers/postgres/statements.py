"""The hot statements, read once. Each stands in a file of its own beside this one."""

import re
from importlib.resources import files

import asyncpg

from providers.requests import BRIEF_LENGTH


def _read(name: str) -> str:
    return files("providers.postgres").joinpath(name).read_text(encoding="utf-8")


HEADS = _read("heads.sql")
CLASSIFY = _read("classify.sql")
NEGOTIATE = _read("negotiate.sql")
ACQUIRE = _read("acquire.sql")
ACKNOWLEDGE = _read("acknowledge.sql")
RELEASE = _read("release.sql")
EFFECT = _read("effect.sql")
PENDING = _read("pending.sql")
UNSCOPED = _read("unscoped.sql")
TOMBSTONES = _read("tombstones.sql")
CANDIDATES = _read("candidates.sql")
MARKER = "SELECT resource_id, generation FROM memory.resource"

_PART = re.compile(r"^-- if (\w+):\n(.*?)(?:^-- else:\n(.*?))?^-- end\n", re.DOTALL | re.MULTILINE)


def _parts(name: str, *wanted: str) -> str:
    """Read a statement without the parts that are not wanted."""
    return _PART.sub(lambda part: part[2] if part[1] in wanted else part[3] or "", _read(name))


LOAD = _parts("load.sql", "kept", "linked")
LOAD_KEPT = _parts("load.sql", "kept")
LOAD_HEADS = _parts("load.sql")
COMMIT = _parts("commit.sql", "new", "changed", "ordered")
COMMIT_NEW = _parts("commit.sql", "new")
COMMIT_CHANGED = _parts("commit.sql", "changed")


def _page(statement: str, *, brief: int, bytes_max: int) -> str:
    """Put in what pages have in common; the numbers are those of the two parameters."""
    for mark, sql in (
        ("columns", _read("page_columns.sql").rstrip()),
        ("size", _read("page_bytes.sql").rstrip()),
        ("brief", f"${brief}::boolean"),
        ("length", str(BRIEF_LENGTH)),
        ("bytes", f"${bytes_max}::bigint"),
    ):
        statement = statement.replace(f"/* {mark} */", sql)
    return statement


REVISIONS = _page(_read("revisions.sql"), brief=7, bytes_max=8)

WALK = 200
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
    return _page(statement, brief=16, bytes_max=17)


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


def _export(name: str) -> str:
    return _read("export.sql").replace("/* chosen */", _read(name).rstrip())


EXPORT_AGENT = _export("export_agent.sql")
EXPORT_NAMED = _export("export_named.sql")


# Conditions that the indexes of one collation serve; see ``schema.py``.
_OF_AGENT = (
    '{0}.tenant_id COLLATE "{1}" = $1 AND {0}.project_id COLLATE "{1}" = $2'
    ' AND {0}.agent_id COLLATE "{1}" = $3'
)
_NO_NEAREST = "NULL::text[] AS near_ids, NULL::float8[] AS likenesses"
_NEAREST = """\
(SELECT array_agg(n.record_id ORDER BY n.place) FROM nearest AS n) AS near_ids,
    (SELECT array_agg(n.likeness ORDER BY n.place) FROM nearest AS n) AS likenesses"""


def _recall(name: str, *, nearest: bool = False) -> str:
    statement = _read(name)
    for mark, sql in (
        ("nearest", _read("recall_nearest.sql").rstrip() if nearest else ""),
        ("near", _NEAREST if nearest else _NO_NEAREST),
        ("scope", _OF_AGENT.format("e", "POSIX")),
        ("scope of the terms", _OF_AGENT.format("e", "ucs_basic")),
        ("scope of the vectors", _OF_AGENT.format("v", "POSIX")),
        ("fits", _read("recall_fits.sql").rstrip()),
    ):
        statement = statement.replace(f"/* {mark} */", sql)
    return statement


RECALL = _recall("recall.sql")
RECALL_NEAREST = _recall("recall.sql", nearest=True)
TAGGED = _recall("tagged.sql")
INDEX = _read("index.sql")


def _unindexed(collation: str, lacking: str) -> str:
    within = f'e.tenant_id COLLATE "{collation}" = $1 AND e.project_id COLLATE "{collation}" = $2'
    after = f'e.record_id COLLATE "{collation}" > $3'
    return (
        _read("unindexed.sql")
        .replace("/* lacking */", f"{within} AND {after} AND NOT e.forgotten AND {lacking}")
        .replace("/* collation */", collation)
    )


UNINDEXED = _unindexed("POSIX", "e.length IS NULL")
UNINDEXED_MODEL = _unindexed("C", "(e.length IS NULL OR e.vector_model IS DISTINCT FROM $5::text)")

_NO_KEYS: list[str] = []
_NO_ROWS = "[]"
_NO_NUMBERS: list[float] = []
_HAS_VECTORS = "SELECT to_regproc('memory.likeness') IS NOT NULL"


async def warm(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Prepare the hot statements on a new connection: run them for keys that are null.

    The first call that uses one would have to wait for it otherwise, and a commit that times out
    meanwhile would be taken for sent.
    """
    kept = (None, None, _NO_KEYS, None, None, _NO_KEYS, _NO_KEYS)
    await connection.fetch(LOAD, *kept, _NO_KEYS, [], None)
    await connection.fetch(LOAD_KEPT, *kept)
    await connection.fetch(LOAD_HEADS, None, None, _NO_KEYS)
    await connection.fetch(HEADS, _NO_KEYS, _NO_KEYS, _NO_KEYS)
    nothing = (*[None] * 4, _NO_ROWS, _NO_ROWS, _NO_KEYS, *[None] * 8, _NO_NUMBERS)
    await connection.fetch(COMMIT, *nothing, _NO_KEYS, _NO_KEYS, [], _NO_ROWS)
    await connection.fetch(COMMIT_NEW, *nothing)
    await connection.fetch(COMMIT_CHANGED, *nothing, _NO_KEYS)
    await connection.fetch(CLASSIFY, None, None, None, None, *[_NO_KEYS] * 4, None)
    await connection.fetch(REVISIONS, None, None, None, None, None, 0, False, None)
    searched = (*[None] * 5, _NO_KEYS, *[None] * 6, 0, None, None, False, None)
    for statement in (SEARCH_AGENT, SEARCH_PROJECT):
        await connection.fetch(statement, *searched)
    for statement in (SEARCH_TEXT_AGENT, SEARCH_TEXT_PROJECT):
        await connection.fetch(statement, *searched, None)
    await _warm_deliveries(connection)
    await connection.fetch(EXPORT_AGENT, None, None, None, 0, 0, 0)
    await connection.fetch(EXPORT_NAMED, None, None, None, 0, 0, 0, _NO_KEYS)
    await connection.fetch(TOMBSTONES, None, None, _NO_KEYS)
    await connection.fetch(CANDIDATES, None, None, None, None, 0, 0)
    await _warm_recall(connection)


async def _warm_deliveries(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    await connection.fetch(ACQUIRE, *[None] * 7)
    await connection.fetch(ACKNOWLEDGE, *[None] * 9)
    await connection.fetch(RELEASE, *[None] * 8)
    await connection.fetch(EFFECT, *[None] * 4)
    await connection.fetch(PENDING, None, None, None, 0, 0)
    await connection.fetch(UNSCOPED, *[None] * 4)


async def _warm_recall(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    nothing = [None] * 15
    await connection.fetch(RECALL, *nothing, _NO_KEYS, 0, 0)
    if await connection.fetchval(_HAS_VECTORS):
        await connection.fetch(RECALL_NEAREST, *nothing, _NO_KEYS, 0, 0, _NO_NUMBERS, None, 0, 0)
    await connection.fetch(TAGGED, *nothing, 0)
    await connection.fetch(UNINDEXED, None, None, None, 0)
    await connection.fetch(UNINDEXED_MODEL, None, None, None, 0, None)
    await connection.fetch(INDEX, None, None, None, None, _NO_ROWS, _NO_KEYS, _NO_NUMBERS)

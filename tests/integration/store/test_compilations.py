"""The log of compilations: what goes in comes out, and what a list finds in what order."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import asyncpg
import pytest

from broker.domain.compilations import (
    Compilation,
    CompilationFields,
    CompilationPage,
    CompilationQuery,
)
from broker.domain.context import ContextKind, OmissionCause
from broker.domain.errors import StorageUnavailableError
from broker.store.compilations import PostgresCompilationLog
from providers.errors import StoredDataInvalidError
from providers.migration import open_engine
from tests.fixtures.compilations import compilation, hashed, item, omitted
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_proxy import PostgresProxy, proxied

ONE_TRIP = ["B", "E", "S"]
"""Bind, Execute, Sync: no Parse, no BEGIN, no COMMIT."""
LARGE = compilation(
    *(item(f"{'i' * 250}-{n:04}", n + 1) for n in range(1000)),
    left_out=tuple(omitted(f"{'o' * 250}-{n:04}") for n in range(1000)),
    omitted_memory_count=5000,
)


@dataclass
class Logged:
    """The log, and what was appended to it one after the other."""

    log: PostgresCompilationLog
    database: Database

    async def add(self, *items: Any, **given: Any) -> Compilation:
        return await self.log.append(compilation(*items, **given))

    async def page(self, **wanted: Any) -> CompilationPage:
        given: dict[str, Any] = {"tenant_id": "t", "project_id": "p", "limit": 100}
        return await self.log.list(CompilationQuery(**(given | wanted)))

    async def ids(self, **wanted: Any) -> list[str]:
        return [each.compilation_id for each in (await self.page(**wanted)).compilations]


@pytest.fixture
async def logged(postgres_database: Database) -> AsyncIterator[Logged]:
    engine = open_engine(postgres_database.runtime_dsn, pool_size=3)
    yield Logged(PostgresCompilationLog(engine), postgres_database)
    await engine.dispose()


@pytest.fixture
async def wire(postgres_database: Database) -> AsyncIterator[PostgresProxy]:
    async with proxied(postgres_database.runtime_dsn) as proxy:
        yield proxy


def newest_first(those: Sequence[Compilation]) -> list[str]:
    """Return their ids as a list has them."""

    def key(one: Compilation) -> tuple[datetime, str]:
        assert one.create_time is not None
        return one.create_time, one.compilation_id

    return [one.compilation_id for one in sorted(those, key=key, reverse=True)]


# -------------------- one compilation


async def test_a_compilation_comes_back_whole(logged: Logged) -> None:
    """002-34, 000-38: every field, what entered in the order of the text, what was left out."""
    given = compilation(
        item("z", 7, ContextKind.DECISION),
        item("a", 2**40),
        item("m", 1, ContextKind.SESSION_CONTEXT),
        left_out=(
            omitted("y", OmissionCause.RELEVANCE),
            omitted("b", OmissionCause.ITEM_LIMIT),
            omitted("s", OmissionCause.BUDGET, ContextKind.SESSION_CONTEXT),
        ),
        omitted_memory_count=1002,
        omitted_session_count=1,
        ignored_decision_count=3,
    )
    before = await logged.database.fetchval("SELECT clock_timestamp()")
    appended = await logged.log.append(given)
    after = await logged.database.fetchval("SELECT clock_timestamp()")
    found = await logged.log.find("t", "p", "r", given.compilation_id)
    assert appended == found == given
    assert found is not None
    assert appended.create_time == found.create_time
    assert before <= found.create_time <= after


async def test_what_there_was_not_stays_so(logged: Logged) -> None:
    """002-34: no query, no text, nothing that entered."""
    given = await logged.add(
        query_hash=None,
        text_hash=None,
        characters_used=0,
        left_out=(omitted("x"),),
        omitted_memory_count=1,
    )
    assert await logged.log.find("t", "p", "r", given.compilation_id) == given
    [summary] = (await logged.page()).compilations
    assert (summary.query_hash, summary.text_hash, summary.item_count) == (None, None, 0)


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("items", '["d1"]'),
        ("items", '[["decision", "d1", 1]]'),
        ("items", '[["opinion", "d1", 1, "d1.1"]]'),
        ("items", '[["decision", 7, 1, "d1.1"]]'),
        ("items", '[["decision", "d 1", 1, "d1.1"]]'),
        ("items", '[["decision", "d1", "1", "d1.1"]]'),
        ("items", '[["decision", "d1", true, "d1.1"]]'),
        ("items", '[["decision", "d1", 0, "d1.1"]]'),
        ("items", '[["decision", "d1", 1, null]]'),
        ("left_out", '[["memory", "m1", 1, "boredom"]]'),
        ("left_out", '[["memory", null, 1, "budget"]]'),
    ],
)
async def test_a_damaged_compilation(logged: Logged, name: str, damaged: str) -> None:
    """004-44, 004-100: what was logged and has another shape is damage, and nothing to guess at."""
    given = await logged.add(item("d1"))
    database = logged.database
    await database.fetchval("ALTER TABLE knowledge.compilations DISABLE TRIGGER USER")
    await database.fetchval(f"UPDATE knowledge.compilations SET {name} = '{damaged}'")
    with pytest.raises(StoredDataInvalidError):
        await logged.log.find("t", "p", "r", given.compilation_id)


async def test_a_summary_says_what_the_whole_says(logged: Logged) -> None:
    """000-38: but for what entered, of which it has the number."""
    given = await logged.add(item("x"), item("y"))
    for wanted in product(({}, {"run_id": "r"}), ({}, {"record_id": "y"})):
        [summary] = (await logged.page(**wanted[0], **wanted[1])).compilations
        for each in fields(CompilationFields):
            assert getattr(summary, each.name) == getattr(given, each.name)
        assert summary.item_count == given.item_count == 2


async def test_a_large_compilation(logged: Logged) -> None:
    """002-34: a thousand that entered and a thousand that did not, with the longest ids."""
    assert await logged.log.append(LARGE) == LARGE
    assert await logged.log.find("t", "p", "r", LARGE.compilation_id) == LARGE
    last = LARGE.items[-1]
    assert await logged.ids(record_id=last.record_id, revision=1000) == [LARGE.compilation_id]
    assert (await logged.page()).compilations[0].item_count == 1000


async def test_every_call_is_one_trip(postgres_database: Database, wire: PostgresProxy) -> None:
    """002-34: nothing of a compilation is there without the rest, and no reply waits twice."""
    engine = open_engine(wire.dsn(postgres_database.runtime_dsn), pool_size=1)
    log = PostgresCompilationLog(engine)
    many = tuple(item(f"i{n}") for n in range(100))
    left = tuple(omitted(f"o{n}") for n in range(1000))
    asked = CompilationQuery(tenant_id="t", project_id="p", run_id="r", record_id="i7", limit=9)
    await log.append(compilation())
    await log.find("t", "p", "r", "none")
    await log.list(asked)
    for call in (
        lambda: log.append(compilation(*many, left_out=left)),
        lambda: log.find("t", "p", "r", LARGE.compilation_id),
        lambda: log.list(asked),
    ):
        wire.types.clear()
        await call()
        assert wire.types == ONE_TRIP
    await engine.dispose()


async def test_one_id_is_one_compilation(logged: Logged) -> None:
    """002-34: the same id with other content changes nothing and is refused whole."""
    given = await logged.add(item("x"))
    with pytest.raises(StorageUnavailableError):
        await logged.add(item("y"), compilation_id=given.compilation_id)
    assert await logged.log.find("t", "p", "r", given.compilation_id) == given
    assert await logged.ids(record_id="y") == []
    await logged.add(item("y"), compilation_id=given.compilation_id, project_id="p2")


async def test_only_hashes_are_taken_for_hashes(logged: Logged) -> None:
    """000-38: no text of anybody gets in where a hash belongs, not by mistake either."""
    for name in ("query_hash", "text_hash", "actor_fingerprint"):
        for text in ("why is the sky blue", hashed("x").upper(), hashed("x") + "\n", ""):
            with pytest.raises(StorageUnavailableError):
                await logged.add(item("x"), **{name: text})
    assert await logged.ids() == await logged.ids(record_id="x") == []


def test_what_no_log_takes() -> None:
    """002-34: a record enters once; a list ends at a thousand; a revision is one of a record."""
    with pytest.raises(ValueError, match="once"):
        compilation(item("x", 1), item("x", 2))
    with pytest.raises(ValueError, match="1000"):
        compilation(left_out=tuple(omitted(f"o{n}") for n in range(1001)))
    with pytest.raises(ValueError, match="record"):
        CompilationQuery(tenant_id="t", project_id="p", revision=1, limit=1)


# -------------------- whose it is


async def test_a_compilation_is_of_its_run(logged: Logged) -> None:
    """000-38: nobody finds it by another tenant, project or run, byte for byte."""
    given = await logged.add(item("x"))
    for scope in (("T", "p", "r"), ("t", "P", "r"), ("t", "p", "R"), ("%", "%", "%")):
        assert await logged.log.find(*scope, given.compilation_id) is None
    assert await logged.log.find("t", "p", "r", given.compilation_id.upper()) is None


async def test_lists_are_of_one_tenant_and_project(logged: Logged) -> None:
    """000-38: the same run and record elsewhere are others, also with the same id."""
    mine = await logged.add(item("x"))
    for tenant, project in (("T", "p"), ("t", "P"), ("t", "p2")):
        await logged.add(
            item("x"),
            tenant_id=tenant,
            project_id=project,
            compilation_id=mine.compilation_id,
        )
    for run, record in product((None, "r"), ((None, None), ("x", None), ("x", 1))):
        wanted = {"run_id": run, "record_id": record[0], "revision": record[1]}
        [found] = (await logged.page(**wanted)).compilations
        assert (found.tenant_id, found.project_id) == ("t", "p")
        [found] = (await logged.page(project_id="P", **wanted)).compilations
        assert found.project_id == "P"
        assert await logged.ids(project_id="none", **wanted) == []


# -------------------- what a list finds


async def test_every_filter_with_every_other(logged: Logged) -> None:
    """000-38: run, record, revision and time, alone and together."""
    given = [
        await logged.add(
            *(item(record, 1 + n % 3) for record in ("x", "y") if n % 2 or record == "y"),
            run_id=f"r{n % 2 if n < 8 else n % 3}",
        )
        for n in range(12)
    ]
    early, late = given[3].create_time, given[9].create_time
    assert early is not None
    assert late is not None
    entered = [(None, None), ("x", None), ("x", 2), ("y", None), ("y", 3), ("none", None)]
    seen = 0
    for run, (record, revision), start, end in product(
        (None, "r0", "r1", "r2", "none"), entered, (None, early), (None, late)
    ):
        wanted: dict[str, Any] = {
            "run_id": run,
            "record_id": record,
            "revision": revision,
            "compiled_from": start,
            "compiled_before": end,
        }
        expected = newest_first([one for one in given if _fits(one, **wanted)])
        assert await logged.ids(**wanted) == expected, wanted
        seen += len(expected)
    assert seen > 100


def _fits(
    one: Compilation,
    *,
    run_id: str | None,
    record_id: str | None,
    revision: int | None,
    compiled_from: datetime | None,
    compiled_before: datetime | None,
) -> bool:
    assert one.create_time is not None
    return (
        run_id in {None, one.run_id}
        and (
            record_id is None
            or any(
                each.record_id == record_id and revision in {None, each.revision}
                for each in one.items
            )
        )
        and (compiled_from is None or one.create_time >= compiled_from)
        and (compiled_before is None or one.create_time < compiled_before)
    )


async def test_what_was_left_out_did_not_enter(logged: Logged) -> None:
    """000-38: a record's list tells where it entered."""
    await logged.add(item("x"), left_out=(omitted("y"),))
    assert await logged.ids(record_id="y") == await logged.ids(record_id="y", run_id="r") == []


SHAPES: list[dict[str, Any]] = [
    {},
    {"run_id": "r"},
    {"record_id": "x"},
    {"record_id": "x", "revision": 1},
    {"record_id": "x", "run_id": "r"},
    {"record_id": "x", "revision": 1, "run_id": "r"},
]


@pytest.mark.parametrize("wanted", SHAPES, ids=str)
async def test_pages_while_others_append(logged: Logged, wanted: dict[str, Any]) -> None:
    """000-38: what was there at the first page is told once, and the last page says so."""
    given = [await logged.add(item("x"), item(f"n{n}")) for n in range(7)]
    told: list[str] = []
    after = None
    for number in range(4):
        page = await logged.page(**wanted, limit=2, after=after)
        told += [each.compilation_id for each in page.compilations]
        assert page.more == (number < 3)
        last = page.compilations[-1]
        assert last.create_time is not None
        after = (last.create_time, last.compilation_id)
        await logged.add(item("x"))
    assert told == newest_first(given)
    exact = await logged.page(**wanted, limit=11)
    assert (len(exact.compilations), exact.more) == (11, False)


@pytest.mark.parametrize("wanted", SHAPES, ids=str)
async def test_pages_of_one_moment(logged: Logged, wanted: dict[str, Any]) -> None:
    """000-38: compilations of the same microsecond are told apart by their ids."""
    given = [await logged.add(item("x"), compilation_id=f"{n}") for n in (3, 1, 4, 5, 9, 2)]
    at = given[0].create_time
    assert at is not None
    await _at_once(logged.database, at)
    told: list[str] = []
    after = (at + timedelta(microseconds=1), "")
    while True:
        page = await logged.page(**wanted, limit=2, after=after)
        told += [each.compilation_id for each in page.compilations]
        if not page.more:
            break
        after = (at, told[-1])
    assert told == ["9", "5", "4", "3", "2", "1"]


async def _at_once(database: Database, at: datetime) -> None:
    connection = await asyncpg.connect(database.admin_dsn)
    try:
        for table in ("compilations", "compilation_items"):
            await connection.execute(f"ALTER TABLE knowledge.{table} DISABLE TRIGGER USER")
            await connection.execute(f"UPDATE knowledge.{table} SET create_time = $1", at)
    finally:
        await connection.close()


# -------------------- a store that fails


async def test_a_store_that_is_away() -> None:
    """004-101: retryable, and nothing is taken for no compilation."""
    engine = open_engine("postgresql://nobody:x@127.0.0.1:1/none", pool_size=1)
    log = PostgresCompilationLog(engine)
    for call in (
        lambda: log.append(compilation()),
        lambda: log.find("t", "p", "r", "c"),
        lambda: log.list(CompilationQuery(tenant_id="t", project_id="p", limit=1)),
    ):
        with pytest.raises(StorageUnavailableError):
            await call()
    await engine.dispose()


async def test_a_store_that_is_silent(
    postgres_database: Database, wire: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-101: the wait is bounded; what was written is whole or not there."""
    engine = open_engine(wire.dsn(postgres_database.runtime_dsn), pool_size=1)
    log = PostgresCompilationLog(engine)
    await log.append(compilation())
    monkeypatch.setattr("broker.store.compilations.TIMEOUT_SECONDS", 0.5)
    wire.lose_replies()
    with pytest.raises(StorageUnavailableError):
        await log.append(compilation(item("x")))
    wire.keep_replies()
    rows = await postgres_database.fetchval("SELECT count(*) FROM knowledge.compilations")
    index = await postgres_database.fetchval("SELECT count(*) FROM knowledge.compilation_items")
    assert rows - 1 == index
    await engine.dispose()

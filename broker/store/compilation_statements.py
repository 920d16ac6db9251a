"""The statements of the log of compilations; each is one round trip.

The shape of a list's statement says how rows are found, so that it does not hang on statistics: a
record's pages are walked in its own order and each compilation is then looked up by its key; a
run's are walked in the run's order, and each is asked whether the record entered it.
"""

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Text,
    and_,
    bindparam,
    column,
    func,
    insert,
    literal,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import BigInteger, TypeEngine

from broker.domain.compilations import Compilation, CompilationQuery
from broker.store.schema import compilation_items as entered
from broker.store.schema import compilations as log

_WHOLE_ONLY: Final = {
    "items",
    "left_out",
    "omitted_memory_count",
    "omitted_session_count",
    "ignored_decision_count",
}
_SUMMARY: Final = tuple(each for each in log.columns if each.name not in _WHOLE_ONLY)
_SCALARS: Final = tuple(
    each.name
    for each in log.columns
    if each.name not in {"items", "left_out", "item_count", "create_time"}
)
_WHOLE: Final = tuple(each for each in log.columns if each.name != "item_count")
_FIND: Final = select(*_WHOLE).where(
    *(
        log.c[name] == bindparam(name, type_=log.c[name].type)
        for name in ("tenant_id", "project_id", "run_id", "compilation_id")
    )
)
# What an item has of its compilation: whichever index the server takes, it finds one row by it.
_LINK: Final = ("tenant_id", "project_id", "run_id", "create_time", "compilation_id")


def found_one(tenant_id: str, project_id: str, run_id: str, compilation_id: str) -> Select[Any]:
    """Return what finds a compilation of a run."""
    return _FIND.params(
        tenant_id=tenant_id, project_id=project_id, run_id=run_id, compilation_id=compilation_id
    )


def appended(compilation: Compilation) -> Select[tuple[Any]]:
    """Return what writes a compilation and what entered it, and gives the time."""
    link = [log.c[name] for name in _LINK]
    row = insert(log).values(_values(compilation)).returning(*link).cte("logged")
    item = (
        func.unnest(
            _array("record_ids", [each.record_id for each in compilation.items], Text),
            _array("revisions", [each.revision for each in compilation.items], BigInteger),
        )
        .table_valued(column("record_id", Text), column("revision", BigInteger), name="item")
        .render_derived()
    )
    rows = select(*row.c, *item.c).join_from(row, item, true())
    indexed = insert(entered).from_select([*_LINK, "record_id", "revision"], rows).cte("entered")
    return select(row.c.create_time).add_cte(indexed)


def listed(query: CompilationQuery) -> Select[Any]:
    """Return what lists one compilation more than the limit, so that it shows if more follow."""
    if query.record_id is not None and query.run_id is None:
        return _of_record(query, query.record_id)
    statement = select(*_SUMMARY).where(*_wanted(log, query))
    if query.run_id is not None:
        statement = statement.where(log.c.run_id == query.run_id)
    if query.record_id is not None:
        statement = statement.where(_has_entered(query, query.record_id))
    return _first(statement, log, query)


def _of_record(query: CompilationQuery, record_id: str) -> Select[Any]:
    conditions = (*_wanted(entered, query), *_entry(query, record_id))
    page = _first(select(entered).where(*conditions), entered, query).subquery("page")
    same = and_(*(log.c[name] == page.c[name] for name in _LINK))
    # The limit keeps the look-up by key from being turned into a join over whole tables.
    one = select(*_SUMMARY).where(same).limit(1).lateral("one")
    statement = select(*one.c).join_from(page, one, true())
    return statement.order_by(page.c.create_time.desc(), page.c.compilation_id.desc())


def _has_entered(query: CompilationQuery, record_id: str) -> ColumnElement[bool]:
    """Return whether the record entered: asked of each row by the whole key, never a join."""
    found = select(true()).where(
        *(entered.c[name] == log.c[name] for name in _LINK),
        *_entry(query, record_id),
    )
    return found.correlate(log).scalar_subquery()


def _wanted(table: FromClause, query: CompilationQuery) -> Iterator[ColumnElement[bool]]:
    yield table.c.tenant_id == query.tenant_id
    yield table.c.project_id == query.project_id
    if query.compiled_from is not None:
        yield table.c.create_time >= query.compiled_from
    if query.compiled_before is not None:
        yield table.c.create_time < query.compiled_before
    if query.after is not None:
        keys = (table.c.create_time, table.c.compilation_id)
        seen = (literal(at, key.type) for at, key in zip(query.after, keys, strict=True))
        yield tuple_(*keys) < tuple_(*seen)


def _entry(query: CompilationQuery, record_id: str) -> Iterator[ColumnElement[bool]]:
    yield entered.c.record_id == record_id
    if query.revision is not None:
        yield entered.c.revision == query.revision


def _first(statement: Select[Any], table: FromClause, query: CompilationQuery) -> Select[Any]:
    newest_first = (table.c.create_time.desc(), table.c.compilation_id.desc())
    return statement.order_by(*newest_first).limit(query.limit + 1)


def _array(name: str, values: list[Any], of: type[TypeEngine[Any]]) -> ColumnElement[Any]:
    return bindparam(name, values, ARRAY(of))


def _values(compilation: Compilation) -> dict[str, object]:
    items = [
        [item.kind.value, item.record_id, item.revision, item.revision_id]
        for item in compilation.items
    ]
    left_out = [
        [left.kind.value, left.record_id, left.revision, left.cause.value]
        for left in compilation.left_out
    ]
    return {name: getattr(compilation, name) for name in _SCALARS} | {
        "item_count": len(items),
        "items": items,
        "left_out": left_out,
        "create_time": func.now(),
    }

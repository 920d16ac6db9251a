"""How the server finds rows among many: no hot statement may walk through a large table.

Each statement is what the adapter sends for a call, in a session of the adapter, planned for any
values as there, and run, in a transaction that is rolled back.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from broker.memory.keys import content_key
from broker.retrieval.terms import query_terms
from providers.conformance import specimens
from providers.exports import ExportRequest
from providers.model import ReceiptKey, Record, ResourceIdentity, WriteSet
from providers.postgres import candidates, commit, export, reader, recall, search
from providers.postgres.connections import Connection, Connections
from providers.postgres.options import PostgresOptions
from providers.postgres.statements import warm
from providers.recall import Eligible, RecallRequest
from providers.requests import CandidatesRequest, LoadRequest, RevisionsRequest, SearchRequest
from tests.bench.floors import Statement, one_head, statement_of
from tests.bench.seeds import created, number, project, put
from tests.bench.texts import AGENT, COMPOSER, RUN, query, tags, text

SECONDS: Final = 120.0
SMALL: Final = frozenset({"resource"})
"""Tables of one row: a walk through them is the way to read them."""
PAGE: Final = 10
CANDIDATES: Final = 1_001


@dataclass
class Scan:
    """How one statement was carried out.

    Attributes:
        call: What it is sent for.
        ms: What the server took, in milliseconds.
        rows: How many rows it looked at.
        indexes: What it read tables through.
        walked: Large tables and indexes that it walked through from end to end: there must be none.
    """

    call: str
    ms: float
    rows: int = 0
    indexes: set[str] = field(default_factory=set)
    walked: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        how = ", ".join(sorted(self.indexes))
        walked = f"  WALKS THROUGH {', '.join(sorted(self.walked))}" if self.walked else ""
        return f"{self.call:20} {self.ms:8.2f} ms {self.rows:6} rows  {how}{walked}"


async def scans(options: PostgresOptions, name: str, record: Record) -> list[Scan]:
    """Look at each hot statement.

    Args:
        options: Where the records are.
        name: A project.
        record: The head of a record in it, of the usual agent.
    """
    resource = ResourceIdentity(options.resource_id, options.generation)
    connections = Connections(options, warm)
    try:
        return [
            await connections.run(partial(_looked_at, call=call, asked=asked), timeout=SECONDS)
            for call, asked in (await _statements(resource, name, record)).items()
        ]
    finally:
        await connections.close()


async def _looked_at(link: Connection, *, call: str, asked: Statement) -> Scan:
    statement, given = asked
    literals = ", ".join(map(_literal, given))
    await link.execute(f"PREPARE looked_at AS {statement}")
    running = link.transaction()
    await running.start()
    try:
        told = await link.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE looked_at ({literals})")
    finally:
        await running.rollback()
        await link.execute("DEALLOCATE looked_at")
    plan = json.loads(told)[0]
    scan = Scan(call, plan["Execution Time"])
    for step in _steps(plan["Plan"]):
        _note(scan, step)
    return scan


def _note(scan: Scan, step: dict[str, Any]) -> None:
    """Take down how one step of a plan found its rows."""
    index, table = step.get("Index Name"), step.get("Relation Name")
    if index is not None:
        scan.indexes.add(index)
        if "Index Cond" not in step:
            scan.walked.add(index)
    elif step["Node Type"] == "Seq Scan" and table not in SMALL:
        scan.walked.add(str(table))
    if table is not None and step["Node Type"] != "ModifyTable":
        seen = step["Actual Rows"] + step.get("Rows Removed by Filter", 0)
        scan.rows += round(seen * step["Actual Loops"])


def _steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from _steps(each)


def _literal(value: object) -> str:
    """Return a value as SQL has it; the statement says of what type it is."""
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list):
        listed = ", ".join("NULL" if each is None else json.dumps(each) for each in value)
        return _literal(f"{{{listed}}}")
    return "'" + str(value).replace("'", "''") + "'"


async def _statements(
    resource: ResourceIdentity, name: str, record: Record
) -> Mapping[str, Statement]:
    """Return what the adapter sends for each call, by what the call is."""
    where, record_id = project(name), record.current.record_id
    eligible = Eligible(project=where, agent_id=AGENT, at=datetime.now(UTC))
    said = text(number())
    works: Mapping[str, Any] = {
        "get": one_head(where, record_id),
        "get of many": partial(
            reader.load, request=LoadRequest(project=where, record_ids=(record_id, "another"))
        ),
        "load of a create": partial(
            reader.load,
            request=LoadRequest(
                project=where,
                receipt=ReceiptKey(specimens.ACTOR, "a key"),
                keys=(content_key(AGENT, None, said),),
            ),
        ),
        "revisions": partial(
            reader.revisions,
            request=RevisionsRequest(
                project=where,
                agent_id=AGENT,
                record_id=record_id,
                before=None,
                limit=PAGE,
                brief=True,
            ),
        ),
        "recall": partial(
            recall.recall,
            request=RecallRequest(eligible=eligible, terms=query_terms(query(number()))),
        ),
        "candidates": partial(
            candidates.candidates,
            request=CandidatesRequest(
                project=where, agent_id=COMPOSER, run_id=RUN, limit=CANDIDATES
            ),
        ),
        "export": partial(
            export.export,
            request=ExportRequest(project=where, agent_id=AGENT, record_ids=(record_id,)),
        ),
        **_searches(name),
    }
    asked = {call: await statement_of(work, resource) for call, work in works.items()}
    return asked | {
        "commit of a create": commit.encode(resource, created(name)),
        "commit of an update": commit.encode(resource, _updated(name, record)),
    }


def _searches(name: str) -> Mapping[str, Any]:
    found_by: Mapping[str, Mapping[str, Any]] = {
        "search, newest": {},
        "search, a word": {"text": query(number()).split()[0]},
        "search, one text": {"text": text(number())[-14:]},
        "search, a tag": {"tags": tags(number())[:1]},
        "search, two letters": {"text": "zz"},
    }
    return {
        call: partial(
            search.search,
            request=SearchRequest(
                project=project(name), agent_id=AGENT, limit=PAGE, brief=True, **asked
            ),
        )
        for call, asked in found_by.items()
    }


def _updated(name: str, record: Record) -> WriteSet:
    new = put(number())
    after = specimens.after(record, content=new.record.current.content)
    return specimens.write(project(name), specimens.put(after, over=record, entry=new.entry))

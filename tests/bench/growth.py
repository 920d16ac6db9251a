"""What calls take among 1,000, 10,000 and 100,000 records, in one project and over 1,000.

Each size stands by itself: a database, a broker and its callers. The records are written by the
adapter, twenty-five in a commit, so that every row is as the broker's own would be. All sizes are
measured in turn, round by round.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import asyncpg
from google.protobuf.message import Message

from broker.api.v1 import context_service_pb2, record_pb2, record_service_pb2
from broker.devstack.provider import Provider
from providers.conformance import specimens
from providers.interface import IMemoryProvider
from providers.model import HeadPut, Record, Revision, Trust, WriteSet
from providers.requests import Committed, LoadRequest, RevisionsRequest
from tests.bench.bars import P50, Bar, ratio
from tests.bench.calls import COMPILE, GET, SEARCH
from tests.bench.cases import Ground, Plan, Sample
from tests.bench.scans import Scan, scans
from tests.bench.seeds import AT_ONCE, SECONDS, number, project, put
from tests.bench.stand import BrokerStand
from tests.bench.texts import AGENT, COMPOSER, RUN, query
from tests.fixtures.postgres import Database
from tests.fixtures.postgres_memory import PostgresMemory

SIZES: Final = (1_000, 10_000, 100_000)
MANY: Final = 1_000
REVISIONS: Final = 3
"""How many revisions each record has."""
WRITERS: Final = 4
"""Commits that fill a database at once."""
COMPILED: Final = 100
"""How many memories the composer has in the first project, among all others: a context is never of
more than some thousands."""
LOOKED_AT: Final = 20
PAGE: Final = 10
LIST_REVISIONS: Final = "RecordService/ListRevisions"
CALLS: Final = {"get": 400, "search": 200, "revisions": 400, "compile": 48}
HELD: Final = ("get", "revisions")
"""The calls that are held to a bar."""

Place = tuple[str, str]
"""A project, and the id of a record in it."""


@dataclass
class Grown:
    """A broker whose store holds so many records.

    Attributes:
        ground: What it stands on.
        records: How many there are.
        projects: How many projects they are spread over.
    """

    ground: Ground
    records: int
    projects: int
    stand: BrokerStand = field(init=False)
    ids: list[Place] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Name its projects; nothing is started."""
        names = tuple(map(_name, range(self.projects)))
        self.stand = BrokerStand(self.ground, Provider.POSTGRES, projects=names)

    @property
    def name(self) -> str:
        """What it is called."""
        return _among(self.records, self.projects)

    async def start(self) -> None:
        """Start and fill it, unless it was; each project is called once, and so bound."""
        await self.stand.start()
        if self.ids:
            return
        provider = self.stand.provider()
        try:
            names, each = self.stand.projects, self.records // self.projects
            self.ids = await fill(
                provider, (made for name in names for made in _write_sets(name, AGENT, each))
            )
            await fill(provider, _write_sets(names[0], COMPOSER, COMPILED))
            await look_at(provider, self.ids)
        finally:
            await provider.close()
        await self._settle()
        firsts = dict(self.ids)
        await self.stand.run(GET, [_get(each) for each in firsts.items()], 4)

    async def scans(self) -> list[Scan]:
        """Look at how the server finds rows among these."""
        name, record_id = self.ids[len(self.ids) // 2]
        provider = self.stand.provider()
        try:
            head = await _head(provider, name, record_id)
        finally:
            await provider.close()
        return await scans(self._database.options(), name, head)

    @property
    def _database(self) -> Database:
        assert isinstance(self.stand.memory, PostgresMemory)
        return self.stand.memory.database

    async def _settle(self) -> None:
        """Let the server do at once what it does by and by."""
        connection = await asyncpg.connect(self._database.admin_dsn)
        try:
            await connection.execute("VACUUM ANALYZE")
        finally:
            await connection.close()


async def fill(provider: IMemoryProvider, sets: Iterator[WriteSet]) -> list[Place]:
    """Commit write sets, some at once; return where each record is.

    Raises:
        RuntimeError: A commit was refused.
    """
    ids: list[Place] = []

    async def write() -> None:
        for write_set in sets:
            told = await provider.commit(write_set, timeout=SECONDS)
            if told != Committed():
                raise RuntimeError(f"a project could not be filled: {told}")
            name = write_set.project.project_id
            ids.extend((name, each.record.current.record_id) for each in write_set.heads)

    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(write())
    return ids


def _write_sets(name: str, agent: str, records: int) -> Iterator[WriteSet]:
    for begin in range(0, records, AT_ONCE):
        chains = [_chain(agent) for _ in range(min(AT_ONCE, records - begin))]
        past = tuple(each for history, _ in chains for each in history)
        heads = [head for _, head in chains]
        yield specimens.write(project(name), *heads, history=past, transfer_expected=None)


def _chain(agent: str) -> tuple[list[Revision], HeadPut]:
    """Return the earlier revisions of a memory, and its head with what recall finds it by."""
    first = put(number(), trust=Trust.APPROVED)
    history: list[Revision] = []
    record = replace(first.record, current=replace(first.record.current, agent_id=agent))
    for _ in range(REVISIONS - 1):
        history.append(record.current)
        record = specimens.after(record)
    return history, specimens.put(record, entry=first.entry)


async def look_at(provider: IMemoryProvider, ids: Sequence[Place]) -> None:
    """Read some of the records, and hold them against what was written.

    Raises:
        RuntimeError: One is not there, or its history is not whole.
    """
    for name, record_id in random.Random(0).sample(ids, min(LOOKED_AT, len(ids))):
        asked = RevisionsRequest(
            project=project(name), agent_id=AGENT, record_id=record_id, before=None, limit=PAGE
        )
        history = (await provider.revisions(asked, timeout=SECONDS)).revisions
        head = await _head(provider, name, record_id)
        if len(history) != REVISIONS or history[0] != head.current:
            raise RuntimeError(f"{record_id} is not as it was written")


async def _head(provider: IMemoryProvider, name: str, record_id: str) -> Record:
    wanted = LoadRequest(project=project(name), record_ids=(record_id,))
    return (await provider.load(wanted, timeout=SECONDS)).heads[record_id]


@dataclass
class GrowthCase:
    """One call of a grown store.

    Attributes:
        grown: Whose; several cases share it.
        call: Which.
    """

    grown: Grown
    call: str

    @property
    def name(self) -> str:
        """See ``Case``."""
        return _label(self.call, self.grown.records, self.grown.projects)

    async def start(self) -> None:
        """See ``Case``."""
        await self.grown.start()

    async def run(self, concurrency: int, calls: int) -> Sample:
        """See ``Case``. Each run calls for other records."""
        rpc, make = _CALLS[self.call]
        ids = random.Random(number()).choices(self.grown.ids, k=calls)
        return await self.grown.stand.run(rpc, [make(each) for each in ids], concurrency)

    async def stop(self) -> None:
        """See ``Case``."""
        await self.grown.stand.stop()


def growths(ground: Ground, sizes: Sequence[int] = SIZES) -> list[Grown]:
    """Return a broker for every size, in one project and over many; none is started."""
    return [Grown(ground, size, projects) for projects in (1, MANY) for size in sizes]


def growth_plans(grown: Sequence[Grown]) -> list[Plan]:
    """Return every call of every size."""
    return [Plan(GrowthCase(each, call), calls) for call, calls in CALLS.items() for each in grown]


def growth_bars(sizes: Sequence[int] = SIZES) -> list[Bar]:
    """Return what has to hold: calls hardly take longer among the most records."""
    least, most = min(sizes), max(sizes)
    listed = []
    for call in HELD:
        for projects in (1, MANY):
            over, under = (_label(call, records, projects) for records in (most, least))
            figure = f"{call} p50, {_among(most, projects)} ÷ {least:,}"
            listed.append(Bar(figure, 1.3, 1.1, ratio(over, under, P50), at_most=True))
    return listed


def _among(records: int, projects: int) -> str:
    return f"{records:,} records in {'one project' if projects == 1 else f'{projects:,} projects'}"


def _label(call: str, records: int, projects: int) -> str:
    return f"{call}, {_among(records, projects)}"


def _name(place: int) -> str:
    return f"grown-{place:04}"


def _scope(name: str, agent: str = AGENT) -> record_pb2.Scope:
    return record_pb2.Scope(project_id=name, run_id=RUN, agent_id=agent)


def _get(place: Place) -> Message:
    name, record_id = place
    return record_service_pb2.GetRecordRequest(scope=_scope(name), record_id=record_id)


def _search(place: Place) -> Message:
    name, _ = place
    word = query(number()).split()[0]
    return record_service_pb2.SearchRecordsRequest(scope=_scope(name), query=word, page_size=PAGE)


def _revisions(place: Place) -> Message:
    name, record_id = place
    return record_service_pb2.ListRevisionsRequest(scope=_scope(name), record_id=record_id)


def _compile(_: Place) -> Message:
    return context_service_pb2.CompileContextRequest(scope=_scope(_name(0), COMPOSER))


_CALLS = {
    "get": (GET, _get),
    "search": (SEARCH, _search),
    "revisions": (LIST_REVISIONS, _revisions),
    "compile": (COMPILE, _compile),
}

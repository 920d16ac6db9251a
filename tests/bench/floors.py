"""Floors: what the stores do when nothing stands between them and who asks."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import asyncpg

from broker.retrieval.ranking import shortlist
from broker.retrieval.terms import query_terms
from providers.model import ProjectKey, ResourceIdentity
from providers.postgres import commit, gathering, reader, recall
from providers.postgres.connections import Connection, Connections
from providers.postgres.statements import warm
from providers.recall import Eligible, RecallRequest
from providers.requests import LoadRequest
from tests.bench.cases import Sample, timed
from tests.bench.seeds import created, project
from tests.bench.stand import BrokerStand
from tests.bench.texts import AGENT, query

Statement = tuple[str, Sequence[object]]
Work = Callable[[Connection, ResourceIdentity], Awaitable[object]]


class HeardError(Exception):
    """Raised in place of a round trip. Holds the statement and its arguments."""

    def __init__(self, statement: str, given: Sequence[object]) -> None:
        super().__init__()
        self.asked: Statement = statement, given


class _Overheard:
    """A connection that only says what it was to send."""

    async def fetch(self, statement: str, *given: object) -> None:
        raise HeardError(statement, given)

    fetchrow = fetchval = fetch


async def statement_of(work: Work, resource: ResourceIdentity) -> Statement:
    """Return what a function of the adapter asks the server, and with what parameters."""
    link: Any = _Overheard()
    try:
        await work(link, resource)
    except HeardError as heard:
        return heard.asked
    raise RuntimeError("the adapter asked nothing")


@dataclass(frozen=True)
class Place:
    """Where a call is made: the resource, a connection to look there first, and what is there."""

    resource: ResourceIdentity
    link: Connection
    ids: Sequence[str]


Ask = Callable[[Place, int], Awaitable[Sequence[Statement]]]
"""Gives the statements of a call, by its number, one after the other."""


async def commits(place: Place, _: int) -> Sequence[Statement]:
    """Ask what the adapter commits for one ``CreateRecord``."""
    return [commit.encode(place.resource, created("write"))]


async def loads(place: Place, number: int) -> Sequence[Statement]:
    """Ask what the adapter reads for one ``GetRecord``."""
    record_id = place.ids[number * 7 % len(place.ids)]
    return [await statement_of(one_head(project("read"), record_id), place.resource)]


async def recalls(place: Place, number: int) -> Sequence[Statement]:
    """Ask what the adapter reads for one ``Recall``: what words find, and the best heads of it."""
    eligible = Eligible(project=project("recall"), agent_id=AGENT, at=datetime.now(UTC))
    asked = RecallRequest(eligible=eligible, terms=query_terms(query(number)))
    work = partial(recall.recall, request=asked)
    found = shortlist(await work(place.link, place.resource))
    wanted = LoadRequest(project=eligible.project, record_ids=tuple(found.scores))
    heads = await statement_of(partial(reader.load, request=wanted), place.resource)
    return [await statement_of(work, place.resource), heads]


def one_head(where: ProjectKey, record_id: str) -> Work:
    """Return what reads one head, with no other call's."""
    wanted = LoadRequest(project=where, record_ids=(record_id,))

    async def work(link: Connection, _: ResourceIdentity) -> object:
        return await gathering.fetch(link, requests=[wanted])

    return work


@dataclass
class SqlCase:
    """Statements of the adapter straight through asyncpg, on connections like the adapter's.

    Attributes:
        name: What it is called.
        stand: The broker whose database it asks: what both find there is the same.
        ask: Makes the statements of a run, before its time is taken.
        filled: The project that is filled before the first run.
    """

    name: str
    stand: BrokerStand
    ask: Ask
    filled: str = ""
    _pool: "asyncpg.Pool[asyncpg.Record] | None" = None
    _ids: Sequence[str] = ()

    async def start(self) -> None:
        """See ``Case``."""
        await self.stand.start()
        if self.filled:
            self._ids = await self.stand.seeded(self.filled)
        options = self.stand.database.options()
        self._pool = await asyncpg.create_pool(
            init=warm,
            reset=_keep,
            min_size=options.pool_size,
            max_size=options.pool_size,
            **Connections(options, warm)._arguments(),
        )

    async def run(self, concurrency: int, calls: int) -> Sample:
        """See ``Case``."""
        assert self._pool is not None
        pool, resource = self._pool, self.stand.database.resource
        async with pool.acquire() as link:
            place = Place(resource, cast("Connection", link), self._ids)
            asked = [await self.ask(place, each) for each in range(calls)]

        async def call(number: int) -> None:
            for statement, given in asked[number]:
                async with pool.acquire() as link:
                    rows = await link.fetch(statement, *given)
                if not rows or not rows[-1][0]:
                    raise RuntimeError(f"{self.name}: the statement did nothing")

        return await timed(calls, concurrency, call)

    async def stop(self) -> None:
        """See ``Case``."""
        if self._pool is not None:
            await self._pool.close()
        await self.stand.stop()


async def _keep(_: object) -> None:
    """Leave a returned connection as it is: what the driver's pool does else takes a round trip."""

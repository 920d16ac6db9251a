"""Floors: what the stores do when nothing stands between them and who asks."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import asyncpg

from broker.retrieval.terms import query_terms
from providers.model import ResourceIdentity
from providers.postgres import commit, reader, recall
from providers.postgres.connections import Connection, Connections
from providers.postgres.statements import COMMIT, warm
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


Ask = Callable[[ResourceIdentity, Sequence[str], int], Awaitable[Statement]]
"""Gives the statement of a call, by its number, on a project with records of these ids."""


async def commits(resource: ResourceIdentity, _: Sequence[str], __: int) -> Statement:
    """Ask what the adapter commits for one ``CreateRecord``."""
    return COMMIT, commit.encode(resource, created("write"))


async def loads(resource: ResourceIdentity, ids: Sequence[str], number: int) -> Statement:
    """Ask what the adapter reads for one ``GetRecord``."""
    wanted = LoadRequest(project=project("read"), record_ids=(ids[number * 7 % len(ids)],))
    return await statement_of(partial(reader.load, request=wanted), resource)


async def recalls(resource: ResourceIdentity, _: Sequence[str], number: int) -> Statement:
    """Ask what the adapter reads first for one ``Recall``."""
    eligible = Eligible(project=project("recall"), agent_id=AGENT, at=datetime.now(UTC))
    asked = RecallRequest(eligible=eligible, terms=query_terms(query(number)))
    return await statement_of(partial(recall.recall, request=asked), resource)


@dataclass
class SqlCase:
    """One statement of the adapter straight through asyncpg, on connections like the adapter's.

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
        asked = [await self.ask(resource, self._ids, each) for each in range(calls)]

        async def call(number: int) -> None:
            statement, given = asked[number]
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

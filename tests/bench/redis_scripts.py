"""How long a Redis server is busy with one script, and so serves nobody else.

    python -m tests.bench.redis_scripts [redis|valkey] [times]

Every sort of write set is applied so many times (300 by default) to a project of 10,000 records and
50,000 revisions, each time to fresh ones, and every sort of read is asked for as much as it may
give. The table tells microseconds inside the server, as it counts them itself, what the 99th
percentile is of the 5 ms that a write set other than an import may take, and how often as long as
the smallest write set each one takes.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count

from rich.console import Console
from rich.table import Table

from broker.devstack.redis import Flavour, RedisServer
from providers.conformance import specimens
from providers.exports import ExportRequest
from providers.model import Record, WriteSet
from providers.redis.provider import RedisMemoryProvider
from providers.requests import (
    CandidatesRequest,
    Committed,
    LoadRequest,
    RevisionsRequest,
    SearchRequest,
)
from tests.bench.redis_cases import PROJECT, cases
from tests.bench.redis_recall import asked as recalls
from tests.bench.redis_recall import prepared
from tests.fixtures.filling import filling, record
from tests.fixtures.redis import fresh, own_redis

SECONDS = 60.0
TIMES, HEADS, REVISIONS = 300, 10_000, 5
LIMIT_US = 5_000

Figures = dict[str, tuple[int, Mapping[str, float]]]
"""How often what was measured, and its percentiles in microseconds."""


class Meter:
    """Measures series of calls on one server."""

    def __init__(self, server: RedisServer, provider: RedisMemoryProvider) -> None:
        """Keep what is measured and through what."""
        self._server = server
        self._provider = provider
        self._graph, self._stream = count(), count()

    async def writes(self, times: int) -> Figures:
        """Measure every sort of write set."""
        figures: Figures = {}
        for name, make in cases(self._graph, self._stream).items():
            steps = [make() for _ in range(max(times // 6, 2) if "import" in name else times)]
            for *before, _ in steps:
                for each in before:
                    await self._commit(each)
            figures[name] = await self._series([partial(self._commit, each[-1]) for each in steps])
        return figures

    async def reads(self, times: int, last: Record) -> Figures:
        """Measure every sort of read; the record is one of the agent that is asked for."""
        asked = self._asked(last)
        return {
            name: await self._series([call] * max(times // 10, 2)) for name, call in asked.items()
        }

    async def recalls(self, times: int) -> Figures:
        """Measure every call that recalls, of an agent with as many memories as may be."""
        for write in prepared():
            await self._commit(write)
        asked = recalls(self._provider)
        return {
            name: await self._series([call] * max(times // 30, 2)) for name, call in asked.items()
        }

    async def _commit(self, write: WriteSet) -> None:
        told = await self._provider.commit(write, timeout=SECONDS)
        assert told == Committed(), told

    async def _series(
        self, calls: Sequence[Callable[[], Awaitable[object]]]
    ) -> tuple[int, Mapping[str, float]]:
        """Return how many scripts some calls ran, one after the other, and how long each took."""
        self._server.execute("CONFIG", "RESETSTAT")
        for call in calls:
            await call()
        scripts = self._server.execute("INFO", "commandstats")["cmdstat_evalsha"]["calls"]
        told = self._server.execute("INFO", "latencystats")["latency_percentiles_usec_evalsha"]
        return scripts, told

    def _asked(self, last: Record) -> dict[str, Callable[[], Awaitable[object]]]:
        now, ask = last.current, self._provider
        agent = now.agent_id
        load = LoadRequest(
            project=PROJECT, record_ids=(now.record_id,), keys=("k",), graph=True, transfer=True
        )
        history = RevisionsRequest(
            project=PROJECT, agent_id=agent, record_id=now.record_id, before=None, limit=100
        )
        page = SearchRequest(project=PROJECT, agent_id=agent, limit=100)
        tagged = SearchRequest(project=PROJECT, agent_id=None, tags=now.content.tags, limit=100)
        absent = SearchRequest(project=PROJECT, agent_id=None, text="nowhere", limit=100)
        context = CandidatesRequest(project=PROJECT, agent_id=agent, run_id="run-1", limit=10_001)
        chains = ExportRequest(
            project=PROJECT,
            agent_id=agent,
            record_ids=(now.record_id,),
            records_max=25,
            revisions_max=500,
            bytes_max=1_048_576,
        )
        return {
            "load": lambda: ask.load(load, timeout=SECONDS),
            "revisions": lambda: ask.revisions(history, timeout=SECONDS),
            "search, page of 100": lambda: ask.search(page, timeout=SECONDS),
            "search by 4 tags, page of 100": lambda: ask.search(tagged, timeout=SECONDS),
            "search for a text, each stretch": lambda: ask.search(absent, timeout=SECONDS),
            "candidates, as many as may be": lambda: ask.candidates(context, timeout=SECONDS),
            "export of one": lambda: ask.export(chains, timeout=SECONDS),
        }


async def measure(server: RedisServer, provider: RedisMemoryProvider, times: int) -> Figures:
    """Fill the project and measure all."""
    for write in filling(PROJECT, HEADS, REVISIONS):
        assert await provider.commit(write, timeout=SECONDS) == Committed()
    last = record()
    assert await provider.commit(specimens.create(PROJECT, last), timeout=SECONDS) == Committed()
    meter = Meter(server, provider)
    figures = await meter.writes(times) | await meter.reads(times, last)
    return figures | await meter.recalls(times)


def table(flavour: Flavour, figures: Figures) -> Table:
    """Return the figures in microseconds, and their ratios."""
    made = Table(title=f"{flavour}: microseconds in one script")
    for name in ("what", "scripts", "p50", "p99", "p99.9", "p99 / 5 ms", "p50 / create"):
        made.add_column(name, justify="left" if name == "what" else "right")
    smallest = figures["create"][1]["p50"]
    for name, (scripts, told) in figures.items():
        ratios = (f"{told['p99'] / LIMIT_US:.2f}", f"{told['p50'] / smallest:.1f}")
        numbers = (f"{told[each]:,.0f}" for each in ("p50", "p99", "p99.9"))
        made.add_row(name, str(scripts), *numbers, *ratios)
    return made


async def _measured(flavour: Flavour, times: int) -> Figures:
    with own_redis(flavour) as server, fresh(server) as backend:
        with suppress(PermissionError):  # root's server is not measured with others' work in it
            os.sched_setscheduler(server.pid, os.SCHED_FIFO, os.sched_param(1))
        provider = RedisMemoryProvider(backend.options())
        try:
            return await measure(server, provider, times)
        finally:
            await provider.close()


def main(words: list[str]) -> None:
    """Measure what the words name; all where they name nothing."""
    times = next((int(each) for each in words if each.isdecimal()), TIMES)
    for flavour in Flavour:
        if flavour in words or not set(Flavour) & set(words):
            Console(width=110).print(table(flavour, asyncio.run(_measured(flavour, times))))


if __name__ == "__main__":
    main(sys.argv[1:])

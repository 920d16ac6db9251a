"""How long a Redis server is busy with one script, and so serves nobody else.

    python -m tests.bench.redis_scripts [redis|valkey] [times]

Every sort of write set is applied so many times (300 by default) to a project of 10,000 records and
50,000 revisions, each time to fresh ones, and every sort of read is asked for as much as it may
give. The table tells microseconds inside the server, as it counts them itself, what the 99th
percentile is of the 5 ms that a write set other than an import may take, and how often as long as
the smallest write set each one takes.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from statistics import quantiles

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
from tests.bench.redis_cases import PROJECT, cases, crowd, record
from tests.fixtures.redis import fresh, own_redis

SECONDS = 60.0
TIMES, HEADS, REVISIONS = 300, 10_000, 5
LIMIT_US = 5_000

Figures = dict[str, list[float]]


class Meter:
    """Measures single calls on one server."""

    def __init__(self, server: RedisServer, provider: RedisMemoryProvider) -> None:
        """Keep what is measured and through what."""
        self.server = server
        self.provider = provider
        self.graph = self.stream = 0

    async def scripts(self, call: Awaitable[object]) -> tuple[object, int, int]:
        """Return what a call gave, how many scripts it ran, and their microseconds."""
        self.server.execute("CONFIG", "RESETSTAT")
        told = await call
        spent = self.server.execute("INFO", "commandstats")["cmdstat_evalsha"]
        return told, spent["calls"], spent["usec"]

    async def commit(self, write: WriteSet) -> int:
        """Apply a write set and return the microseconds of its script."""
        told, count, spent = await self.scripts(self.provider.commit(write, timeout=SECONDS))
        assert (told, count) == (Committed(), 1), told
        self.graph += write.graph_expected is not None
        self.stream += write.effect is not None
        return spent

    async def writes(self, times: int) -> Figures:
        """Measure every sort of write set."""
        figures: Figures = {}
        for name, make in cases(lambda: self.graph, lambda: self.stream).items():
            figures[name] = []
            for _ in range(max(times // 6, 2) if name.startswith("import") else times):
                *before, measured = make()
                for each in before:
                    await self.commit(each)
                figures[name].append(await self.commit(measured))
        return figures

    async def reads(self, times: int, last: Record) -> Figures:
        """Measure every sort of read; ``record`` is one of the agent that is asked for."""
        figures: Figures = {}
        for name, make in self._asked(last).items():
            figures[name] = []
            for _ in range(max(times // 10, 2)):
                _, count, spent = await self.scripts(make())
                figures[name].append(spent / count)
        return figures

    def _asked(self, last: Record) -> dict[str, Callable[[], Awaitable[object]]]:
        now, ask = last.current, self.provider
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
    for write in crowd(HEADS, REVISIONS):
        assert await provider.commit(write, timeout=SECONDS) == Committed()
    meter = Meter(server, provider)
    last = record()
    await meter.commit(specimens.create(PROJECT, last))
    return await meter.writes(times) | await meter.reads(times, last)


def table(flavour: Flavour, figures: Figures) -> Table:
    """Return the figures in microseconds, and their ratios."""
    made = Table(title=f"{flavour}: microseconds in one script")
    for name in ("what", "times", "p50", "p99", "most", "p99 / 5 ms", "p50 / create"):
        made.add_column(name, justify="left" if name == "what" else "right")
    smallest = _percentile(figures["create"], 50)
    for name, spent in figures.items():
        middle, high = _percentile(spent, 50), _percentile(spent, 99)
        ratios = (f"{high / LIMIT_US:.2f}", f"{middle / smallest:.1f}")
        numbers = (f"{each:,.0f}" for each in (len(spent), middle, high, max(spent)))
        made.add_row(name, *numbers, *ratios)
    return made


def _percentile(spent: list[float], percent: int) -> float:
    return quantiles(spent, n=100, method="inclusive")[percent - 1]


async def _measured(flavour: Flavour, times: int) -> Figures:
    with own_redis(flavour) as server, fresh(server) as backend:
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

"""What a law is, how one is written down, and how one is run."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from providers.capabilities import Capability
from providers.conformance.declaration import Hazard, StoreFact
from providers.conformance.harness import Bench, Harness

SECONDS_MAX = 60.0
"""A law that takes longer than this is broken: something waits for ever."""

Judge = Callable[[Bench], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One thing every adapter must do, and what is needed to judge it.

    ``needs_gap``: there is something to judge only where a capability is not declared.
    ``bounded``: only where recall looks through so many records at most, or only where it has no
    such bound; ``None``: either way.
    """

    name: str
    area: str
    text: str
    judge: Judge
    clauses: tuple[str, ...]
    capability: Capability
    facts: frozenset[StoreFact]
    hazard: Hazard | None
    needs_gap: bool
    bounded: bool | None


def law(
    *clauses: str,
    capability: Capability,
    facts: tuple[StoreFact, ...] = (),
    hazard: Hazard | None = None,
    needs_gap: bool = False,
    bounded: bool | None = None,
    name: str | None = None,
) -> Callable[[Judge], Law]:
    """Make a law of a function: its name, its module as the area, its docstring as the text."""

    def make(judge: Judge) -> Law:
        return Law(
            name=name or judge.__name__,
            area=judge.__module__.rpartition(".")[2],
            text=(judge.__doc__ or "").strip(),
            judge=judge,
            clauses=clauses,
            capability=capability,
            facts=frozenset(facts),
            hazard=hazard,
            needs_gap=needs_gap,
            bounded=bounded,
        )

    return make


async def run(law: Law, harness: Harness) -> None:
    """Judge one adapter by one law, on a fresh bench.

    Raises:
        LawBrokenError: the adapter breaks the law.
        TimeoutError: the law did not end in ``SECONDS_MAX``.
    """
    async with harness.open() as bench, asyncio.timeout(SECONDS_MAX):
        await law.judge(bench)

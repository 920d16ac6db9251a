"""The reference as a backend."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from providers.conformance import reference
from providers.conformance.declaration import MARKER_HAZARDS, Declaration, Hazard, StoreFact
from providers.conformance.harness import Bench, Harness
from providers.conformance.reference import ReferenceMemoryProvider, ReferenceStore
from providers.interface import IMemoryProvider
from providers.model import ProjectKey, ResourceIdentity
from tests.fixtures.process_clock import ProcessClock

RESOURCE = ResourceIdentity("reference-resource", 1)
PLANTED = "tests.conformance.planted"
"""Where subclasses are that look at the wrong clock. The store itself is in other modules."""
IN_PROCESS = "it lives in one process's memory"

DECLARATION = Declaration(
    backend="reference",
    capabilities=reference.CAPABILITIES,
    absent_capabilities=reference.ABSENT,
    facts=frozenset({StoreFact.CORRUPTIBLE, StoreFact.SKEWABLE}),
    absent_facts=dict.fromkeys(
        (
            StoreFact.DURABLE,
            StoreFact.FREEZABLE,
            StoreFact.LOSES_REPLIES,
            StoreFact.COUNTED,
        ),
        IN_PROCESS,
    ),
    hazards=MARKER_HAZARDS,
)


class ReferenceBench(Bench):
    """A store of its own for each law; ``make`` opens providers on it."""

    def __init__(self, make: type[ReferenceMemoryProvider] = ReferenceMemoryProvider) -> None:
        self.store = ReferenceStore(marker=RESOURCE)
        self._make = make
        self._provider = make(self.store, RESOURCE)
        self.clock = ProcessClock(PLANTED)

    @property
    def declaration(self) -> Declaration:
        return DECLARATION

    @property
    def resource(self) -> ResourceIdentity:
        return RESOURCE

    @property
    def provider(self) -> IMemoryProvider:
        return self._provider

    async def another(self) -> IMemoryProvider:
        return self._make(self.store, RESOURCE)

    async def skew(self, seconds: float) -> None:
        self.clock.skew(seconds)

    async def spoil(self, hazard: Hazard) -> None:
        spoiled = {
            Hazard.MARKER: None,
            Hazard.IDENTITY: replace(RESOURCE, resource_id="another-resource"),
            Hazard.GENERATION: replace(RESOURCE, generation=2),
        }
        self.store.marker = spoiled[hazard]

    async def corrupt(self, project: ProjectKey, record_id: str) -> None:
        heads = self.store.shelves[project].heads
        now = heads[record_id].current
        heads[record_id] = replace(heads[record_id], current=replace(now, record_id="another"))


class ReferenceHarness(Harness):
    """Opens benches in memory."""

    def __init__(self, make: type[ReferenceMemoryProvider] = ReferenceMemoryProvider) -> None:
        self._make = make

    @property
    def declaration(self) -> Declaration:
        return DECLARATION

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bench]:
        bench = ReferenceBench(self._make)
        try:
            yield bench
        finally:
            bench.clock.right()
        await bench.provider.close()

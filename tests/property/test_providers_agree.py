"""Adapters and the reference agree: the same random calls give the same answers and the same state.

Short by default. For a long run name its length and, to repeat one, its seed (each run prints it):

    BROKER_PROPERTY_SECONDS=600 BROKER_PROPERTY_SEED=1 python -m pytest tests/property -s
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from broker.devstack.redis import Flavour
from providers.conformance import specimens
from providers.conformance.reference import ReferenceMemoryProvider, ReferenceStore
from providers.conformance.steps import position
from providers.errors import ProviderError
from providers.interface import IMemoryProvider
from providers.model import (
    Claim,
    ClaimRelease,
    HeadPut,
    ProjectKey,
    Record,
    Revision,
    RevisionRef,
    WriteSet,
)
from providers.postgres.provider import PostgresMemoryProvider
from providers.redis.provider import RedisMemoryProvider
from providers.requests import LoadRequest, RevisionsRequest, SearchRequest
from tests.fixtures.postgres import RESOURCE, Database
from tests.fixtures.redis import fresh
from tests.property.drawing import (
    AGENTS,
    CHANGE,
    FILTERS,
    KEYS,
    PROJECTS,
    RECORDS,
    REST,
    RUNS,
    SIZED,
    SPELLINGS,
    Change,
    Rest,
    Step,
    often,
)
from tests.property.moving import Moves

SECONDS = float(os.environ.get("BROKER_PROPERTY_SECONDS", "0"))
SEED = int(os.environ.get("BROKER_PROPERTY_SEED", random.SystemRandom().randrange(2**32)))
EXAMPLES, STEPS = 30, 50
LONG_EXAMPLES, LONG_STEPS = 40, 80
CALL_SECONDS = 20.0

# When something is found, making it small may take hypothesis five minutes more.
pytestmark = pytest.mark.timeout(SECONDS + 420)


@dataclass
class Sides:
    """Where calls run, and the adapter that is compared."""

    runner: asyncio.Runner
    adapter: IMemoryProvider


class ProvidersAgree(Moves):
    """Makes each call twice. Whatever the reference knows decides what the next call may be."""

    sides: ClassVar[Sides]

    def __init__(self) -> None:
        super().__init__()
        self.reference: ReferenceMemoryProvider = ReferenceMemoryProvider(
            ReferenceStore(RESOURCE), RESOURCE
        )
        self.tenant_id = f"t-{uuid4().hex}"
        self.sent: list[WriteSet] = []
        self.met: list[Record] = []

    # -------------------- calls

    @initialize(
        changes=st.lists(CHANGE, min_size=4, max_size=6, unique_by=lambda each: each.record_id)
    )
    def begin(self, changes: list[Change]) -> None:
        """Begin with some records."""
        project = self._project(PROJECTS[0])
        fitting = [replace(each, step=Step.FITS, past=0, astray=False) for each in changes]
        puts = [self._changed(project, each)[0] for each in fitting]
        self._commit(specimens.write(project, *puts))

    @rule(
        project_id=often(*PROJECTS),
        changes=st.lists(CHANGE, max_size=3, unique_by=lambda each: each.record_id),
        rest=REST,
    )
    def write(self, project_id: str, changes: list[Change], rest: Rest) -> None:
        """Create, update, supersede, archive, forget, bring with a past, or be refused."""
        project = self._project(project_id)
        made = [self._changed(project, each) for each in changes]
        write = self._with_rest(project, rest)
        write = replace(
            write,
            heads=tuple(put for put, _ in made),
            history=tuple(revision for _, past in made for revision in past),
        )
        self.sent.append(write)
        self._commit(write)

    @rule(number=st.integers(0, 1000))
    def retry(self, number: int) -> None:
        """Send again what was sent, applied or not."""
        if self.sent:
            self._commit(self.sent[number % len(self.sent)])

    @rule(
        project_id=often(*PROJECTS),
        start=st.none() | st.sampled_from(RECORDS),
        numbers=st.lists(st.integers(1, 4), min_size=len(RECORDS), max_size=len(RECORDS)),
    )
    def load(self, project_id: str, start: str | None, numbers: list[int]) -> None:
        """Ask for everything at once."""
        receipts = [each.receipt.key for each in self.sent[-3:]]
        request = LoadRequest(
            project=self._project(project_id),
            record_ids=RECORDS,
            revisions=tuple(map(RevisionRef, RECORDS, numbers)),
            receipt=receipts[0] if receipts else None,
            keys=KEYS,
            chain_from=start,
            graph=True,
            transfer=True,
            stream_run_id=RUNS[0],
        )
        self._load(request)

    @rule(
        project_id=often(*PROJECTS),
        record_id=st.sampled_from(RECORDS),
        agent_id=st.sampled_from(AGENTS),
        before=st.none() | st.integers(1, 6),
        limit=st.sampled_from([1, 2, 100]),
        sized=SIZED,
    )
    def page_of_history(
        self,
        project_id: str,
        record_id: str,
        agent_id: str,
        before: int | None,
        limit: int,
        sized: dict[str, Any],
    ) -> None:
        """Ask for revisions, mostly of whom they belong to."""
        project = self._project(project_id)
        head = self._head(project, record_id)
        owner = head.current.agent_id if head and limit != 1 else agent_id
        request = RevisionsRequest(
            project=project,
            agent_id=owner,
            record_id=record_id,
            before=before,
            limit=limit,
            **sized,
        )
        self._both(lambda provider: provider.revisions(request, timeout=CALL_SECONDS))

    @rule(
        project_id=often(*PROJECTS),
        agent_id=st.none() | often(*AGENTS),
        filters=FILTERS,
        limit=st.sampled_from([1, 2, 3, 100]),
        after=st.none() | st.integers(0, 1000),
        number=st.integers(0, 1000),
        cut=st.none() | st.integers(0, 6),
        tagged=often(0, 1, 2),
        spell=st.sampled_from(SPELLINGS),
        sized=SIZED,
    )
    def search(
        self,
        *,
        project_id: str,
        agent_id: str | None,
        filters: dict[str, Any],
        limit: int,
        after: int | None,
        number: int,
        cut: int | None,
        tagged: int,
        spell: Callable[[str], str],
        sized: dict[str, Any],
    ) -> None:
        """Ask with any filters, often for what somebody has, after any page."""
        had = self.met[number % len(self.met)].current.content if self.met else None
        if cut is not None and had is not None:
            filters["text"] = spell(had.content[cut : cut + 4])
        if tagged and had is not None:
            filters["tags"] = tuple(map(spell, had.tags[:tagged]))
        end = position(self.met[after % len(self.met)]) if after is not None and self.met else None
        request = SearchRequest(
            project=self._project(project_id),
            agent_id=agent_id,
            limit=limit,
            after=end,
            **filters,
            **sized,
        )
        self._search(request)

    def teardown(self) -> None:
        """Compare all that is stored."""
        for project_id in PROJECTS:
            project = self._project(project_id)
            for run_id in RUNS:
                whole = LoadRequest(
                    project=project,
                    record_ids=RECORDS,
                    keys=KEYS,
                    graph=True,
                    transfer=True,
                    stream_run_id=run_id,
                )
                self._load(whole)
                self.page_of_pending(project_id, run_id, 0, 100)
            for agent_id in AGENTS:
                self.export(project_id, agent_id, (), {})
                self.candidates(project_id, agent_id, RUNS[0], 10_001, 2**24)
            self._search(SearchRequest(project=project, agent_id=None, limit=100))
            for record_id in RECORDS:
                self.page_of_history(project_id, record_id, AGENTS[0], None, 100, {})
        for write in self.sent:
            self._load(LoadRequest(project=write.project, receipt=write.receipt.key))

    # -------------------- how a drawn change becomes a write set

    def _changed(self, project: ProjectKey, change: Change) -> tuple[HeadPut, tuple[Revision, ...]]:
        head = self._head(project, change.record_id)
        record = head or specimens.memory(change.record_id)
        current = head.current.revision if head else None
        expected = {
            Step.FITS: current,
            Step.NONE: None,
            Step.BEHIND: (current or 1) - 1,
            Step.AHEAD: (current or 0) + 1,
        }[change.step]
        chain = [record] if expected is None else []
        at = expected or 1
        while len(chain) <= change.past:
            record = chain[-1] if chain else record
            numbered = replace(record, current=replace(record.current, revision=at))
            chain.append(specimens.after(numbered))
            at += 1
        chain = chain[: change.past + 1]
        revisions = [self._said(each.current, change) for each in chain]
        if change.astray and revisions[0].previous_revision_id is not None:
            revisions[0] = replace(revisions[0], previous_revision_id=specimens.fresh("rev"))
        put = HeadPut(Record(revisions[-1], chain[-1].create_time), expected)
        return put, tuple(revisions[:-1])

    def _said(self, revision: Revision, change: Change) -> Revision:
        return replace(
            revision,
            agent_id=change.agent_id,
            kind=change.kind,
            state=change.state,
            trust=change.trust,
            content=change.content,
            facet=change.facet,
            source_run_id=change.run_id,
            superseded_by_record_id=change.superseded_by,
            create_time=change.moment,
        )

    def _with_rest(self, project: ProjectKey, rest: Rest) -> WriteSet:
        now = self._counters(project, rest.run_id)
        earlier = None if rest.reused_key is None else self.sent[rest.reused_key :][:1]
        key = earlier[0].receipt.key.idempotency_key if earlier else None
        named: dict[str, list[str]] = {"claim": [], "release": [], "absent": [], "bury": []}
        for name, action in rest.keys:
            named[action].append(name)
        effect = None
        if rest.effect is not None and now[2] + rest.effect >= 0:
            effect = specimens.effect(now[2] + 1 + rest.effect, run_id=rest.run_id)
        return specimens.write(
            project,
            receipt=specimens.receipt(key=key, actor=rest.actor, request=rest.request),
            claims=tuple(self._claim(project, each, rest) for each in named["claim"]),
            releases=tuple(ClaimRelease(each, rest.holder) for each in named["release"]),
            must_be_absent=tuple(named["absent"]),
            tombstones=tuple(map(specimens.tombstone, named["bury"])),
            graph_expected=None if rest.graph is None else now[0] + rest.graph,
            transfer_expected=None if rest.transfer is None else now[1] + rest.transfer,
            effect=effect,
        )

    def _claim(self, project: ProjectKey, key: str, rest: Rest) -> Claim:
        holder = self.reference._shelf(project).claims.get(key)
        return Claim(key, rest.holder, rest.held_by or holder)

    # -------------------- both sides

    def _project(self, project_id: str) -> ProjectKey:
        return ProjectKey(self.tenant_id, project_id)

    def _head(self, project: ProjectKey, record_id: str) -> Record | None:
        return self.reference._shelf(project).heads.get(record_id)

    def _counters(self, project: ProjectKey, run_id: str) -> tuple[int, int, int]:
        shelf = self.reference._shelf(project)
        return shelf.graph, shelf.transfer, shelf.streams.get(run_id, 0)

    def _commit(self, write: WriteSet) -> None:
        self._both(lambda provider: provider.commit(write, timeout=CALL_SECONDS))
        self.met += [each.record for each in write.heads]

    def _load(self, request: LoadRequest) -> None:
        self._both(lambda provider: provider.load(request, timeout=CALL_SECONDS))

    def _search(self, request: SearchRequest) -> None:
        self._both(lambda provider: provider.search(request, timeout=CALL_SECONDS))

    def _each(self, call: Callable[[IMemoryProvider], Awaitable[object]]) -> tuple[object, object]:
        wanted = self.sides.runner.run(_outcome(call(self.reference)))
        actual = self.sides.runner.run(_outcome(call(self.sides.adapter)))
        return wanted, actual


async def _outcome(call: Awaitable[object]) -> object:
    try:
        return await call
    except ProviderError as error:
        return type(error)


@contextmanager
def _adapter(name: str, request: pytest.FixtureRequest) -> Iterator[IMemoryProvider]:
    if name == "postgres":
        database: Database = request.getfixturevalue("postgres_database")
        yield PostgresMemoryProvider(database.options(pool_size=1, pool_ready=1))
        return
    with fresh(request.getfixturevalue(f"{name}_server")) as backend:
        yield RedisMemoryProvider(backend.options(pool_size=1, pool_ready=1))


@pytest.fixture(params=["postgres", *Flavour])
def sides(request: pytest.FixtureRequest) -> Iterator[Sides]:
    with asyncio.Runner() as runner, _adapter(request.param, request) as adapter:
        yield Sides(runner, adapter)
        runner.run(adapter.close())


def test_adapters_agree_with_the_reference(sides: Sides) -> None:
    """004-42…68 at the provider: every outcome and the final state, over random histories."""
    examples, steps = (LONG_EXAMPLES, LONG_STEPS) if SECONDS else (EXAMPLES, STEPS)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    end = time.monotonic() + SECONDS
    turn = SEED
    while True:
        print(f"property seed {turn}")
        machine = type("AdapterAgrees", (ProvidersAgree,), {"sides": sides})
        run_state_machine_as_test(seed(turn)(machine), settings=chosen)
        turn += 1
        if time.monotonic() >= end:
            return

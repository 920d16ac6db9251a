"""The laws can fail: planted bugs turn them red, and idle adapters pass none."""

import re

import pytest

from providers.conformance import delivery_steps, steps
from providers.conformance.expect import LawBrokenError
from providers.conformance.law import Law, run
from providers.conformance.laws import all_laws, deliveries, lifecycle, receipts
from providers.conformance.laws import faults as faults_laws
from providers.conformance.plan import law_id, plan_for
from providers.conformance.reference import ABSENT, CAPABILITIES, ReferenceMemoryProvider
from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectFound,
    EffectRequest,
    LeaseRequest,
    PendingEffects,
    PendingEffectsRequest,
)
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound
from providers.model import WriteSet
from providers.recall import (
    IndexRequest,
    Recalled,
    RecallRequest,
    TaggedRequest,
    Unindexed,
    UnindexedRequest,
)
from providers.requests import (
    Candidates,
    CandidatesRequest,
    CommitOutcome,
    Committed,
    Loaded,
    LoadRequest,
    Negotiated,
    RevisionsPage,
    RevisionsRequest,
    SearchPage,
    SearchRequest,
)
from tests.conformance import linked_harness
from tests.conformance.linked_harness import LinkedHarness, LinkedProvider
from tests.conformance.planted import (
    composing,
    delivering,
    faults,
    reading,
    recall_filters,
    recall_vectors,
    recalling,
    search_text,
    searching,
    sizes,
    transferring,
    writing,
)
from tests.conformance.planted.bug import CAUGHT_BY
from tests.conformance.reference_harness import RESOURCE, ReferenceHarness

PLANTED = (
    composing,
    delivering,
    faults,
    reading,
    recall_filters,
    recall_vectors,
    recalling,
    search_text,
    searching,
    sizes,
    transferring,
    writing,
)
LAWS = {law.name: law for law in all_laws()}
LINKED_LAWS = plan_for(linked_harness.DECLARATION).laws


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that a real store needs are long for one in this process."""
    for area in (deliveries, lifecycle, receipts, faults_laws):
        monkeypatch.setattr(area, "SHORT_SECONDS", 0.05)
    for area in (lifecycle, faults_laws):
        monkeypatch.setattr(area, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(steps, "RECOVERY_SECONDS", 0.5)
    monkeypatch.setattr(delivery_steps, "PATIENCE_SECONDS", 0.5)


@pytest.mark.parametrize("law", LINKED_LAWS, ids=law_id)
async def test_law_holds_for_the_model_behind_a_link(law: Law) -> None:
    await run(law, LinkedHarness())


@pytest.mark.parametrize(
    ("provider", "law"),
    [
        pytest.param(provider, LAWS[name], id=f"{provider.__name__}-{name}")
        for provider, names in CAUGHT_BY.items()
        for name in names
    ],
)
async def test_planted_bug_is_caught(provider: type[ReferenceMemoryProvider], law: Law) -> None:
    linked = issubclass(provider, LinkedProvider)
    with pytest.raises(LawBrokenError):
        await run(law, LinkedHarness(provider) if linked else ReferenceHarness(provider))


def test_bugs_are_planted() -> None:
    assert {each.__module__ for each in CAUGHT_BY} == {each.__name__ for each in PLANTED}


class Idle(LinkedProvider):
    """Answers everything and does nothing."""

    async def negotiate(self, *, timeout: float) -> Negotiated:
        return Negotiated(
            resource=RESOURCE,
            adapter_version="",
            options_schema_version=1,
            options_revision="",
            capabilities=CAPABILITIES,
            absent=ABSENT,
            recall_records_max=LinkedProvider.recall_records_max,
        )

    async def ready(self, *, timeout: float) -> None:
        return None

    async def close(self) -> None:
        return None

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        return Loaded()

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        return Committed()

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        return RevisionsPage(found=False)

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        return SearchPage((), more=False)

    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        return Candidates(())

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        return Recalled()

    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        return SearchPage((), more=False)

    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        return Unindexed()

    async def index(self, request: IndexRequest, *, timeout: float) -> int:
        return len(request.entries)

    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        return Export(())

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        return KeysFound(())

    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        return Acquired(None, None)

    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        return True

    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        return True

    async def effect(self, request: EffectRequest, *, timeout: float) -> EffectFound:
        return EffectFound(None)

    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        return PendingEffects((), more=False)


class IdleNegotiate(LinkedProvider):
    negotiate = Idle.negotiate


class IdleReady(LinkedProvider):
    ready = Idle.ready


class IdleClose(LinkedProvider):
    close = Idle.close


class IdleLoad(LinkedProvider):
    load = Idle.load


class IdleCommit(LinkedProvider):
    commit = Idle.commit


class IdleRevisions(LinkedProvider):
    revisions = Idle.revisions


class IdleSearch(LinkedProvider):
    search = Idle.search


class IdleCandidates(LinkedProvider):
    candidates = Idle.candidates


class IdleRecall(LinkedProvider):
    recall = Idle.recall


class IdleTagged(LinkedProvider):
    tagged = Idle.tagged


class IdleUnindexed(LinkedProvider):
    unindexed = Idle.unindexed


class IdleIndex(LinkedProvider):
    index = Idle.index


class IdleExport(LinkedProvider):
    export = Idle.export


class IdleTombstones(LinkedProvider):
    tombstones = Idle.tombstones


class IdleAcquire(LinkedProvider):
    acquire = Idle.acquire


class IdleAcknowledge(LinkedProvider):
    acknowledge = Idle.acknowledge


class IdleRelease(LinkedProvider):
    release = Idle.release


class IdleEffect(LinkedProvider):
    effect = Idle.effect


class IdlePending(LinkedProvider):
    pending_effects = Idle.pending_effects


IDLE_BY_CLAUSE: dict[str, type[LinkedProvider]] = {
    r"N-\d+": IdleNegotiate,
    r"R-\d+": IdleReady,
    r"L-\d+": IdleLoad,
    r"C-\d+": IdleCommit,
    r"V-\d+": IdleRevisions,
    r"S-\d+": IdleSearch,
    r"K-\d+": IdleCandidates,
    r"Q-\d+": IdleRecall,
    r"B-\d+": IdleTagged,
    r"I-1": IdleUnindexed,
    r"I-2": IdleIndex,
    r"X-\d+": IdleExport,
    r"T-\d+": IdleTombstones,
    r"D-[123]": IdleAcquire,
    r"D-[48]": IdleAcknowledge,
    r"D-5": IdleRelease,
    r"D-6": IdleEffect,
    r"D-7": IdlePending,
}
"""By what the number of a clause looks like: the clauses of one method share it."""


@pytest.mark.parametrize("law", LINKED_LAWS, ids=law_id)
async def test_no_law_passes_where_nothing_is_done(law: Law) -> None:
    with pytest.raises(LawBrokenError):
        await run(law, LinkedHarness(Idle))


@pytest.mark.parametrize(
    ("provider", "law"),
    [
        pytest.param(provider, law, id=f"{provider.__name__}-{law_id(law)}")
        for law in LINKED_LAWS
        for form, provider in IDLE_BY_CLAUSE.items()
        if any(re.fullmatch(form, clause) for clause in law.clauses)
    ],
)
async def test_no_law_passes_where_its_method_does_nothing(
    provider: type[LinkedProvider], law: Law
) -> None:
    with pytest.raises(LawBrokenError):
        await run(law, LinkedHarness(provider))


@pytest.mark.parametrize("name", ["use_after_close", "close_twice"])
async def test_a_close_that_does_nothing_is_caught(name: str) -> None:
    with pytest.raises(LawBrokenError):
        await run(LAWS[name], LinkedHarness(IdleClose))

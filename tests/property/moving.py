"""Random exports, looks for tombstones and deliveries, made of both sides and compared."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from providers.conformance import specimens
from providers.deliveries import (
    Acquired,
    AcquireRequest,
    EffectRequest,
    LeaseRequest,
    PendingEffectsRequest,
)
from providers.exports import ExportRequest, KeyQuery
from providers.interface import IMemoryProvider
from providers.model import AcceptedEffect, ProjectKey, WriteSet
from providers.requests import CandidatesRequest
from tests.property.drawing import AGENTS, KEYS, PROJECTS, RECORDS, RUNS, often

CALL_SECONDS = 20.0
HOUR_MS = 3_600_000
"""Leases last longer than a test: the two stores have clocks of their own."""
LIMITS = {
    "records_max": often(25, 1, 2, 3),
    "revisions_max": often(500, 1, 2, 5),
    "bytes_max": often(1_048_576, 1, 20, 60),
}


@dataclass(frozen=True)
class Held:
    """The token of one lease on each side; the same text on both where neither gave any."""

    reference: str
    adapter: str


class Moves(RuleBasedStateMachine):
    """What is done beside reading and writing records."""

    reference: IMemoryProvider
    sent: list[WriteSet]
    sides: ClassVar[Any]

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, Held] = {}

    @rule(
        project_id=often(*PROJECTS),
        agent_id=often(*AGENTS),
        names=st.just(()) | st.lists(st.sampled_from(RECORDS), min_size=1, max_size=3).map(tuple),
        limits=st.fixed_dictionaries(LIMITS),
    )
    def export(
        self, project_id: str, agent_id: str, names: tuple[str, ...], limits: dict[str, int]
    ) -> None:
        """Ask for all chains of an agent or for some, now and then for more than a limit."""
        request = ExportRequest(
            project=self._project(project_id), agent_id=agent_id, record_ids=names, **limits
        )
        self._both(lambda provider: provider.export(request, timeout=CALL_SECONDS))

    @rule(
        project_id=often(*PROJECTS),
        agent_id=often(*AGENTS),
        run_id=often(*RUNS),
        limit=often(10_001, 1, 2, 3),
        bytes_max=often(2**24, 1, 20, 40, 60),
    )
    def candidates(
        self, project_id: str, agent_id: str, run_id: str, limit: int, bytes_max: int
    ) -> None:
        """Ask for what may enter a context, now and then for less than there is."""
        request = CandidatesRequest(
            project=self._project(project_id),
            agent_id=agent_id,
            run_id=run_id,
            limit=limit,
            bytes_max=bytes_max,
        )
        self._both(lambda provider: provider.candidates(request, timeout=CALL_SECONDS))

    @rule(project_id=often(*PROJECTS))
    def graves(self, project_id: str) -> None:
        """Ask for all tombstones."""
        request = KeyQuery(project=self._project(project_id), keys=KEYS)
        self._both(lambda provider: provider.tombstones(request, timeout=CALL_SECONDS))

    @rule(number=st.integers(0, 1000), run_id=st.none() | st.sampled_from(RUNS))
    def lease(self, number: int, run_id: str | None) -> None:
        """Ask for the lease of an effect that was sent, applied or not."""
        project, effect = self._effect(number)
        request = AcquireRequest(
            project=project,
            run_id=run_id or effect.run_id,
            receipt_id=effect.receipt_id,
            lease_ms=HOUR_MS,
        )
        wanted, actual = self._each(lambda each: each.acquire(request, timeout=CALL_SECONDS))
        assert isinstance(wanted, Acquired)
        assert isinstance(actual, Acquired)
        assert (actual.token is None) == (wanted.token is None)
        assert replace(actual, token=wanted.token) == wanted
        if wanted.token is not None and actual.token is not None:
            self.held[effect.receipt_id] = Held(wanted.token, actual.token)

    @rule(
        number=st.integers(0, 1000),
        run_id=st.none() | st.sampled_from(RUNS),
        code=often(None, "busy", "late"),
        sequence=st.integers(1, 3),
    )
    def end(self, number: int, run_id: str | None, code: str | None, sequence: int) -> None:
        """Acknowledge with the newest token there is, or give back."""
        project, effect = self._effect(number)
        held = self.held.get(effect.receipt_id, Held("none", "none"))
        answer = specimens.acknowledgement(sequence)

        def finish(provider: IMemoryProvider) -> Awaitable[object]:
            token = held.reference if provider is self.reference else held.adapter
            request = LeaseRequest(
                project=project,
                run_id=run_id or effect.run_id,
                receipt_id=effect.receipt_id,
                token=token,
            )
            if code is not None:
                return provider.release(request, code=code, timeout=CALL_SECONDS)
            return provider.acknowledge(request, acknowledgement=answer, timeout=CALL_SECONDS)

        self._both(finish)
        self._look(project, effect)

    @rule(
        project_id=often(*PROJECTS),
        run_id=st.sampled_from(RUNS),
        after=st.integers(0, 3),
        limit=st.sampled_from([1, 2, 100]),
    )
    def page_of_pending(self, project_id: str, run_id: str, after: int, limit: int) -> None:
        """Ask for what is to be delivered."""
        request = PendingEffectsRequest(
            project=self._project(project_id), run_id=run_id, after_sequence=after, limit=limit
        )
        self._both(lambda provider: provider.pending_effects(request, timeout=CALL_SECONDS))

    def _look(self, project: ProjectKey, effect: AcceptedEffect) -> None:
        request = EffectRequest(project=project, run_id=effect.run_id, receipt_id=effect.receipt_id)
        self._both(lambda provider: provider.effect(request, timeout=CALL_SECONDS))

    def _effect(self, number: int) -> tuple[ProjectKey, AcceptedEffect]:
        """Choose among the effects that were sent; one that never was where there are none."""
        sent = [(each.project, each.effect) for each in self.sent if each.effect is not None]
        if not sent:
            return self._project(PROJECTS[0]), specimens.effect(1)
        return sent[number % len(sent)]

    # -------------------- what the machine brings

    def _project(self, project_id: str) -> ProjectKey:
        raise NotImplementedError

    def _both(self, call: Callable[[IMemoryProvider], Awaitable[object]]) -> None:
        wanted, actual = self._each(call)
        assert actual == wanted

    def _each(self, call: Callable[[IMemoryProvider], Awaitable[object]]) -> tuple[object, object]:
        raise NotImplementedError

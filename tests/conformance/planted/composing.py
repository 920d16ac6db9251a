"""The reference with one bug each in the context candidates that it gives."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from providers.conformance.reference import ReferenceMemoryProvider
from providers.errors import StoredDataInvalidError
from providers.folding import folded
from providers.model import (
    Content,
    Kind,
    MemoryFacet,
    ProjectKey,
    Record,
    Revision,
    Sensitivity,
    State,
    Trust,
)
from providers.requests import Candidates, CandidatesRequest
from tests.conformance.linked_harness import LinkedProvider
from tests.conformance.planted.bug import caught_by

# -------------------- what enters


class _Takes(ReferenceMemoryProvider):
    """Takes a revision for another one when it looks whether it enters."""

    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        return now

    def _enters(self, now: Revision, request: CandidatesRequest) -> bool:
        return super()._enters(self._taken(now, request), request)


@caught_by("candidates_of_one_run", "candidates_are_of_one_project_agent_and_run")
class GivesTheContextOfAnyRun(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        return replace(now, source_run_id=request.run_id)


@caught_by("candidates_are_of_one_project_agent_and_run")
class TakesRunsByPrefix(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        if (now.source_run_id or "").startswith(request.run_id):
            return replace(now, source_run_id=request.run_id)
        return now


@caught_by("candidates_of_one_run", "only_the_right_state_and_trust_enter")
class GivesTheContextOfAnyAgent(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        session = now.kind is Kind.SESSION_CONTEXT
        return replace(now, agent_id=request.agent_id) if session else now


@caught_by("candidates_of_one_run", "only_the_right_state_and_trust_enter")
class GivesWhatOthersKeep(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        memory = now.kind is Kind.MEMORY and now.trust is Trust.APPROVED
        return replace(now, agent_id=request.agent_id) if memory else now


@caught_by("candidates_are_of_one_project_agent_and_run")
class ComparesAgentsByCase(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        same = now.agent_id.lower() == request.agent_id.lower()
        return replace(now, agent_id=request.agent_id) if same else now


@caught_by("candidates_of_one_run", "only_the_right_state_and_trust_enter")
class SharesWhatIsPending(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        pending = now.kind is Kind.MEMORY and now.trust is Trust.PENDING
        return replace(now, trust=Trust.APPROVED) if pending else now


@caught_by("candidates_of_one_run", "only_the_right_state_and_trust_enter")
class GivesApprovedMemoriesOnly(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        pending = now.kind is Kind.MEMORY and now.trust is Trust.PENDING
        return replace(now, trust=Trust.REJECTED) if pending else now


@caught_by("candidates_of_one_run", "only_the_right_state_and_trust_enter")
class GivesOwnDecisionsOnly(_Takes):
    def _enters(self, now: Revision, request: CandidatesRequest) -> bool:
        foreign = now.kind is Kind.DECISION and now.agent_id != request.agent_id
        return not foreign and super()._enters(now, request)


@caught_by("only_the_right_state_and_trust_enter", "candidates_follow_the_head")
class GivesWhatIsArchived(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        return replace(now, state=State.ACTIVE) if now.state is State.ARCHIVED else now


@caught_by("only_the_right_state_and_trust_enter", "candidates_follow_the_head")
class GivesWhatIsForgotten(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        return replace(now, state=State.ACTIVE) if now.state is State.FORGOTTEN else now


@caught_by("only_the_right_state_and_trust_enter")
class TrustsWhatIsLegacy(_Takes):
    def _taken(self, now: Revision, request: CandidatesRequest) -> Revision:
        return replace(now, trust=Trust.APPROVED) if now.trust is Trust.LEGACY else now


@caught_by("candidates_are_not_judged_further")
class HidesWhatIsRestricted(_Takes):
    def _enters(self, now: Revision, request: CandidatesRequest) -> bool:
        facet: MemoryFacet = now.facet or MemoryFacet()
        return facet.sensitivity is not Sensitivity.RESTRICTED and super()._enters(now, request)


@caught_by("candidates_are_not_judged_further")
class KnowsTwoTypesOfDecisions(_Takes):
    def _enters(self, now: Revision, request: CandidatesRequest) -> bool:
        known = now.kind is not Kind.DECISION or now.content.type in ("fact", "scope")
        return known and super()._enters(now, request)


@caught_by("memories_are_shared_by_one_tag", "candidates_of_one_run")
class MindsCaseOfTheSharedTag(ReferenceMemoryProvider):
    def _is_shared(self, content: Content) -> bool:
        return "cross-team" in content.tags


@caught_by("memories_are_shared_by_one_tag")
class SharesByWhatLooksAlike(ReferenceMemoryProvider):
    def _is_shared(self, content: Content) -> bool:
        return "cross-team" in map(folded, content.tags)


@caught_by("memories_are_shared_by_one_tag")
class SharesByPartsOfTags(ReferenceMemoryProvider):
    def _is_shared(self, content: Content) -> bool:
        return "cross-team" in " ".join(content.tags).lower()


@caught_by("memories_are_shared_by_one_tag")
class LooksAtTheFirstTag(ReferenceMemoryProvider):
    def _is_shared(self, content: Content) -> bool:
        return super()._is_shared(replace(content, tags=content.tags[:1]))


class _Gives(ReferenceMemoryProvider):
    """Does something to what it gives."""

    def _given(self, found: Candidates, request: CandidatesRequest) -> Candidates:
        return found

    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        return self._given(await super().candidates(request, timeout=timeout), request)


@caught_by("candidates_of_one_run", "only_the_right_state_and_trust_enter")
class GivesProposals(_Gives):
    def _given(self, found: Candidates, request: CandidatesRequest) -> Candidates:
        heads = self._shelf(request.project).heads.values()
        offers = [each for each in heads if each.current.kind is Kind.PROPOSAL]
        return replace(found, records=(*found.records, *offers))


@caught_by("memories_are_shared_by_one_tag")
class GivesOwnSharedOnesTwice(_Gives):
    def _given(self, found: Candidates, request: CandidatesRequest) -> Candidates:
        twice = [each for each in found.records if self._is_shared(each.current.content)]
        mine = [each for each in twice if each.current.agent_id == request.agent_id]
        return replace(found, records=(*found.records, *mine))


@caught_by("candidates_are_of_one_project_agent_and_run")
class GivesOtherTenants(ReferenceMemoryProvider):
    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        found: list[Record] = []
        for project in list(self._store.shelves):
            if project.project_id == request.project.project_id:
                found += (await self._of(project, request, timeout)).records
        return Candidates(tuple(self._ordered(found)))

    async def _of(
        self, project: ProjectKey, request: CandidatesRequest, timeout: float
    ) -> Candidates:
        return await super().candidates(replace(request, project=project), timeout=timeout)


@caught_by("candidates_of_one_run")
class FindsSomethingForNobody(ReferenceMemoryProvider):
    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        agent_id = request.agent_id.replace("\0", "")
        return await super().candidates(replace(request, agent_id=agent_id), timeout=timeout)


@caught_by("candidates_follow_the_head")
class RemembersCandidates(ReferenceMemoryProvider):
    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        seen: dict[CandidatesRequest, Candidates] = self.__dict__.setdefault("remembered", {})
        if request not in seen:
            seen[request] = await super().candidates(request, timeout=timeout)
        return seen[request]


# -------------------- their order, and how many


@caught_by("candidates_come_most_important_first")
class OrdersImportanceAsText(ReferenceMemoryProvider):
    def _ordered(self, chosen: Iterable[Record]) -> list[Record]:
        found = super()._ordered(chosen)
        found.sort(key=lambda each: repr(each.current.content.importance), reverse=True)
        kinds = [Kind.DECISION, Kind.MEMORY, Kind.SESSION_CONTEXT]
        return sorted(found, key=lambda each: kinds.index(each.current.kind))


@caught_by("candidates_come_most_important_first", "candidates_of_one_run")
class OrdersByTheNameOfTheKind(ReferenceMemoryProvider):
    def _ordered(self, chosen: Iterable[Record]) -> list[Record]:
        return sorted(super()._ordered(chosen), key=lambda each: each.current.kind, reverse=True)


@caught_by("candidates_come_most_important_first")
class OrdersCandidatesByCase(ReferenceMemoryProvider):
    def _ordered(self, chosen: Iterable[Record]) -> list[Record]:
        by_id = sorted(chosen, key=lambda each: each.current.record_id.casefold())
        folded_ids = {each.current.record_id: f"{n:04}" for n, each in enumerate(by_id)}
        named = [
            replace(each, current=replace(each.current, record_id=folded_ids[name]))
            for each in by_id
            if (name := each.current.record_id)
        ]
        originals = {folded_ids[each.current.record_id]: each for each in by_id}
        return [originals[each.current.record_id] for each in super()._ordered(named)]


@caught_by("candidates_come_most_important_first")
class OrdersTheOldestFirst(ReferenceMemoryProvider):
    def _ordered(self, chosen: Iterable[Record]) -> list[Record]:
        found = super()._ordered(chosen)
        found.sort(key=lambda each: each.current.create_time)
        found.sort(key=lambda each: -each.current.content.importance)
        kinds = [Kind.DECISION, Kind.MEMORY, Kind.SESSION_CONTEXT]
        return sorted(found, key=lambda each: kinds.index(each.current.kind))


@caught_by("candidates_come_most_important_first")
class LimitsEachKindByItself(_Gives):
    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        everything = await super().candidates(replace(request, limit=10_001), timeout=timeout)
        kept: list[Record] = []
        for kind in Kind:
            of = [each for each in everything.records if each.current.kind is kind]
            kept += of[: request.limit]
        return Candidates(tuple(self._ordered(kept)), everything.truncated_bytes)


@caught_by("candidates_within_bytes")
class CountsCharactersOfCandidates(ReferenceMemoryProvider):
    def _size(self, revision: Revision) -> int:
        said = revision.content
        texts = (said.type, said.title, said.content, said.rationale, revision.reason, *said.tags)
        return sum(len(text) for text in texts if text is not None)


@caught_by("candidates_within_bytes")
class CountsTheContentAlone(ReferenceMemoryProvider):
    def _size(self, revision: Revision) -> int:
        return len(revision.content.content.encode())


@caught_by("candidates_within_bytes")
class PassesOverWhatDoesNotFit(ReferenceMemoryProvider):
    def _within_bytes(self, chosen: list[Record], bytes_max: int) -> Candidates:
        kept: list[Record] = []
        for record in chosen:
            if not kept or sum(self._size(e.current) for e in [*kept, record]) <= bytes_max:
                kept.append(record)
        return Candidates(tuple(kept), truncated_bytes=len(kept) < len(chosen))


@caught_by("candidates_within_bytes")
class HoldsBackTheFirst(ReferenceMemoryProvider):
    def _within_bytes(self, chosen: list[Record], bytes_max: int) -> Candidates:
        if chosen and self._size(chosen[0].current) > bytes_max:
            return Candidates((), truncated_bytes=True)
        return super()._within_bytes(chosen, bytes_max)


@caught_by("candidates_within_bytes")
class SendsTheOneThatIsTooMuch(ReferenceMemoryProvider):
    def _within_bytes(self, chosen: list[Record], bytes_max: int) -> Candidates:
        found = super()._within_bytes(chosen, bytes_max)
        return replace(found, records=tuple(chosen[: len(found.records) + found.truncated_bytes]))


@caught_by("candidates_within_bytes", "no_more_than_16_mib_are_sent")
class NeverTellsThatItHeldBack(_Gives):
    def _given(self, found: Candidates, request: CandidatesRequest) -> Candidates:
        return replace(found, truncated_bytes=False)


@caught_by("candidates_within_bytes")
class TellsOfTheLimitToo(_Gives):
    def _given(self, found: Candidates, request: CandidatesRequest) -> Candidates:
        full = len(found.records) == request.limit
        return replace(found, truncated_bytes=found.truncated_bytes or full)


@caught_by("no_more_than_16_mib_are_sent")
class HasNoBound(ReferenceMemoryProvider):
    def _within_bytes(self, chosen: list[Record], bytes_max: int) -> Candidates:
        return Candidates(tuple(chosen))


# -------------------- how they are read


@caught_by("candidates_are_of_one_snapshot")
class ReadsOneKindAfterTheOther(_Gives):
    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        first = await super().candidates(request, timeout=timeout)
        await asyncio.sleep(0)
        second = await super().candidates(request, timeout=timeout)
        decisions = [each for each in first.records if each.current.kind is Kind.DECISION]
        rest = [each for each in second.records if each.current.kind is not Kind.DECISION]
        return replace(second, records=(*decisions, *rest))


@caught_by("candidates_are_one_round_trip")
class AsksForCandidatesTwice(LinkedProvider):
    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        await super().candidates(request, timeout=timeout)
        return await super().candidates(request, timeout=timeout)


@caught_by("damaged_candidate_is_told")
class LeavesOutDamagedCandidates(ReferenceMemoryProvider):
    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        try:
            return await super().candidates(request, timeout=timeout)
        except StoredDataInvalidError:
            return Candidates(())


@caught_by("use_after_close", "negotiate_refuses_identity")
class GivesCandidatesWithoutACheck(ReferenceMemoryProvider):
    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        heads = self._shelf(request.project).heads.values()
        chosen = [each for each in heads if self._enters(each.current, request)]
        return self._within_bytes(self._ordered(chosen)[: request.limit], request.bytes_max)

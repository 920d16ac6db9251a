"""The reference with one bug each in what it exports, and in how it takes an import."""

import asyncio
from dataclasses import replace

from providers.conformance.reference import ReferenceMemoryProvider, Shelf
from providers.conformance.transfer_steps import Chain
from providers.errors import StoredDataInvalidError
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound, Limit
from providers.model import ChangeKind, ProjectKey, Record, State, WriteSet
from providers.requests import AlreadyExists, CommitOutcome
from tests.conformance.linked_harness import LinkedProvider
from tests.conformance.planted.bug import caught_by

# -------------------- exports


@caught_by("export_is_of_one_snapshot")
class ExportsATornSnapshot(ReferenceMemoryProvider):
    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        whole = await super().export(replace(request, record_ids=()), timeout=timeout)
        chains: list[Chain] = []
        for head, _ in whole.chains:
            await asyncio.sleep(0)
            one = replace(request, record_ids=(head.current.record_id,))
            chains += (await super().export(one, timeout=timeout)).chains
        return Export(tuple(chains))


@caught_by("export_is_of_one_snapshot")
class ReadsHeadsAndHistoriesApart(ReferenceMemoryProvider):
    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        first = await super().export(request, timeout=timeout)
        await asyncio.sleep(0)
        second = await super().export(request, timeout=timeout)
        heads = {head.current.record_id: head for head, _ in first.chains}
        chains = ((heads[head.current.record_id], chain) for head, chain in second.chains)
        return Export(tuple(chains))


@caught_by("export_stable_bytes")
class ExportsInAnyOrder(ReferenceMemoryProvider):
    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        got = await super().export(request, timeout=timeout)
        folded = sorted(got.chains, key=lambda each: each[0].current.record_id.casefold())
        return Export(tuple(folded), got.exceeded)


@caught_by("export_stable_bytes")
class ExportsNewestFirst(ReferenceMemoryProvider):
    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        got = await super().export(request, timeout=timeout)
        return Export(tuple((head, chain[::-1]) for head, chain in got.chains), got.exceeded)


@caught_by("export_is_of_one_agent_and_two_kinds")
class ExportsForAnyAgent(ReferenceMemoryProvider):
    def _exported(self, shelf: Shelf, record_id: str, agent_id: str) -> Record | None:
        head = self._head(shelf, record_id)
        return super()._exported(shelf, record_id, head.current.agent_id if head else agent_id)


@caught_by("export_is_of_one_agent_and_two_kinds")
class ExportsWhatIsForgotten(ReferenceMemoryProvider):
    def _exported(self, shelf: Shelf, record_id: str, agent_id: str) -> Record | None:
        head = self._head(shelf, record_id)
        if head is not None and head.current.state is State.FORGOTTEN:
            return head
        return super()._exported(shelf, record_id, agent_id)


@caught_by("export_follows_links")
class FollowsNoLinks(ReferenceMemoryProvider):
    def _links_of(self, shelf: Shelf, head: Record) -> list[str]:
        return []


@caught_by("export_follows_every_branch")
class FollowsOneLinkOfEachRecord(ReferenceMemoryProvider):
    def _links_of(self, shelf: Shelf, head: Record) -> list[str]:
        return super()._links_of(shelf, head)[-1:]


@caught_by("export_follows_links", "export_follows_every_branch")
class FollowsTheLinksOfHeadsOnly(ReferenceMemoryProvider):
    def _links_of(self, shelf: Shelf, head: Record) -> list[str]:
        link = head.current.superseded_by_record_id
        return [] if link is None else [link]


@caught_by("export_limits")
class SendsAsMuchAsFits(ReferenceMemoryProvider):
    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        whole = replace(request, records_max=1000, revisions_max=1000, bytes_max=10**6)
        got = await super().export(whole, timeout=timeout)
        return Export(got.chains[: request.records_max])


@caught_by("export_limits")
class NamesTheLastLimit(ReferenceMemoryProvider):
    def _exceeded(self, shelf: Shelf, heads: list[Record], request: ExportRequest) -> Limit | None:
        alone = replace(request, records_max=1000, revisions_max=1000)
        found = super()._exceeded(shelf, heads, alone)
        return found or super()._exceeded(shelf, heads, request)


@caught_by("export_limits")
class CountsCharactersForBytes(ReferenceMemoryProvider):
    def _exceeded(self, shelf: Shelf, heads: list[Record], request: ExportRequest) -> Limit | None:
        return super()._exceeded(shelf, heads, replace(request, bytes_max=request.bytes_max + 1))


@caught_by("export_of_a_damaged_record_raises")
class LeavesOutWhatIsDamaged(ReferenceMemoryProvider):
    def _exported(self, shelf: Shelf, record_id: str, agent_id: str) -> Record | None:
        try:
            return super()._exported(shelf, record_id, agent_id)
        except StoredDataInvalidError:
            return None


@caught_by("export_is_one_round_trip", "tombstones_are_one_round_trip")
class AsksTwice(LinkedProvider):
    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        await super().export(request, timeout=timeout)
        return await super().export(request, timeout=timeout)

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        await super().tombstones(request, timeout=timeout)
        return await super().tombstones(request, timeout=timeout)


# -------------------- taking an import


@caught_by("import_collision_nothing_written", "import_full_size_bundle_atomic")
class ImportsWhatComesBeforeAClash(ReferenceMemoryProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        outcome = await super().commit(write_set, timeout=timeout)
        if isinstance(outcome, AlreadyExists):
            kept = [each for each in write_set.heads if each.expected_revision is None][:1]
            names = {each.record.current.record_id for each in kept}
            past = [each for each in write_set.history if each.record_id in names]
            part = replace(write_set, heads=tuple(kept), history=tuple(past))
            self._put_heads(self._shelf(write_set.project), part)
        return outcome


@caught_by("import_collision_nothing_written")
class LooksAtTheIdsOfHeadsOnly(ReferenceMemoryProvider):
    def _taken_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return super()._taken_refusal(shelf, replace(write_set, history=()))


@caught_by("import_collision_nothing_written")
class NamesTheRecordThatWasThere(ReferenceMemoryProvider):
    def _taken_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        refusal = super()._taken_refusal(shelf, write_set)
        if not isinstance(refusal, AlreadyExists):
            return refusal
        used = {each.revision_id: each.record_id for each in shelf.revisions.values()}
        given = (*write_set.history, *(put.record.current for put in write_set.heads))
        found = [used[each.revision_id] for each in given if each.revision_id in used]
        return AlreadyExists(found[0]) if found else refusal


@caught_by("import_round_trip")
class ClearsTheLinksOfHistory(ReferenceMemoryProvider):
    def _put_heads(self, shelf: Shelf, write_set: WriteSet) -> None:
        past = (replace(each, superseded_by_record_id=None) for each in write_set.history)
        super()._put_heads(shelf, replace(write_set, history=tuple(past)))


@caught_by("import_round_trip")
class FillsInWhatHistoryLacks(ReferenceMemoryProvider):
    def _put_heads(self, shelf: Shelf, write_set: WriteSet) -> None:
        past = (
            replace(each, change_kind=each.change_kind or ChangeKind.IMPORTED)
            for each in write_set.history
        )
        super()._put_heads(shelf, replace(write_set, history=tuple(past)))


@caught_by("effect_receipt_id_is_new")
class TakesAnyReceiptIdAsNew(ReferenceMemoryProvider):
    def _taken_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return super()._taken_refusal(shelf, replace(write_set, effect=None))


# -------------------- tombstones


@caught_by("tombstone_before_the_counter_is_seen")
class FindsTombstonesLate(ReferenceMemoryProvider):
    _before: KeysFound = KeysFound(())

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        found, self._before = self._before, await super().tombstones(request, timeout=timeout)
        return found


@caught_by("tombstones_are_found_by_key")
class FindsTombstonesOfAnyProject(ReferenceMemoryProvider):
    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        found = [
            each
            for project in list(self._store.shelves)
            for each in (await self._buried(project, request, timeout)).tombstones
        ]
        return KeysFound(tuple(sorted(found, key=lambda each: each.key)))

    async def _buried(self, project: ProjectKey, request: KeyQuery, timeout: float) -> KeysFound:
        return await super().tombstones(replace(request, project=project), timeout=timeout)

"""The reference with one bug each in what it writes and when it refuses."""

import asyncio
from dataclasses import replace

from providers.conformance.reference import ReferenceMemoryProvider, Shelf
from providers.model import (
    HeadPut,
    IdempotencyReceipt,
    ProjectKey,
    ReceiptKey,
    Record,
    WriteSet,
)
from providers.requests import (
    CommitOutcome,
    Committed,
    Contended,
    RevisionsPage,
    RevisionsRequest,
    StaleRevision,
)
from tests.conformance.planted.bug import caught_by

# -------------------- commits


@caught_by("wrong_expected_changes_nothing", "fifty_writers_one_winner", "promote_all_or_nothing")
class DropsTheRevisionCheck(ReferenceMemoryProvider):
    def _stale_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return None


@caught_by(
    "fifty_writers_one_winner",
    "creation_race_has_one_winner",
    "hundred_same_key_one_effect",
    "retry_racing_its_first_attempt_is_replayed",
    "claim_race_has_one_winner",
    "absence_holds_at_the_time_of_the_write",
    "graph_race_has_one_winner",
    "transfer_race_has_one_winner",
    "stream_race_has_one_winner",
    "crossing_commits_never_raise",
)
class ChecksThenWaitsThenWrites(ReferenceMemoryProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        self._check_open()
        self._check_rules(write_set)
        self._check_marker()
        shelf = self._shelf(write_set.project)
        refusal = self._refusal(shelf, write_set)
        await asyncio.sleep(0)
        if refusal is None:
            self._apply(shelf, write_set)
        return refusal or Committed()


@caught_by("hundred_same_key_one_effect", "receipt_is_never_seen_without_its_heads")
class KeepsTheReceiptSeparately(ReferenceMemoryProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        outcome = await super().commit(write_set, timeout=timeout)
        if outcome == Committed():
            receipts = self._shelf(write_set.project).receipts
            del receipts[write_set.receipt.key]
            await asyncio.sleep(0)
            receipts[write_set.receipt.key] = write_set.receipt
        return outcome


@caught_by("cancelled_commits_happen_whole_or_not_at_all")
class WritesHeadByHead(ReferenceMemoryProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        shelf = self._shelf(write_set.project)
        refusal = self._refusal(shelf, write_set)
        if refusal is not None:
            return refusal
        for each in write_set.heads:
            self._put_heads(shelf, replace(write_set, heads=(each,)))
            await asyncio.sleep(0)
        self._apply(shelf, write_set)
        return Committed()


@caught_by("key_free_after_refused_write", "wrong_expected_changes_nothing")
class KeepsReceiptsOfRefusals(ReferenceMemoryProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        outcome = await super().commit(write_set, timeout=timeout)
        self._shelf(write_set.project).receipts.setdefault(write_set.receipt.key, write_set.receipt)
        return outcome


@caught_by("last_operation_bad_changes_nothing", "promote_all_or_nothing", "supersede_atomic")
class KeepsWhatCameBeforeARefusal(ReferenceMemoryProvider):
    def _stale_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        self._move_keys(shelf, write_set)
        self._advance(shelf, write_set)
        return super()._stale_refusal(shelf, write_set)


@caught_by("refusals_come_in_order", "replay_after_later_updates")
class TellsStaleFirst(ReferenceMemoryProvider):
    def _receipt_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return self._stale_refusal(shelf, write_set) or super()._receipt_refusal(shelf, write_set)


@caught_by("refusals_come_in_order")
class TellsCountersBeforeClaims(ReferenceMemoryProvider):
    def _taken_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        early = self._counter_refusal(shelf, write_set)
        return early or super()._taken_refusal(shelf, write_set)


@caught_by("wrong_expected_changes_nothing", "fifty_writers_one_winner")
class TellsTheExpectedRevision(ReferenceMemoryProvider):
    def _stale_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        stale = super()._stale_refusal(shelf, write_set)
        if isinstance(stale, StaleRevision):
            return StaleRevision(stale.record_id, write_set.heads[0].expected_revision or 0)
        return stale


@caught_by("link_to_another_revision_is_refused")
class NeverLooksAtLinks(ReferenceMemoryProvider):
    def _links(self, head: Record | None, put: HeadPut, write_set: WriteSet) -> bool:
        return True


@caught_by("create_same_id_conflicts", "revision_id_of_another_record_conflicts")
class TakesAnyIdAsNew(ReferenceMemoryProvider):
    def _taken_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return None


@caught_by(
    "write_sets_past_a_limit_are_refused",
    "write_sets_that_break_their_rules_are_refused",
    "nul_and_lone_surrogate_refused",
)
class HasNoRules(ReferenceMemoryProvider):
    def _check_rules(self, write_set: WriteSet) -> None:
        return None


# -------------------- receipts


@caught_by("key_scope_is_project_and_actor")
class ForgetsTheActorOfAKey(ReferenceMemoryProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        key = ReceiptKey("0" * 64, write_set.receipt.key.idempotency_key)
        same = replace(write_set, receipt=replace(write_set.receipt, key=key))
        return await super().commit(same, timeout=timeout)


@caught_by("key_other_content_conflicts")
class ReplaysWithoutComparing(ReferenceMemoryProvider):
    def _receipt_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        kept = shelf.receipts.get(write_set.receipt.key)
        same = write_set
        if kept is not None:
            receipt = replace(write_set.receipt, method=kept.method, fingerprint=kept.fingerprint)
            same = replace(write_set, receipt=receipt)
        return super()._receipt_refusal(shelf, same)


@caught_by("replay_ignores_what_a_retry_decided")
class ComparesTheWholeReceipt(ReferenceMemoryProvider):
    def _receipt_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        kept = shelf.receipts.get(write_set.receipt.key)
        if kept is None or kept == write_set.receipt:
            return super()._receipt_refusal(shelf, write_set)
        other = replace(write_set.receipt, fingerprint="0" * 64)
        return super()._receipt_refusal(shelf, replace(write_set, receipt=other))


@caught_by("receipt_comes_back_exactly")
class KeepsOutcomesAsNumbers(ReferenceMemoryProvider):
    def _apply(self, shelf: Shelf, write_set: WriteSet) -> None:
        outcome = {
            name: int(value) if isinstance(value, bool) else value
            for name, value in write_set.receipt.outcome.items()
        }
        receipt: IdempotencyReceipt = replace(write_set.receipt, outcome=outcome)
        super()._apply(shelf, replace(write_set, receipt=receipt))


# -------------------- keys and counters


@caught_by("claim_is_put_if_absent", "claim_race_has_one_winner", "claim_moves_from_its_holder")
class UpsertsClaims(ReferenceMemoryProvider):
    def _taken_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return super()._taken_refusal(shelf, replace(write_set, claims=()))


@caught_by("tombstoned_key_is_refused", "absence_holds_at_the_time_of_the_write")
class NeverLooksAtTombstones(ReferenceMemoryProvider):
    def _tombstone_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return None


@caught_by("held_key_is_no_tombstone")
class TakesHoldersForTombstones(ReferenceMemoryProvider):
    def _tombstone_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        held = {key: None for key in shelf.claims if key in write_set.must_be_absent}
        for key in held:
            return self._counter_refusal(shelf, write_set) or StaleRevision(key, 0)
        return super()._tombstone_refusal(shelf, write_set)


@caught_by("release_only_by_the_owner")
class ReleasesForAnybody(ReferenceMemoryProvider):
    def _move_keys(self, shelf: Shelf, write_set: WriteSet) -> None:
        super()._move_keys(shelf, write_set)
        for release in write_set.releases:
            shelf.claims.pop(release.key, None)


@caught_by("tombstone_outlives_a_racing_claim", "tombstoned_key_is_refused")
class ClaimsOverTombstones(ReferenceMemoryProvider):
    def _tombstone_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        for claim in write_set.claims:
            shelf.tombstones.pop(claim.key, None)
        return None

    def _move_keys(self, shelf: Shelf, write_set: WriteSet) -> None:
        super()._move_keys(shelf, replace(write_set, tombstones=()))
        for tombstone in write_set.tombstones:
            if tombstone.key not in shelf.claims:
                shelf.tombstones[tombstone.key] = tombstone


@caught_by(
    "graph_counter_guards_decisions",
    "graph_race_has_one_winner",
    "supersede_atomic",
    "cycle_refused_under_race",
)
class NeverAdvancesTheGraph(ReferenceMemoryProvider):
    def _advance(self, shelf: Shelf, write_set: WriteSet) -> None:
        super()._advance(shelf, replace(write_set, graph_expected=None))


@caught_by("absences_do_not_meet")
class ProvesOneAbsenceAtATime(ReferenceMemoryProvider):
    """Who comes while another one proves something is told that others write."""

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        proving = self._store.__dict__.setdefault("proving", set())
        if write_set.must_be_absent and proving:
            return Contended()
        proving.add(write_set.receipt.key)
        await asyncio.sleep(0)
        proving.discard(write_set.receipt.key)
        return await super().commit(write_set, timeout=timeout)


@caught_by("supersede_atomic", "cycle_refused_under_race")
class NeverComparesTheGraph(ReferenceMemoryProvider):
    def _counter_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return super()._counter_refusal(shelf, replace(write_set, graph_expected=None))


@caught_by("transfer_counter_fences_imports", "import_races_a_tombstone")
class AdvancesTransferOnlyWhereExpected(ReferenceMemoryProvider):
    def _advance(self, shelf: Shelf, write_set: WriteSet) -> None:
        super()._advance(shelf, replace(write_set, tombstones=()))


@caught_by("stream_counts_every_effect", "stream_race_has_one_winner", "promote_all_or_nothing")
class NeverAdvancesTheStream(ReferenceMemoryProvider):
    def _advance(self, shelf: Shelf, write_set: WriteSet) -> None:
        super()._advance(shelf, replace(write_set, effect=None))


# -------------------- identifiers and isolation


@caught_by("ids_case_sensitive_bytewise")
class FoldsCase(ReferenceMemoryProvider):
    def _head(self, shelf: Shelf, record_id: str) -> Record | None:
        folded = {name.casefold(): record for name, record in shelf.heads.items()}
        return folded.get(record_id.casefold())


@caught_by("ids_with_metacharacters")
class MatchesPrefixes(ReferenceMemoryProvider):
    def _head(self, shelf: Shelf, record_id: str) -> Record | None:
        found = [name for name in shelf.heads if name.startswith(record_id)]
        return shelf.heads[found[0]] if found else None


@caught_by("sibling_prefix_isolation")
class FindsProjectsByPrefix(ReferenceMemoryProvider):
    def _shelf(self, project: ProjectKey) -> Shelf:
        for key, shelf in self._store.shelves.items():
            if key.tenant_id == project.tenant_id and project.project_id.startswith(key.project_id):
                return shelf
        return super()._shelf(project)


@caught_by("same_ids_in_two_projects_and_two_tenants", "key_scope_is_project_and_actor")
class ForgetsTheTenant(ReferenceMemoryProvider):
    def _shelf(self, project: ProjectKey) -> Shelf:
        return super()._shelf(ProjectKey("", project.project_id))


@caught_by("history_of_another_agent_is_not_found", "agents_are_compared_bytewise")
class ShowsHistoryToAnyAgent(ReferenceMemoryProvider):
    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        head = self._head(self._shelf(request.project), request.record_id)
        agent_id = head.current.agent_id if head else request.agent_id
        return await super().revisions(replace(request, agent_id=agent_id), timeout=timeout)

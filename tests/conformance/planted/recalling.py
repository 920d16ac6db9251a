"""The reference with one bug each in how it recalls by words, by vectors and by tags."""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from providers.conformance.reference import ReferenceMemoryProvider
from providers.conformance.reference_shelves import Shelf
from providers.driving import driving
from providers.entries import RecallEntry, TermVector
from providers.folding import folded
from providers.model import (
    Record,
    WriteSet,
)
from providers.recall import (
    Eligible,
    Match,
    Matches,
    Recalled,
    RecallRequest,
    Superseded,
    TaggedRequest,
    Unindexed,
    UnindexedRequest,
)
from providers.requests import CommitOutcome, SearchPage, StaleRevision
from tests.conformance.linked_harness import LinkedProvider
from tests.conformance.planted.bug import caught_by

ENDED = "superseded_rejected_expired_forgotten_absent_from_every_arm"

# -------------------- words


@caught_by("words_find_what_holds_one_of_them")
class WantsEveryWord(ReferenceMemoryProvider):
    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        found = await super().recall(request, timeout=timeout)
        return replace(
            found, matches=Matches.of(each for each in found.matches if all(each.counts))
        )


@caught_by("words_find_what_holds_one_of_them")
class TakesTheLengthFromTheCounts(ReferenceMemoryProvider):
    def _match(self, record_id: str, held: TermVector, terms: tuple[str, ...]) -> Match:
        known = replace(held, length=sum(held.counts.values()))
        return super()._match(record_id, known, terms)


@caught_by("words_find_what_holds_one_of_them", "entry_is_kept_while_only_the_state_changes")
class CountsEachWordOnce(ReferenceMemoryProvider):
    def _match(self, record_id: str, held: TermVector, terms: tuple[str, ...]) -> Match:
        match = super()._match(record_id, held, terms)
        return match._replace(counts=tuple(min(each, 1) for each in match.counts))


@caught_by("many_terms_are_kept_and_asked_for")
class SortsTheTermsAskedFor(ReferenceMemoryProvider):
    def _match(self, record_id: str, held: TermVector, terms: tuple[str, ...]) -> Match:
        return super()._match(record_id, held, tuple(sorted(terms)))


class _Keeps(ReferenceMemoryProvider):
    """Does something to the terms that it keeps."""

    def _kept(self, counts: dict[str, int]) -> dict[str, int]:
        return counts

    def _entry(self, shelf: Shelf, record: Record) -> RecallEntry:
        entry = super()._entry(shelf, record)
        return replace(entry, terms=replace(entry.terms, counts=self._kept({**entry.terms.counts})))


@caught_by("many_terms_are_kept_and_asked_for")
class KeepsAThousandTerms(_Keeps):
    def _kept(self, counts: dict[str, int]) -> dict[str, int]:
        return dict(list(counts.items())[:1_000])


@caught_by("terms_mean_themselves")
class ComposesTerms(_Keeps):
    def _kept(self, counts: dict[str, int]) -> dict[str, int]:
        return {unicodedata.normalize("NFC", term): count for term, count in counts.items()}


@caught_by("terms_mean_themselves")
class FoldsTerms(_Keeps):
    def _kept(self, counts: dict[str, int]) -> dict[str, int]:
        return {folded(term): count for term, count in counts.items()}


@caught_by("terms_mean_themselves")
class StripsTerms(_Keeps):
    def _kept(self, counts: dict[str, int]) -> dict[str, int]:
        return {term.strip(): count for term, count in counts.items()}


@caught_by("common_words_drive_while_records_are_few")
class LetsOneWordDrive(ReferenceMemoryProvider):
    def _driving(self, terms: Sequence[str], frequencies: Sequence[int]) -> tuple[int, ...]:
        return driving(terms, frequencies, most=0)


@caught_by("common_words_drive_no_more_where_records_are_many")
class LetsOneTooManyDrive(ReferenceMemoryProvider):
    def _driving(self, terms: Sequence[str], frequencies: Sequence[int]) -> tuple[int, ...]:
        return driving(terms, frequencies, most=2_001)


@caught_by("common_words_drive_no_more_where_records_are_many")
class GivesEveryMatch(ReferenceMemoryProvider):
    def _matches(
        self, shelf: Shelf, given: list[Record], terms: tuple[str, ...], frequencies: list[int]
    ) -> tuple[Match, ...]:
        half = len(given) // 2
        first = super()._matches(shelf, given[:half], terms, frequencies)
        return first + super()._matches(shelf, given[half:], terms, frequencies)


# -------------------- statistics and scope


class _Tells(ReferenceMemoryProvider):
    """Changes what it tells."""

    def _told(self, found: Recalled, shelf: Shelf) -> Recalled:
        return found

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        found = await super().recall(request, timeout=timeout)
        return self._told(found, self._shelf(request.eligible.project))


@caught_by("statistics_are_of_the_memories_looked_through")
class CountsWhatHasNoEntry(_Tells):
    def _told(self, found: Recalled, shelf: Shelf) -> Recalled:
        return replace(found, documents=found.documents + found.unindexed)


@caught_by("statistics_are_of_the_memories_looked_through", "recall_small_tenant_in_large_table")
class CountsEveryonesDocuments(_Tells):
    def _told(self, found: Recalled, shelf: Shelf) -> Recalled:
        return replace(found, documents=len(shelf.entries))


@caught_by("statistics_are_of_the_memories_looked_through")
class CountsWhatIsFiltered(ReferenceMemoryProvider):
    def _counts(self, record: Record, eligible: Eligible) -> bool:
        return self._is_eligible(record, eligible)


@caught_by("statistics_are_of_the_memories_looked_through", "as_of_a_time_is_what_was_in_use_then")
class NeverCountsWhatIsSuperseded(ReferenceMemoryProvider):
    def _counts(self, record: Record, eligible: Eligible) -> bool:
        return super()._counts(record, replace(eligible, superseded=Superseded.NONE))


@caught_by("recall_small_tenant_in_large_table")
class ComparesAgentsByPrefix(ReferenceMemoryProvider):
    def _counts(self, record: Record, eligible: Eligible) -> bool:
        mine = record.current.agent_id.startswith(eligible.agent_id)
        now = replace(record.current, agent_id=eligible.agent_id) if mine else record.current
        return super()._counts(replace(record, current=now), eligible)


@caught_by("recall_small_tenant_in_large_table")
class CutsBeforeItLooksAtTheAgent(ReferenceMemoryProvider):
    def _heads(self, shelf: Shelf) -> list[Record]:
        newest = sorted(
            super()._heads(shelf), key=lambda each: each.current.create_time, reverse=True
        )
        return newest[:50]


@caught_by("too_many_memories_are_told")
class LeavesOutInSilence(LinkedProvider):
    def _check_scope(self, observed: int) -> None:
        return None


@caught_by("too_many_memories_are_told")
class LooksThroughOneMore(LinkedProvider):
    def _check_scope(self, observed: int) -> None:
        super()._check_scope(observed - 1)


# -------------------- entries and their heads


@caught_by("entry_is_kept_while_only_the_state_changes", "vector_never_stale_after_edit")
class DropsTheEntryWithEveryRevision(ReferenceMemoryProvider):
    def _put_entries(self, shelf: Shelf, write_set: WriteSet) -> None:
        for put in write_set.heads:
            shelf.entries.pop(put.record.current.record_id, None)
        super()._put_entries(shelf, write_set)


@caught_by("entry_is_replaced_with_the_head", "what_was_committed_is_recalled")
class KeepsTheFirstEntry(ReferenceMemoryProvider):
    def _put_entries(self, shelf: Shelf, write_set: WriteSet) -> None:
        before = {**shelf.entries}
        super()._put_entries(shelf, write_set)
        shelf.entries.update(before)


@caught_by("entry_is_replaced_with_the_head")
class AddsToTheEntry(ReferenceMemoryProvider):
    def _put_entries(self, shelf: Shelf, write_set: WriteSet) -> None:
        before = {**shelf.entries}
        super()._put_entries(shelf, write_set)
        for name, old in before.items():
            terms = shelf.entries[name].terms
            both = {**old.terms.counts, **terms.counts}
            shelf.entries[name] = replace(shelf.entries[name], terms=TermVector(both, terms.length))


@caught_by("refused_commits_put_no_entry")
class PutsEntriesBeforeItJudges(ReferenceMemoryProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        self._put_entries(self._shelf(write_set.project), write_set)
        return await super().commit(write_set, timeout=timeout)


@caught_by("refused_commits_put_no_entry")
class PutsEntriesOfStaleHeads(ReferenceMemoryProvider):
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        outcome = await super().commit(write_set, timeout=timeout)
        if isinstance(outcome, StaleRevision):
            self._put_entries(self._shelf(write_set.project), write_set)
        return outcome


@caught_by("what_was_committed_is_recalled")
class RemembersWhatItRecalled(ReferenceMemoryProvider):
    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        seen: dict[object, Recalled] = self.__dict__.setdefault("seen", {})
        if request.eligible not in seen:
            seen[request.eligible] = await super().recall(request, timeout=timeout)
        return seen[request.eligible]


@caught_by("recall_is_one_round_trip", "nearest_are_one_round_trip")
class RecallsTwice(LinkedProvider):
    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        await super().recall(request, timeout=timeout)
        return await super().recall(request, timeout=timeout)


@caught_by("tagged_and_unindexed_are_one_round_trip")
class ListsTwice(LinkedProvider):
    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        await super().tagged(request, timeout=timeout)
        return await super().tagged(request, timeout=timeout)


@caught_by("tagged_and_unindexed_are_one_round_trip")
class LooksTwiceForWhatIsMissing(LinkedProvider):
    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        await super().unindexed(request, timeout=timeout)
        return await super().unindexed(request, timeout=timeout)


@caught_by("entries_survive_a_restart", "vectors_survive_a_restart")
class LosesEntriesInACrash(LinkedProvider):
    async def ready(self, *, timeout: float) -> None:
        await super().ready(timeout=timeout)
        if self._link.server.crashes:
            for shelf in self._store.shelves.values():
                shelf.entries.clear()

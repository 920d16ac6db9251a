"""The reference with one bug each in vectors, in the order of tags, and in building entries."""

import struct
from dataclasses import replace

from providers import rules
from providers.conformance.reference import ReferenceMemoryProvider
from providers.conformance.reference_shelves import Shelf
from providers.entries import TermVector, Vector
from providers.errors import StoredDataInvalidError
from providers.model import Kind, Record, Revision, State, WriteSet
from providers.recall import (
    EntryPut,
    IndexRequest,
    Near,
    Recalled,
    RecallRequest,
    TaggedRequest,
    Unindexed,
    UnindexedRequest,
)
from providers.requests import SearchPage
from tests.conformance.planted.bug import caught_by

# -------------------- vectors


class _Near(ReferenceMemoryProvider):
    """Changes what is near."""

    def _changed(self, near: tuple[Near, ...]) -> tuple[Near, ...]:
        return near

    def _nearest(
        self, shelf: Shelf, given: list[Record], request: RecallRequest
    ) -> tuple[Near, ...]:
        wide = replace(request, nearest_max=1_000)
        near = self._changed(super()._nearest(shelf, given, wide))
        return near[: request.nearest_max]


@caught_by("nearest_come_first")
class PutsTheFarthestFirst(_Near):
    def _changed(self, near: tuple[Near, ...]) -> tuple[Near, ...]:
        return near[::-1]


@caught_by("nearest_come_first")
class TiesByCase(_Near):
    def _changed(self, near: tuple[Near, ...]) -> tuple[Near, ...]:
        place = [(-each.similarity, each.record_id.lower()) for each in near]
        return tuple(each for _, each in sorted(zip(place, near, strict=True), key=lambda p: p[0]))


@caught_by("nearest_come_first", "vectors_of_any_dimension_are_exact")
class TellsDistances(_Near):
    def _changed(self, near: tuple[Near, ...]) -> tuple[Near, ...]:
        return tuple(each._replace(similarity=1 - each.similarity) for each in near)


@caught_by("vectors_of_any_dimension_are_exact")
class KeepsEightBitsOfNumbers(ReferenceMemoryProvider):
    def _cosine(self, one: Vector, other: Vector) -> float:
        return super()._cosine(_rounded(one), other)


def _rounded(vector: Vector) -> Vector:
    numbers = [round(each * 127) / 127 for each in memoryview(vector.packed).cast("f")]
    return replace(vector, packed=struct.pack(f"<{len(numbers)}f", *numbers))


@caught_by("vectors_of_other_models_are_not_compared")
class ComparesOtherModels(ReferenceMemoryProvider):
    def _is_alike(self, one: Vector, other: Vector) -> bool:
        return one.dimension == other.dimension


@caught_by("vectors_of_other_models_are_not_compared")
class ComparesModelsByCase(ReferenceMemoryProvider):
    def _is_alike(self, one: Vector, other: Vector) -> bool:
        return super()._is_alike(
            replace(one, model=one.model.lower()), replace(other, model=other.model.lower())
        )


@caught_by("filters_act_before_the_nearest_are_cut")
class FiltersTheNearest(ReferenceMemoryProvider):
    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        found = await super().recall(request, timeout=timeout)
        whole = replace(request.eligible, namespaces=frozenset())
        unfiltered = replace(request, eligible=whole)
        every = (await super().recall(unfiltered, timeout=timeout)).nearest
        kept = {each.record_id for each in found.nearest}
        return replace(found, nearest=tuple(each for each in every if each.record_id in kept))


@caught_by("vector_never_stale_after_edit")
class KeepsTheOldVector(ReferenceMemoryProvider):
    def _put_entries(self, shelf: Shelf, write_set: WriteSet) -> None:
        before = {**shelf.entries}
        super()._put_entries(shelf, write_set)
        for name, old in before.items():
            vector = shelf.entries[name].vector or old.vector
            shelf.entries[name] = replace(shelf.entries[name], vector=vector)


@caught_by("vectors_can_be_built_later")
class MissesNoVector(ReferenceMemoryProvider):
    def _lacks(self, shelf: Shelf, record: Record, model: str | None) -> bool:
        return super()._lacks(shelf, record, None)


@caught_by("vectors_can_be_built_later")
class TakesAnyModel(ReferenceMemoryProvider):
    def _lacks(self, shelf: Shelf, record: Record, model: str | None) -> bool:
        entry = shelf.entries.get(record.current.record_id)
        kept = entry is not None and entry.vector is not None
        return not kept and super()._lacks(shelf, record, model)


# -------------------- tags


@caught_by("most_important_come_first")
class OrdersImportanceAsText(ReferenceMemoryProvider):
    def _by_importance(self, found: list[Record]) -> list[Record]:
        ordered = super()._by_importance(found)
        return sorted(ordered, key=lambda each: repr(each.current.content.importance), reverse=True)


@caught_by("most_important_come_first")
class PutsTheOldestFirst(ReferenceMemoryProvider):
    def _by_importance(self, found: list[Record]) -> list[Record]:
        ordered = sorted(found, key=lambda each: each.current.create_time)
        return sorted(ordered, key=lambda each: -each.current.content.importance)


@caught_by("most_important_come_first")
class CutsBeforeItSorts(ReferenceMemoryProvider):
    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        found = await super().tagged(replace(request, limit=100), timeout=timeout)
        names = [each.current.record_id for each in found.records]
        first = [each for each in self._shelf(request.eligible.project).heads if each in names]
        kept = set(first[: request.limit])
        records = tuple(each for each in found.records if each.current.record_id in kept)
        return SearchPage(records, more=len(first) > request.limit)


@caught_by("most_important_come_first", "filters_act_before_the_limit")
class SaysMoreWhenItIsFull(ReferenceMemoryProvider):
    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        found = await super().tagged(request, timeout=timeout)
        return replace(found, more=len(found.records) == request.limit)


@caught_by("filters_act_before_the_limit")
class FiltersTheTagged(ReferenceMemoryProvider):
    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        wide = replace(request, eligible=replace(request.eligible, tags=(), patterns=()))
        every = await super().tagged(wide, timeout=timeout)
        fitting = tuple(e for e in every.records if self._is_eligible(e, request.eligible))
        return replace(every, records=fitting)


@caught_by("damaged_memory_is_told")
class PassesOverDamage(ReferenceMemoryProvider):
    def _heads(self, shelf: Shelf) -> list[Record]:
        found: list[Record] = []
        for name in shelf.heads:
            try:
                record = self._head(shelf, name)
            except StoredDataInvalidError:
                continue
            found += [record] if record is not None else []
        return found


# -------------------- entries that are built later


@caught_by("unindexed_are_listed_in_pages")
class ListsWhatIsForgotten(ReferenceMemoryProvider):
    def _lacks(self, shelf: Shelf, record: Record, model: str | None) -> bool:
        now: Revision = record.current
        forgotten = now.state is State.FORGOTTEN and now.record_id not in shelf.entries
        return forgotten or super()._lacks(shelf, record, model)


@caught_by("unindexed_are_listed_in_pages")
class ListsDecisions(ReferenceMemoryProvider):
    def _lacks(self, shelf: Shelf, record: Record, model: str | None) -> bool:
        decision = record.current.kind is Kind.DECISION
        return decision or super()._lacks(shelf, record, model)


@caught_by("unindexed_are_listed_in_pages")
class ListsInTheOrderOfWriting(ReferenceMemoryProvider):
    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        found = await super().unindexed(request, timeout=timeout)
        return Unindexed(
            tuple(sorted(found.records, key=lambda each: each.current.record_id.lower()))
        )


@caught_by("unindexed_are_listed_in_pages")
class RepeatsTheLastOfThePage(ReferenceMemoryProvider):
    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        after = None if request.after is None else request.after[:-1]
        return await super().unindexed(replace(request, after=after), timeout=timeout)


@caught_by("index_puts_entries_for_the_head_that_was_read")
class IndexesWhatMovedOn(ReferenceMemoryProvider):
    def _is_fresh(self, shelf: Shelf, put: EntryPut) -> bool:
        head = self._head(shelf, put.record_id)
        return head is not None and head.current.kind is Kind.MEMORY


@caught_by("index_puts_entries_for_the_head_that_was_read")
class IndexesDecisions(ReferenceMemoryProvider):
    def _is_fresh(self, shelf: Shelf, put: EntryPut) -> bool:
        head = self._head(shelf, put.record_id)
        return head is not None and head.current.revision_id == put.revision_id


@caught_by("index_puts_entries_for_the_head_that_was_read")
class IndexesOnce(ReferenceMemoryProvider):
    def _is_fresh(self, shelf: Shelf, put: EntryPut) -> bool:
        return put.record_id not in shelf.entries and super()._is_fresh(shelf, put)


@caught_by("archived_and_superseded_ones_are_indexed_too")
class IndexesWhatIsActive(ReferenceMemoryProvider):
    def _is_fresh(self, shelf: Shelf, put: EntryPut) -> bool:
        head = self._head(shelf, put.record_id)
        active = head is not None and head.current.state is State.ACTIVE
        return active and super()._is_fresh(shelf, put)


@caught_by("entries_past_a_limit_are_refused")
class IndexesAnything(ReferenceMemoryProvider):
    def _check_entries(self, request: IndexRequest) -> None:
        return None


@caught_by("entries_past_a_limit_are_refused")
class RefusesAfterItPutSome(ReferenceMemoryProvider):
    async def index(self, request: IndexRequest, *, timeout: float) -> int:
        shelf = self._shelf(request.project)
        for each in request.entries:
            if each.record_id in shelf.heads:
                shelf.entries[each.record_id] = replace(each.entry, terms=TermVector({}, 0))
            rules.check_entry(each.entry)
        return await super().index(request, timeout=timeout)

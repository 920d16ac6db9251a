"""The reference with one bug each in what it reads, keeps of a history, and does to text."""

import asyncio
import unicodedata
from dataclasses import replace
from datetime import timedelta
from typing import Any

from providers.conformance.reference import ReferenceMemoryProvider, Shelf
from providers.model import (
    ChangeKind,
    Content,
    MemoryFacet,
    Record,
    Revision,
    RevisionRef,
    WriteSet,
)
from providers.requests import ChainLink, Loaded, LoadRequest, RevisionsPage, RevisionsRequest
from tests.conformance.planted.bug import caught_by

# -------------------- reading


@caught_by("receipt_is_never_seen_without_its_heads")
class ReadsInTwoSteps(ReferenceMemoryProvider):
    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        first = await super().load(request, timeout=timeout)
        await asyncio.sleep(0)
        second = await super().load(request, timeout=timeout)
        return replace(second, heads=first.heads)


@caught_by("committed_is_seen_at_once")
class ReadsFromACache(ReferenceMemoryProvider):
    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        cached: dict[LoadRequest, Loaded] = self.__dict__.setdefault("cached", {})
        if request not in cached:
            cached[request] = await super().load(request, timeout=timeout)
        return cached[request]


@caught_by("chain_of_64_and_65")
class WalksTooShort(ReferenceMemoryProvider):
    def _chain(self, shelf: Shelf, start: str | None) -> tuple[ChainLink, ...]:
        return super()._chain(shelf, start)[:65]


@caught_by("chain_ends_where_it_repeats")
class LeavesTheRepetitionOut(ReferenceMemoryProvider):
    def _chain(self, shelf: Shelf, start: str | None) -> tuple[ChainLink, ...]:
        return tuple(dict.fromkeys(super()._chain(shelf, start)))


@caught_by("damaged_record_is_told")
class SkipsDamagedRecords(ReferenceMemoryProvider):
    def _head(self, shelf: Shelf, record_id: str) -> Record | None:
        record = shelf.heads.get(record_id)
        return record if record and record.current.record_id == record_id else None


@caught_by("negotiate_refuses_identity", "negotiate_refuses_generation", "negotiate_refuses_marker")
class RemembersTheMarker(ReferenceMemoryProvider):
    def _check_marker(self) -> None:
        if not self.__dict__.setdefault("seen", False):
            super()._check_marker()
            self.__dict__["seen"] = True


# -------------------- histories


@caught_by("revision_bytes_immutable_after_200_updates", "chain_is_gap_free_and_linked")
class OverwritesHistory(ReferenceMemoryProvider):
    def _put_heads(self, shelf: Shelf, write_set: WriteSet) -> None:
        super()._put_heads(shelf, write_set)
        for each in write_set.heads:
            first = RevisionRef(each.record.current.record_id, 1)
            kept = shelf.revisions.get(first)
            if kept is not None:
                shelf.revisions[first] = replace(kept, content=each.record.current.content)


@caught_by("restore_appends_head")
class RestoresByGoingBack(ReferenceMemoryProvider):
    def _put_heads(self, shelf: Shelf, write_set: WriteSet) -> None:
        super()._put_heads(shelf, write_set)
        for each in write_set.heads:
            now = each.record.current
            if now.change_kind is ChangeKind.DECISION_RESTORED:
                first = RevisionRef(now.record_id, 1)
                shelf.revisions[RevisionRef(now.record_id, now.revision)] = shelf.revisions[first]


@caught_by("stored_values_are_nobodys_to_change")
class HandsOutWhatItKeeps(ReferenceMemoryProvider):
    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        loaded = await super().load(request, timeout=timeout)
        kept = self._shelf(request.project).revisions
        return replace(loaded, revisions={ref: kept[ref] for ref in loaded.revisions})


@caught_by("page_under_writes")
class PagesByOffset(ReferenceMemoryProvider):
    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        offsets: dict[int | None, int] = self.__dict__.setdefault("offsets", {None: 0})
        offset = offsets[request.before]
        head = self._head(self._shelf(request.project), request.record_id)
        newest = head.current.revision if head else 0
        moved = replace(request, before=newest + 1 - offset)
        page = await super().revisions(moved, timeout=timeout)
        if page.revisions:
            offsets[page.revisions[-1].revision] = offset + len(page.revisions)
        return page


@caught_by("page_sizes_1_2_max")
class SaysMoreWhenThePageIsFull(ReferenceMemoryProvider):
    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        page = await super().revisions(request, timeout=timeout)
        return replace(page, more=len(page.revisions) == request.limit)


@caught_by("whole_history_is_put_at_once")
class DropsBroughtHistory(ReferenceMemoryProvider):
    def _put_heads(self, shelf: Shelf, write_set: WriteSet) -> None:
        super()._put_heads(shelf, replace(write_set, history=()))
        for revision in write_set.history[:-1]:
            shelf.revisions[RevisionRef(revision.record_id, revision.revision)] = revision
        for revision in write_set.history[-1:]:
            ref = RevisionRef(revision.record_id, revision.revision)
            shelf.revisions[ref] = replace(revision, revision_id="lost")


# -------------------- text, numbers and times


class _Alters(ReferenceMemoryProvider):
    """Changes what it keeps of each revision."""

    def _altered(self, revision: Revision) -> Revision:
        return revision

    def _put_heads(self, shelf: Shelf, write_set: WriteSet) -> None:
        heads = tuple(
            replace(each, record=replace(each.record, current=self._altered(each.record.current)))
            for each in write_set.heads
        )
        super()._put_heads(shelf, replace(write_set, heads=heads))

    def _said(self, revision: Revision, **changes: Any) -> Revision:
        content: Content = replace(revision.content, **changes)
        return replace(revision, content=content)


@caught_by("text_comes_back_exactly", "longest_text_comes_back_exactly")
class NormalisesText(_Alters):
    def _altered(self, revision: Revision) -> Revision:
        text = unicodedata.normalize("NFC", revision.content.content)
        return self._said(revision, content=text)


@caught_by("text_comes_back_exactly")
class StripsText(_Alters):
    def _altered(self, revision: Revision) -> Revision:
        return self._said(revision, content=revision.content.content.strip())


@caught_by("absent_and_empty_stay_apart")
class TakesEmptyForAbsent(_Alters):
    def _altered(self, revision: Revision) -> Revision:
        return self._said(revision, title=revision.content.title or None)


@caught_by("tags_keep_their_order")
class SortsTags(_Alters):
    def _altered(self, revision: Revision) -> Revision:
        return self._said(revision, tags=tuple(sorted(revision.content.tags)))


@caught_by("numbers_and_times_are_exact")
class KeepsSinglePrecision(_Alters):
    def _altered(self, revision: Revision) -> Revision:
        return self._said(revision, importance=round(revision.content.importance, 7))


@caught_by("numbers_and_times_are_exact")
class KeepsMilliseconds(_Alters):
    def _altered(self, revision: Revision) -> Revision:
        spare = timedelta(microseconds=revision.create_time.microsecond % 1000)
        return replace(revision, create_time=revision.create_time - spare)


@caught_by("facet_comes_back_whole")
class KeepsMetadataNumbersAsFloats(_Alters):
    def _altered(self, revision: Revision) -> Revision:
        facet: MemoryFacet | None = revision.facet
        if facet is None or facet.metadata is None:
            return revision
        metadata = {
            name: [float(each) if type(each) is int else each for each in value]
            if isinstance(value, list)
            else value
            for name, value in facet.metadata.items()
        }
        return replace(revision, facet=replace(facet, metadata=metadata))

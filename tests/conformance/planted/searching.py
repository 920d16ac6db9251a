"""The reference with one bug each in what a search finds, and how its pages follow."""

from dataclasses import replace

from providers.conformance.reference import ReferenceMemoryProvider, Shelf
from providers.folding import folded
from providers.model import Content, Record, Revision, State
from providers.requests import SearchPage, SearchRequest
from tests.conformance.planted.bug import caught_by

# -------------------- filters


@caught_by("scope_filters_before_the_limit", "old_and_rare_text_is_found_among_many")
class LimitsBeforeItFilters(ReferenceMemoryProvider):
    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        every = SearchRequest(project=request.project, agent_id=None, after=request.after)
        newest = await super().search(replace(every, limit=request.limit), timeout=timeout)
        found = [each for each in newest.records if self._fits(each, request)]
        return replace(newest, records=tuple(found))


@caught_by("scope_filters_before_the_limit")
class TakesAgentsByPrefix(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        prefix = request.agent_id or ""
        own = record.current.agent_id.startswith(prefix)
        return own and super()._fits(record, replace(request, agent_id=None))


@caught_by("kinds_states_and_trusts_filter")
class IgnoresTrust(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        return super()._fits(record, replace(request, trusts=frozenset()))


@caught_by("kinds_states_and_trusts_filter")
class TakesNoKindsForNone(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        return record.current.kind in request.kinds and super()._fits(record, request)


@caught_by("forgotten_is_never_found")
class ShowsForgottenWhereAsked(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        now = record.current
        if now.state in request.states:
            record = replace(record, current=replace(now, state=State.ACTIVE))
            request = replace(request, states=frozenset())
        return super()._fits(record, request)


@caught_by("forgotten_is_never_found")
class LeavesForgottenOutOfThePageLast(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        alive = replace(record.current, state=State.ACTIVE)
        return super()._fits(replace(record, current=alive), replace(request, states=frozenset()))

    def _page(self, fitting: list[Record], request: SearchRequest) -> SearchPage:
        page = super()._page(fitting, request)
        kept = [each for each in page.records if each.current.state is not State.FORGOTTEN]
        return replace(page, records=tuple(kept))


@caught_by("importance_is_compared_as_a_number")
class ComparesImportanceAsText(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        low, high = request.importance_min, request.importance_max
        value = str(record.current.content.importance)
        within = (low is None or value >= str(low)) and (high is None or value <= str(high))
        open_ends = replace(request, importance_min=None, importance_max=None)
        return within and super()._fits(record, open_ends)


@caught_by("importance_is_compared_as_a_number")
class LeavesTheBoundOut(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        at_the_end = record.current.content.importance == request.importance_max
        return not at_the_end and super()._fits(record, request)


@caught_by("importance_is_compared_as_a_number")
class TakesZeroForNoBound(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        return super()._fits(
            record, replace(request, importance_max=request.importance_max or None)
        )


@caught_by("times_are_half_open_and_of_the_update")
class TakesTheEndIn(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        if record.current.create_time == request.updated_before:
            request = replace(request, updated_before=None)
        return super()._fits(record, request)


@caught_by("times_are_half_open_and_of_the_update")
class FiltersByTheTimeOfCreation(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        first = replace(record.current, create_time=record.create_time)
        return super()._fits(replace(record, current=first), request)


@caught_by("tags_are_equal_as_a_whole")
class TakesPartsOfTags(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        tags = folded("\n".join(record.current.content.tags))
        had = all(folded(each) in tags for each in request.tags)
        return had and super()._fits(record, replace(request, tags=()))


@caught_by("tags_are_equal_as_a_whole")
class TakesAnyTag(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        single = [replace(request, tags=(each,)) for each in request.tags] or [request]
        return any(super(TakesAnyTag, self)._fits(record, each) for each in single)


@caught_by("tags_are_equal_as_a_whole")
class MindsCaseOfTags(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        exact = {*request.tags} <= {*record.current.content.tags}
        return exact and super()._fits(record, request)


@caught_by("search_follows_the_head")
class NeverIndexesAgain(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        now = record.current
        seen: dict[str, Content] = self._store.__dict__.setdefault("indexed", {})
        indexed = seen.setdefault(now.record_id, now.content)
        first: Revision = replace(now, content=indexed)
        return super()._fits(replace(record, current=first), request)


# -------------------- pages


@caught_by("old_and_rare_text_is_found_among_many")
class LooksAtTheNewestOnly(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        heads = self._shelf(request.project).heads.values()
        newer = sum(each.current.create_time > record.current.create_time for each in heads)
        return newer < 500 and super()._fits(record, request)


@caught_by("order_is_newest_first_then_id", "page_sizes_1_2_default_max")
class OrdersTiesByCase(ReferenceMemoryProvider):
    def _page(self, fitting: list[Record], request: SearchRequest) -> SearchPage:
        page = super()._page(fitting, request)
        by_id = sorted(page.records, key=lambda each: each.current.record_id.casefold()[::-1])
        by_id.sort(key=lambda each: each.current.create_time, reverse=True)
        return replace(page, records=tuple(by_id))


@caught_by("order_is_newest_first_then_id")
class ContinuesAfterTheTime(ReferenceMemoryProvider):
    def _page(self, fitting: list[Record], request: SearchRequest) -> SearchPage:
        after = request.after
        if after is not None:
            fitting = [each for each in fitting if each.current.create_time < after.update_time]
        return super()._page(fitting, request)


@caught_by("pages_join_under_writes")
class SearchesByOffset(ReferenceMemoryProvider):
    def _page(self, fitting: list[Record], request: SearchRequest) -> SearchPage:
        offsets: dict[object, int] = self.__dict__.setdefault("search_offsets", {})
        offset = 0 if request.after is None else offsets[request.after.record_id]
        ordered = super()._page(fitting, replace(request, after=None, limit=100)).records
        page = ordered[offset : offset + request.limit]
        if page:
            offsets[page[-1].current.record_id] = offset + len(page)
        return SearchPage(page, more=len(ordered) > offset + len(page))


@caught_by("page_sizes_1_2_default_max")
class SaysMoreOfAFullPage(ReferenceMemoryProvider):
    def _page(self, fitting: list[Record], request: SearchRequest) -> SearchPage:
        page = super()._page(fitting, request)
        return replace(page, more=len(page.records) == request.limit)


@caught_by("damaged_record_is_told_by_a_search")
class SearchSkipsDamagedRecords(ReferenceMemoryProvider):
    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        heads = self._shelf(request.project).heads
        sound = [each for name, each in heads.items() if each.current.record_id == name]
        return self._page([each for each in sound if self._fits(each, request)], request)


@caught_by("use_after_close", "negotiate_refuses_identity")
class SearchesWithoutACheck(ReferenceMemoryProvider):
    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        shelf: Shelf = self._shelf(request.project)
        return self._page([e for e in shelf.heads.values() if self._fits(e, request)], request)

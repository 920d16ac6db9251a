"""The reference with one bug each in what a brief page leaves out and where a bounded one ends."""

from collections.abc import Sequence
from dataclasses import replace

from providers.conformance import reference_pages
from providers.conformance.reference import ReferenceMemoryProvider
from providers.conformance.reference_pages import brief_record, text_size
from providers.model import Record, Revision
from providers.requests import (
    BRIEF_LENGTH,
    RevisionsPage,
    RevisionsRequest,
    SearchPage,
    SearchRequest,
)
from tests.conformance.planted.bug import caught_by

BRIEF = ("brief_heads_are_cut_by_code_points", "brief_revisions_are_cut_by_code_points")
JOIN = ("bounded_pages_of_heads_join", "bounded_pages_of_revisions_join")
TO_THE_BYTE = (
    "a_page_of_heads_may_be_as_large_as_its_bound",
    "a_page_of_revisions_may_be_as_large_as_its_bound",
)
FACETS = ("facets_of_heads_count", "facets_of_revisions_count")


class Resized(ReferenceMemoryProvider):
    """Makes whole pages small in a way of its own."""

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        plain = replace(request, brief=False, bytes_max=None)
        page = await super().search(plain, timeout=timeout)
        held = self._kept([each.current for each in page.records], request)
        records = tuple(
            replace(record, current=current)
            for record, current in zip(page.records, held, strict=False)
        )
        return SearchPage(records, more=page.more or len(held) < len(page.records))

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        plain = replace(request, brief=False, bytes_max=None)
        page = await super().revisions(plain, timeout=timeout)
        held = tuple(self._kept(page.revisions, request))
        return replace(page, revisions=held, more=page.more or len(held) < len(page.revisions))

    def _kept(
        self, whole: Sequence[Revision], request: SearchRequest | RevisionsRequest
    ) -> list[Revision]:
        held = whole[: self._within(whole, request.bytes_max)]
        return [self._brief(each) if request.brief else each for each in held]

    def _within(self, whole: Sequence[Revision], bytes_max: int | None) -> int:
        return reference_pages.within(whole, bytes_max)

    def _brief(self, revision: Revision) -> Revision:
        return reference_pages.brief(revision)


# -------------------- brief


@caught_by(*BRIEF)
class IsNeverBrief(Resized):
    def _brief(self, revision: Revision) -> Revision:
        return revision


@caught_by(*BRIEF)
class IsAlwaysBrief(Resized):
    def _kept(
        self, whole: Sequence[Revision], request: SearchRequest | RevisionsRequest
    ) -> list[Revision]:
        return [self._brief(each) for each in super()._kept(whole, request)]


@caught_by(*BRIEF)
class CutsByBytes(Resized):
    def _brief(self, revision: Revision) -> Revision:
        cut = revision.content.content.encode()[:BRIEF_LENGTH].decode(errors="ignore")
        return replace(
            super()._brief(revision),
            content=replace(revision.content, content=cut, rationale=None),
        )


@caught_by(*BRIEF)
class CutsByCodeUnits(Resized):
    def _brief(self, revision: Revision) -> Revision:
        units = revision.content.content.encode("utf-16-le")[: 2 * BRIEF_LENGTH]
        cut = units.decode("utf-16-le", errors="ignore")
        return replace(
            super()._brief(revision),
            content=replace(revision.content, content=cut, rationale=None),
        )


@caught_by(*BRIEF)
class CutsOneTooMany(Resized):
    def _brief(self, revision: Revision) -> Revision:
        brief = super()._brief(revision)
        cut = brief.content.content[: BRIEF_LENGTH - 1]
        return replace(brief, content=replace(brief.content, content=cut))


@caught_by(*BRIEF)
class KeepsTheRationale(Resized):
    def _brief(self, revision: Revision) -> Revision:
        brief = super()._brief(revision)
        rationale = revision.content.rationale
        return replace(brief, content=replace(brief.content, rationale=rationale))


@caught_by(*BRIEF)
class KeepsMetadata(Resized):
    def _brief(self, revision: Revision) -> Revision:
        return replace(super()._brief(revision), facet=revision.facet)


@caught_by(*BRIEF)
class LeavesFacetsOut(Resized):
    def _brief(self, revision: Revision) -> Revision:
        return replace(super()._brief(revision), facet=None)


@caught_by(*BRIEF)
class CutsTitlesToo(Resized):
    def _brief(self, revision: Revision) -> Revision:
        brief = super()._brief(revision)
        title = (brief.content.title or "")[:BRIEF_LENGTH]
        return replace(brief, content=replace(brief.content, title=title))


@caught_by("brief_pages_find_what_they_leave_out")
class SearchesWhatIsBrief(ReferenceMemoryProvider):
    def _fits(self, record: Record, request: SearchRequest) -> bool:
        return super()._fits(brief_record(record) if request.brief else record, request)


# -------------------- bytes


@caught_by(*JOIN, *TO_THE_BYTE, *FACETS)
class KnowsNoBound(Resized):
    def _within(self, whole: Sequence[Revision], bytes_max: int | None) -> int:
        return len(whole)


@caught_by(*JOIN, *TO_THE_BYTE)
class CountsCodePoints(Resized):
    def _within(self, whole: Sequence[Revision], bytes_max: int | None) -> int:
        ascii_only = [
            replace(
                each,
                reason=None,
                content=replace(
                    each.content,
                    type="",
                    title=None,
                    tags=(),
                    rationale=None,
                    content="x" * _length(each),
                ),
            )
            for each in whole
        ]
        return super()._within(ascii_only, bytes_max)


@caught_by(*JOIN, *TO_THE_BYTE)
class CountsContentAlone(Resized):
    def _within(self, whole: Sequence[Revision], bytes_max: int | None) -> int:
        bare = [
            replace(each, content=replace(each.content, title=None, rationale=None, tags=()))
            for each in whole
        ]
        return super()._within(bare, bytes_max)


@caught_by(*FACETS)
class CountsNoFacets(Resized):
    def _within(self, whole: Sequence[Revision], bytes_max: int | None) -> int:
        return super()._within([replace(each, facet=None) for each in whole], bytes_max)


@caught_by(*JOIN, *TO_THE_BYTE)
class EndsAfterTheBound(Resized):
    def _within(self, whole: Sequence[Revision], bytes_max: int | None) -> int:
        held = super()._within(whole, bytes_max)
        alone = held == 1 and bytes_max is not None and text_size(whole[0]) > bytes_max
        return held if alone else min(held + 1, len(whole))


@caught_by(*JOIN, *TO_THE_BYTE)
class EndsBeforeTheBound(Resized):
    def _within(self, whole: Sequence[Revision], bytes_max: int | None) -> int:
        return super()._within(whole, None if bytes_max is None else bytes_max - 1_000)


@caught_by(*JOIN)
class HoldsNothingOfWhatIsTooLarge(Resized):
    def _within(self, whole: Sequence[Revision], bytes_max: int | None) -> int:
        held = super()._within(whole, bytes_max)
        fits = bytes_max is None or not whole or text_size(whole[0]) <= bytes_max
        return held if fits else 0


@caught_by(*JOIN)
class SkipsWhatIsTooLarge(Resized):
    def _kept(
        self, whole: Sequence[Revision], request: SearchRequest | RevisionsRequest
    ) -> list[Revision]:
        bound = request.bytes_max
        small = [each for each in whole if bound is None or text_size(each) <= bound]
        return super()._kept(small or whole, request)


@caught_by(*JOIN, *TO_THE_BYTE)
class SaysNoMoreOfAShortPage(Resized):
    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        page = await super().search(request, timeout=timeout)
        return replace(page, more=page.more and len(page.records) == request.limit)

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        page = await super().revisions(request, timeout=timeout)
        return replace(page, more=page.more and len(page.revisions) == request.limit)


def _length(revision: Revision) -> int:
    said = revision.content
    texts = (said.type, said.title, said.content, said.rationale, revision.reason, *said.tags)
    return sum(len(text) for text in texts if text is not None)

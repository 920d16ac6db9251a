"""A page of history: newest first, from documents of their own and from segments."""

from collections.abc import Sequence
from typing import Any

from providers.chain import check_chain
from providers.cosmos import keys, rows
from providers.cosmos.calls import Calls, Link, Query
from providers.cosmos.reader import segments_of
from providers.errors import StoredDataInvalidError
from providers.findable import findable, findable_project
from providers.model import Revision, State
from providers.requests import RevisionsPage, RevisionsRequest

_WHERE = (
    "c.recordId = @record AND (c.doc = 'head' OR (c.doc = 'revision' AND c.last < @before)"
    " OR (c.doc = 'segment' AND c.first < @before))"
)
_BRIEF = f"{rows.BRIEF}, c.fullSize, c.history"
_WHOLE = f"{rows.WHOLE}, c.history"


async def revisions(calls: Calls, request: RevisionsRequest, timeout: float) -> RevisionsPage:
    """See ``IMemoryProvider.revisions``."""
    partition = keys.partition_of(findable_project(request.project))

    async def work(link: Link) -> RevisionsPage:
        return await _page(link, request)

    return await calls.run(partition, work, timeout=timeout)


async def _page(link: Link, request: RevisionsRequest) -> RevisionsPage:
    gathered = _Gathered(link, request)
    query = Query(
        _WHERE,
        {"record": findable(request.record_id), "before": gathered.before},
        _BRIEF if request.brief else _WHOLE,
        "c.last DESC",
    )
    # The head, and one more than is asked for.
    async for page in link.pages(query, items=request.limit + 2):
        if not await gathered.take(page):
            return gathered.page(is_all=False)
    return gathered.page(is_all=True)


class _Gathered:
    """Revisions from the newest on, without a gap."""

    def __init__(self, link: Link, request: RevisionsRequest) -> None:
        self._link = link
        self._request = request
        self._newest: int | None = None
        self._revisions: dict[int, tuple[Revision, int]] = {}
        self.before = min(request.before or rows.LAST_MAX, rows.LAST_MAX)

    async def take(self, found: Sequence[dict[str, Any]]) -> bool:
        """Take documents, and tell whether more are wanted."""
        brief = self._request.brief
        known = [each for each in found if each["doc"] == "segment"]
        segments = None if brief and not known else await segments_of(self._link, found, known)
        for document in found:
            if document["doc"] == "head":
                now = rows.to_revision(document, None)
                if now.agent_id == self._request.agent_id and now.state is not State.FORGOTTEN:
                    self._newest = min(now.revision, self.before - 1)
            elif document["doc"] == "revision":
                made = rows.to_revision(document, None if brief else segments)
                self._revisions[made.revision] = (made, rows.whole(document, "fullSize"))
            elif segments is not None:
                for made, size in segments.all(document["id"], brief=brief):
                    if made.revision < self.before:
                        self._revisions[made.revision] = (made, size)
            if self._newest is None:
                return False
        return len(self._revisions) <= self._request.limit and self._fitting() is None

    def page(self, *, is_all: bool) -> RevisionsPage:
        """Return what was gathered, as a page."""
        if self._newest is None:
            return RevisionsPage(found=False)
        ordered = self._ordered()
        whole = [each for each, _ in reversed(ordered)]
        check_chain(whole, self._request.record_id, self._newest)
        if is_all and whole and whole[0].revision != 1:
            raise StoredDataInvalidError("a stored history has a gap")
        fitting = self._fitting()
        count = min(self._request.limit, len(ordered) if fitting is None else fitting)
        shown = tuple(each for each, _ in ordered[:count])
        return RevisionsPage(
            found=True, revisions=shown, more=bool(shown) and shown[-1].revision > 1
        )

    def _ordered(self) -> list[tuple[Revision, int]]:
        return [self._revisions[each] for each in sorted(self._revisions, reverse=True)]

    def _fitting(self) -> int | None:
        """Return how many fit the bound of bytes; ``None``: all that were gathered."""
        left = self._request.bytes_max
        for count, (_, size) in enumerate(self._ordered()):
            if left is None:
                break
            left -= size
            if left < 0:
                return max(count, 1)
        return None

"""How the reference chooses context candidates: it looks at every head, sorts, and adds up."""

from collections.abc import Iterable
from copy import deepcopy
from datetime import UTC, datetime, timedelta

from providers.conformance.reference_shelves import ReferenceParts
from providers.model import Content, Kind, Record, Revision, State, Trust
from providers.requests import Candidates, CandidatesRequest
from providers.rules import is_storable

SHARED = "cross-team"
LATEST = datetime.max.replace(tzinfo=UTC)
KINDS = (Kind.DECISION, Kind.MEMORY, Kind.SESSION_CONTEXT)


class ReferenceCandidates(ReferenceParts):
    """The part of the reference that gives context candidates."""

    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        """See ``IMemoryProvider.candidates``."""
        shelf = self._opened(request.project)
        if not (is_storable(request.agent_id) and is_storable(request.run_id)):
            return Candidates(())
        heads = (self._head(shelf, each) for each in shelf.heads)
        chosen = [each for each in heads if each and self._enters(each.current, request)]
        return deepcopy(
            self._within_bytes(self._ordered(chosen)[: request.limit], request.bytes_max)
        )

    def _enters(self, now: Revision, request: CandidatesRequest) -> bool:
        if now.state is not State.ACTIVE:
            return False
        mine = now.agent_id == request.agent_id
        approved = now.trust is Trust.APPROVED
        if now.kind is Kind.DECISION:
            return approved
        if now.kind is Kind.SESSION_CONTEXT:
            return approved and mine and now.source_run_id == request.run_id
        if now.kind is Kind.MEMORY:
            shared = approved and self._is_shared(now.content)
            return shared or (mine and now.trust in (Trust.PENDING, Trust.APPROVED))
        return False

    def _is_shared(self, content: Content) -> bool:
        return any(each.isascii() and each.lower() == SHARED for each in content.tags)

    def _ordered(self, chosen: Iterable[Record]) -> list[Record]:
        return sorted(chosen, key=_place)

    def _within_bytes(self, chosen: list[Record], bytes_max: int) -> Candidates:
        """Return the longest beginning that fits."""
        used = 0
        for number, record in enumerate(chosen):
            used += self._size(record.current)
            if number > 0 and used > bytes_max:
                return Candidates(tuple(chosen[:number]), truncated_bytes=True)
        return Candidates(tuple(chosen))

    def _size(self, revision: Revision) -> int:
        said = revision.content
        texts = (said.type, said.title, said.content, said.rationale, revision.reason, *said.tags)
        return sum(len(text.encode()) for text in texts if text is not None)


def _place(record: Record) -> tuple[int, float, timedelta, str]:
    now = record.current
    return (
        KINDS.index(now.kind),
        -now.content.importance,
        LATEST - now.create_time,
        now.record_id,
    )

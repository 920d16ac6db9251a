"""How the reference recalls: it looks at every head and its entry, counts, and sorts."""

from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from math import fsum

from providers import rules
from providers.conformance.reference_shelves import ReferenceParts, Shelf
from providers.driving import driving
from providers.eligibility import is_counted, is_eligible
from providers.entries import RecallEntry, TermVector, Vector
from providers.errors import RecallScopeTooLargeError
from providers.model import Kind, Record, State
from providers.recall import (
    DRIVEN_MAX,
    MATCHES_MAX,
    Eligible,
    EntryPut,
    IndexRequest,
    Match,
    Matches,
    Near,
    Recalled,
    RecallRequest,
    TaggedRequest,
    Unindexed,
    UnindexedRequest,
)
from providers.requests import SearchPage

LATEST = datetime.max.replace(tzinfo=UTC)


class ReferenceRecall(ReferenceParts):
    """The part of the reference that gives memories back."""

    recall_records_max: int | None = None
    """How many memories of an agent it looks through; ``None``: as many as there are."""

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        """See ``IMemoryProvider.recall``."""
        shelf = self._opened(request.eligible.project)
        counted = [each for each in self._heads(shelf) if self._counts(each, request.eligible)]
        self._check_scope(len(counted))
        indexed = [each for each in counted if each.current.record_id in shelf.entries]
        vectors = [self._entry(shelf, each).terms for each in indexed]
        frequencies = [sum(term in each.counts for each in vectors) for term in request.terms]
        given = [each for each in indexed if self._is_eligible(each, request.eligible)]
        return Recalled(
            documents=len(indexed),
            length_total=sum(each.length for each in vectors),
            frequencies=tuple(frequencies),
            unindexed=len(counted) - len(indexed),
            matches=Matches.of(self._matches(shelf, given, request.terms, frequencies)),
            nearest=self._nearest(shelf, given, request),
        )

    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.tagged``."""
        shelf = self._opened(request.eligible.project)
        found = [each for each in self._heads(shelf) if self._is_eligible(each, request.eligible)]
        ordered = tuple(self._by_importance(found))
        return deepcopy(SearchPage(ordered[: request.limit], more=len(ordered) > request.limit))

    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        """See ``IMemoryProvider.unindexed``."""
        shelf = self._opened(request.project)
        missing = {
            each.current.record_id: each
            for each in self._heads(shelf)
            if self._lacks(shelf, each, request.vector_model)
        }
        names = sorted(each for each in missing if each > (request.after or ""))
        return deepcopy(Unindexed(tuple(missing[each] for each in names[: request.limit])))

    async def index(self, request: IndexRequest, *, timeout: float) -> int:
        """See ``IMemoryProvider.index``."""
        self._check_open()
        self._check_entries(request)
        shelf = self._opened(request.project)
        fresh = [each for each in request.entries if self._is_fresh(shelf, each)]
        for each in fresh:
            shelf.entries[each.record_id] = deepcopy(each.entry)
        return len(fresh)

    # -------------------- which heads

    def _heads(self, shelf: Shelf) -> list[Record]:
        heads = (self._head(shelf, each) for each in shelf.heads)
        return [each for each in heads if each is not None]

    def _counts(self, record: Record, eligible: Eligible) -> bool:
        return is_counted(record.current, eligible)

    def _is_eligible(self, record: Record, eligible: Eligible) -> bool:
        return is_eligible(record, eligible)

    def _check_scope(self, observed: int) -> None:
        most = self.recall_records_max
        if most is not None and observed > most:
            raise RecallScopeTooLargeError(limit=most, observed=observed)

    # -------------------- by words

    def _entry(self, shelf: Shelf, record: Record) -> RecallEntry:
        return shelf.entries[record.current.record_id]

    def _matches(
        self, shelf: Shelf, given: list[Record], terms: tuple[str, ...], frequencies: list[int]
    ) -> tuple[Match, ...]:
        driven = {terms[place] for place in self._driving(terms, frequencies)}
        held = [each for each in given if driven & set(self._entry(shelf, each).terms.counts)]
        held.sort(key=lambda each: (LATEST - each.current.create_time, each.current.record_id))
        return tuple(
            self._match(each.current.record_id, self._entry(shelf, each).terms, terms)
            for each in held[:MATCHES_MAX]
        )

    def _driving(self, terms: Sequence[str], frequencies: Sequence[int]) -> tuple[int, ...]:
        return driving(terms, frequencies, most=DRIVEN_MAX)

    def _match(self, record_id: str, held: TermVector, terms: tuple[str, ...]) -> Match:
        return Match(record_id, tuple(held.counts.get(term, 0) for term in terms), held.length)

    # -------------------- by a vector

    def _nearest(
        self, shelf: Shelf, given: list[Record], request: RecallRequest
    ) -> tuple[Near, ...]:
        if request.vector is None:
            return ()
        near: list[Near] = []
        for each in given:
            vector = self._entry(shelf, each).vector
            if vector is not None and self._is_alike(vector, request.vector):
                cosine = self._cosine(vector, request.vector)
                near.append(Near(each.current.record_id, cosine))
        near.sort(key=lambda each: (-each.similarity, each.record_id))
        return tuple(near[: request.nearest_max])

    def _is_alike(self, one: Vector, other: Vector) -> bool:
        return (one.model, one.dimension) == (other.model, other.dimension)

    def _cosine(self, one: Vector, other: Vector) -> float:
        left, right = memoryview(one.packed).cast("f"), memoryview(other.packed).cast("f")
        dot = fsum(a * b for a, b in zip(left, right, strict=True))
        return max(-1.0, min(1.0, dot))

    # -------------------- by tags

    def _by_importance(self, found: list[Record]) -> list[Record]:
        return sorted(found, key=_place)

    # -------------------- indexing

    def _lacks(self, shelf: Shelf, record: Record, model: str | None) -> bool:
        now = record.current
        if now.kind is not Kind.MEMORY or now.state is State.FORGOTTEN:
            return False
        entry = shelf.entries.get(now.record_id)
        if entry is None:
            return True
        return model is not None and (entry.vector is None or entry.vector.model != model)

    def _check_entries(self, request: IndexRequest) -> None:
        for each in request.entries:
            rules.check_entry(each.entry)

    def _is_fresh(self, shelf: Shelf, put: EntryPut) -> bool:
        head = self._head(shelf, put.record_id)
        if head is None or head.current.kind is not Kind.MEMORY:
            return False
        return head.current.revision_id == put.revision_id


def _place(record: Record) -> tuple[float, timedelta, str]:
    now = record.current
    return (-now.content.importance, LATEST - now.create_time, now.record_id)

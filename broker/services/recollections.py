"""The use cases that give memories back."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import accumulate

from broker.domain.call import Call
from broker.domain.fields import Violations, check_scope, refuse_if_any
from broker.domain.memories import (
    Arm,
    ArmReport,
    Gap,
    Recall,
    RecallByTags,
    RecallMode,
    Recollected,
    Tagged,
)
from broker.domain.ports import Clock
from broker.domain.reply_size import cut_records
from broker.retrieval.fitness import Weights
from broker.retrieval.ranking import (
    PER_SUBJECT_MAX,
    Choice,
    Order,
    Shortlist,
    in_order,
    recollections,
    shortlist,
)
from broker.retrieval.terms import query_terms
from broker.services.access import Access, AccessPath
from broker.services.entries import Entries
from broker.services.recall_fields import (
    LIMIT_DEFAULT,
    TAGGED_DEFAULT,
    check_by_tags,
    check_recall,
    eligible,
    superseded_asked,
)
from broker.services.turns import LONG, with_room
from providers.capabilities import Capability
from providers.eligibility import is_eligible
from providers.entries import Vector
from providers.interface import IMemoryProvider
from providers.model import Record
from providers.recall import Eligible, Recalled, RecallRequest, TaggedRequest
from providers.requests import LoadRequest


class Recollections:
    """Gives memories back behind the checks of ``AccessPath``."""

    def __init__(
        self, access: AccessPath, clock: Clock, entries: Entries, weights: Weights
    ) -> None:
        """Take the checks, the clock, what makes vectors, and what counts beside a query."""
        self._access = access
        self._clock = clock
        self._entries = entries
        self._weights = weights

    async def recall(self, call: Call, request: Recall) -> Recollected:
        """Find memories by a query: two store trips, two owner trips (003-03, 003-12).

        Raises:
            RecallScopeTooLargeError: not retryable.
        """
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        violations: Violations = []
        full = check_recall(violations, request)
        refuse_if_any(violations)
        access = await self._access.enter(authorized, Capability.RECALL)
        asked = await self._asked(access, request)
        recalled, listed, heads = await self._access.read(access, partial(_found, asked=asked))
        ordering = partial(
            in_order,
            listed,
            heads,
            asked=frozenset(asked.terms),
            at=asked.eligible.at,
            weights=self._weights,
        )
        order = await with_room(ordering, sum(map(_named, heads)))
        per_subject = PER_SUBJECT_MAX if asked.eligible.subject is None else None
        chosen = await _chosen(order, Choice(request.limit or LIMIT_DEFAULT, per_subject))
        results = recollections(listed, order, chosen)
        kept = len(cut_records(tuple(each.record for each in results))) if full else len(results)
        return Recollected(
            project_id=request.scope.project_id,
            results=results[:kept],
            arms=_arms(asked, recalled),
            full=full,
        )

    async def by_tags(self, call: Call, request: RecallByTags) -> Tagged:
        """Return memories by tags: the most important first, sorted before the cut (003-04).

        Raises:
            RecallScopeTooLargeError: not retryable.
        """
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        violations: Violations = []
        full = check_by_tags(violations, request)
        refuse_if_any(violations)
        access = await self._access.enter(authorized, Capability.RECALL)
        asked = TaggedRequest(
            eligible=eligible(
                request.filter,
                project=access.project,
                agent_id=request.scope.agent_id,
                at=self._clock.now(),
            ),
            limit=request.limit or TAGGED_DEFAULT,
        )
        page = await self._access.read(
            access, lambda provider, timeout: provider.tagged(asked, timeout=timeout)
        )
        records = cut_records(page.records) if full else page.records
        more = page.more or len(records) < len(page.records)
        return Tagged(request.scope.project_id, records, more, full)

    async def _asked(self, access: Access, request: Recall) -> "_Asked":
        """Return what a provider is asked, and why there is no vector in it."""
        terms = query_terms(request.query)
        vector, gap = await self._vector(access, request)
        moment = request.as_of if isinstance(request.as_of, datetime) else self._clock.now()
        return _Asked(
            eligible=eligible(
                request.filter,
                project=access.project,
                agent_id=request.scope.agent_id,
                at=moment,
                superseded=superseded_asked(request),
            ),
            terms=terms,
            vector=vector,
            gap=gap,
        )

    async def _vector(self, access: Access, request: Recall) -> tuple[Vector | None, Gap | None]:
        if request.mode is RecallMode.KEYWORD:
            return None, Gap.NOT_ASKED
        if not access.keeps_vectors:
            return None, Gap.NOT_KEPT
        return await self._entries.vector(
            request.query, tenant_id=access.project.tenant_id, timeout=access.timeout() / 2
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One query as it is asked; ``gap`` says why it has no vector."""

    eligible: Eligible
    terms: tuple[str, ...]
    vector: Vector | None
    gap: Gap | None


async def _found(
    provider: IMemoryProvider, timeout: float, *, asked: _Asked
) -> tuple[Recalled, Shortlist, Collection[Record]]:
    """Return what a provider found, and the heads of what may be among the best.

    They are judged again, since they may have changed between the two trips.
    """
    if not asked.terms and asked.vector is None:
        return Recalled(), shortlist(Recalled()), ()
    request = RecallRequest(eligible=asked.eligible, terms=asked.terms, vector=asked.vector)
    recalled = await provider.recall(request, timeout=timeout)
    listed = shortlist(recalled)
    if not listed.scores:
        return recalled, listed, ()
    wanted = LoadRequest(project=asked.eligible.project, record_ids=tuple(listed.scores))
    heads = (await provider.load(wanted, timeout=timeout)).heads.values()
    return recalled, listed, [each for each in heads if is_eligible(each, asked.eligible)]


async def _chosen(order: Order, choice: Choice) -> list[Record]:
    """Choose of an order: in a thread where the first texts, a few of them, are not enough."""
    ends = list(accumulate(map(_length, order.records)))
    soon = bisect_right(ends, LONG)
    if not choice.take(order.records[:soon]):
        await with_room(partial(choice.take, order.records[soon:]), max(ends, default=0))
    return choice.chosen()


def _named(head: Record) -> int:
    """Return how many code points are read of a memory to put it in order."""
    now = head.current
    subject = now.facet.subject if now.facet else None
    return len(now.content.title or "") + len(subject or "")


def _length(head: Record) -> int:
    """Return how many code points are read of a memory to choose it, or not."""
    content = head.current.content
    return len(content.title or "") + len(content.content)


def _arms(asked: _Asked, recalled: Recalled) -> tuple[ArmReport, ...]:
    """Tell how each arm did (000-41, 001-40)."""
    unindexed = Gap.UNINDEXED if recalled.unindexed else None
    words = bool(asked.terms)
    return (
        ArmReport(
            Arm.KEYWORD,
            ran=words,
            gap=unindexed if words else Gap.NO_WORDS,
            found=len(recalled.matches),
        ),
        ArmReport(
            Arm.VECTOR,
            ran=asked.vector is not None,
            gap=asked.gap,
            found=len(recalled.nearest),
        ),
    )

"""What a provider may give as a candidate, and which candidates may enter at a time.

A candidate that breaks the first rule is the provider's fault. One that does not pass the second
one is passed over in silence: the reply tells only what a query or a limit kept out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from broker.domain.context import CompileContext
from broker.domain.requests import Unknown
from providers.errors import StoredDataInvalidError
from providers.model import (
    DeliveryPolicy,
    Kind,
    MemoryFacet,
    OriginTier,
    Record,
    Revision,
    Sensitivity,
    State,
    Trust,
)

CROSS_TEAM_TAG: Final = "cross-team"
"""Shares an approved memory with the other agents of its project, in any case of letters."""

_TIERS: Final = (OriginTier.EXTERNAL, OriginTier.AGENT, OriginTier.OPERATOR)
_SENSITIVITIES: Final = tuple(Sensitivity)
_NO_FACET: Final = MemoryFacet()

Word = TypeVar("Word")


def check_candidates(records: Iterable[Record], *, agent_id: str, run_id: str) -> None:
    """Check that every record may be a candidate, and stands there once (004-89, 004-99).

    Raises:
        StoredDataInvalidError: one may not. Not retryable.
    """
    seen: set[str] = set()
    for record in records:
        current = record.current
        if current.record_id in seen:
            raise StoredDataInvalidError("a context candidate stands there twice")
        seen.add(current.record_id)
        if current.state is not State.ACTIVE or not _is_visible(current, agent_id, run_id):
            raise StoredDataInvalidError(
                f"a context candidate of kind {current.kind} breaks the rule of visibility"
            )


def _is_visible(revision: Revision, agent_id: str, run_id: str) -> bool:
    approved = revision.trust is Trust.APPROVED
    own = revision.agent_id == agent_id
    match revision.kind:
        case Kind.DECISION:
            return approved
        case Kind.MEMORY if own:
            return approved or revision.trust is Trust.PENDING
        case Kind.MEMORY:
            return approved and is_cross_team(revision)
        case Kind.SESSION_CONTEXT:
            return approved and own and revision.source_run_id == run_id
        case _:
            return False


def is_cross_team(revision: Revision) -> bool:
    """Tell whether a memory is meant for the other agents, too."""
    return any(tag.casefold() == CROSS_TEAM_TAG for tag in revision.content.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What the caller lets in, at a time."""

    now: datetime
    include_pending: bool
    lowest_tier: int
    namespaces: frozenset[str]
    highest_sensitivity: int

    @classmethod
    def of(cls, request: CompileContext, now: datetime) -> "Screen":
        """Return the screen of a request whose fields were checked."""
        return cls(
            now=now,
            include_pending=request.include_pending is not False,
            lowest_tier=_TIERS.index(_known(request.min_origin_tier) or OriginTier.EXTERNAL),
            namespaces=frozenset(request.namespaces),
            highest_sensitivity=_SENSITIVITIES.index(
                _known(request.sensitivity_ceiling) or Sensitivity.RESTRICTED
            ),
        )

    def passes(self, revision: Revision) -> bool:
        """Tell whether a candidate may enter.

        Expiry and the ceiling hold for every kind; on_demand for all but decisions, which bind; the
        rest for memories.
        """
        facet = revision.facet or _NO_FACET
        if self._is_over(facet) or _sensitivity(facet) > self.highest_sensitivity:
            return False
        if revision.kind is Kind.DECISION:
            return True
        if facet.delivery_policy is DeliveryPolicy.ON_DEMAND:
            return False
        return revision.kind is not Kind.MEMORY or self._passes_memory(revision, facet)

    def _is_over(self, facet: MemoryFacet) -> bool:
        """Tell whether a record has expired, at this very moment included, or left use."""
        return any(
            end is not None and end <= self.now
            for end in (facet.expire_time, facet.invalidate_time)
        )

    def _passes_memory(self, revision: Revision, facet: MemoryFacet) -> bool:
        if not self.include_pending and revision.trust is not Trust.APPROVED:
            return False
        if _TIERS.index(facet.origin_tier or OriginTier.EXTERNAL) < self.lowest_tier:
            return False
        return not self.namespaces or (facet.namespace or "") in self.namespaces


def _known(word: Word | Unknown | None) -> Word | None:
    """Return an enum's value that was checked."""
    return None if isinstance(word, Unknown) else word


def _sensitivity(facet: MemoryFacet) -> int:
    return _SENSITIVITIES.index(facet.sensitivity or Sensitivity.INTERNAL)

"""Compiles a context: candidates are screened, ordered, filled in within limits, and rendered."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from broker.context.limits import CANDIDATE_BYTES_MAX, ContextLimits
from broker.context.render import RENDER_VERSION, Draft, length_at_least
from broker.context.scoring import Query, Ranked, ranked, youth
from broker.context.screening import Screen, check_candidates
from broker.domain.context import (
    LISTED_MAX,
    CompileContext,
    Compiled,
    ContextBudget,
    ContextItem,
    ContextKind,
    IgnoredDecision,
    OmissionCause,
    OmittedItem,
)
from broker.domain.context_errors import ContextBudgetOverflowError, ContextCandidateOverflowError
from providers.model import Kind, Record, Revision

DECISION_TYPES: Final = frozenset({"architectural", "scope"})
"""Types, letter for letter, of the decisions that a context takes (004-92, 004-L2)."""

HEAVY_CHARACTERS: Final = 256 * 1024
"""Code points of candidates above which compiling takes too long for an event loop."""


_RECORD_WORTH: Final = 32
_TAG_WORTH: Final = 64
"""What a record and a tag cost by themselves, in code points of content: see deploy/adr/0026."""


def is_heavy(records: Iterable[Record]) -> bool:
    """Tell, cheaply, whether candidates are to be compiled off the event loop."""
    size = 0
    for record in records:
        content = record.current.content
        size += len(content.content) + len(content.title or "") + len(content.rationale or "")
        size += _RECORD_WORTH + _TAG_WORTH * len(content.tags)
    return size > HEAVY_CHARACTERS


def compile_context(
    request: CompileContext,
    records: tuple[Record, ...],
    *,
    truncated: bool = False,
    limits: ContextLimits,
    now: datetime,
) -> Compiled:
    """Compile the context of the request's agent and run.

    Equal input gives equal text, whatever the order of the candidates.

    Args:
        request: Its fields were checked.
        records: The candidates: one more than allowed where there are too many.
        truncated: Whether there was more content than a provider gives.
        limits: Those of this request: see ``narrowed``.
        now: What expiry is judged by.

    Raises:
        ContextCandidateOverflowError: too many candidates, or too much of them (004-90). Not
            retryable.
        ContextBudgetOverflowError: the frame and the decisions exceed the budget (004-92). Not
            retryable.
        StoredDataInvalidError: a candidate may be none (004-99). Not retryable.
        FrameBrokenError: a bug.
    """
    _check_number(records, truncated=truncated, limits=limits)
    agent_id = request.scope.agent_id
    check_candidates(records, agent_id=agent_id, run_id=request.scope.run_id)
    screen = Screen.of(request, now)
    screened = _screened(record for record in records if screen.passes(record.current))
    choice = _Choice(screened.ignored)
    if screened.is_empty:
        return choice.compiled(None, limits)

    least = sum(map(length_at_least, screened.decisions))
    if least > limits.characters:  # before anything is escaped: that is what costs
        raise ContextBudgetOverflowError(limit=limits.characters, observed=least)
    draft = Draft(agent_id, screened.decisions)
    if draft.characters > limits.characters:
        raise ContextBudgetOverflowError(limit=limits.characters, observed=draft.characters)
    for decision in screened.decisions:
        choice.take(ContextKind.DECISION, decision)
    query = Query.of(request.query)
    memories = [ranked(record, query, agent_id) for record in screened.memories]
    memories.sort(key=attrgetter("rank"))
    _fill(draft, choice, memories, limits, skip_oversized=request.skip_oversized)
    if screened.session is not None:
        _add_session(draft, choice, screened.session, limits)
    return choice.compiled(draft.text(), limits)


def _check_number(records: tuple[Record, ...], *, truncated: bool, limits: ContextLimits) -> None:
    if len(records) > limits.candidates:
        raise ContextCandidateOverflowError(
            "candidates", limit=limits.candidates, observed=len(records)
        )
    if truncated:
        seen = sum(len(record.current.content.content.encode()) for record in records)
        raise ContextCandidateOverflowError(
            "bytes", limit=CANDIDATE_BYTES_MAX, observed=max(seen, CANDIDATE_BYTES_MAX + 1)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Screened:
    """The candidates that may enter; decisions and those ignored in order, memories in none."""

    decisions: list[Revision]
    ignored: list[Revision]
    memories: list[Record]
    session: Revision | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing can enter and nothing can be left out."""
        return not self.decisions and not self.memories and self.session is None


def _screened(records: Iterable[Record]) -> _Screened:
    by_kind: dict[Kind, list[Record]] = {kind: [] for kind in Kind}
    for record in records:
        by_kind[record.current.kind].append(record)
    decisions = sorted(by_kind[Kind.DECISION], key=_age_then_id)
    session = min(by_kind[Kind.SESSION_CONTEXT], key=_youth_then_id, default=None)
    return _Screened(
        decisions=[each.current for each in decisions if _binds(each.current)],
        ignored=[each.current for each in decisions if not _binds(each.current)],
        memories=by_kind[Kind.MEMORY],
        session=None if session is None else session.current,
    )


def _binds(decision: Revision) -> bool:
    return decision.content.type in DECISION_TYPES


def _age_then_id(record: Record) -> tuple[datetime, str]:
    return record.create_time, record.current.record_id


def _youth_then_id(record: Record) -> tuple[timedelta, timedelta, str]:
    """Sorts the record created last first; then the one changed last."""
    current = record.current
    return youth(record.create_time), youth(current.create_time), current.record_id


def _fill(
    draft: Draft,
    choice: "_Choice",
    memories: Iterable[Ranked],
    limits: ContextLimits,
    *,
    skip_oversized: bool,
) -> None:
    """Let memories in, the best first, until one limit is reached (004-96).

    Nothing that ranks lower can keep out what ranks higher.
    """
    entered = 0
    is_full = False
    for each in memories:
        revision = each.record.current
        if each.unfit:
            choice.leave(ContextKind.MEMORY, revision, OmissionCause.RELEVANCE)
        elif is_full:
            choice.leave(ContextKind.MEMORY, revision, OmissionCause.BUDGET)
        elif entered == limits.items:
            choice.leave(ContextKind.MEMORY, revision, OmissionCause.ITEM_LIMIT)
        elif draft.add_memory(revision, limit=limits.characters):
            choice.take(ContextKind.MEMORY, revision)
            entered += 1
        else:
            choice.leave(ContextKind.MEMORY, revision, OmissionCause.BUDGET)
            is_full = not skip_oversized


def _add_session(draft: Draft, choice: "_Choice", session: Revision, limits: ContextLimits) -> None:
    if draft.put_session(session, limit=limits.characters):
        choice.take(ContextKind.SESSION_CONTEXT, session)
    else:
        choice.leave(ContextKind.SESSION_CONTEXT, session, OmissionCause.BUDGET)


class _Choice:
    """What entered and what did not, while it is decided."""

    def __init__(self, ignored: list[Revision]) -> None:
        """Begin with the decisions that no context takes."""
        self._ignored = ignored
        self._items: list[ContextItem] = []
        self._omitted: list[OmittedItem] = []
        self._counts = dict.fromkeys(ContextKind, 0)
        self._causes: set[OmissionCause] = set()

    def take(self, kind: ContextKind, revision: Revision) -> None:
        """Note that a record entered."""
        self._items.append(
            ContextItem(
                kind=kind,
                record_id=revision.record_id,
                revision=revision.revision,
                revision_id=revision.revision_id,
            )
        )

    def leave(self, kind: ContextKind, revision: Revision, cause: OmissionCause) -> None:
        """Note that a record was left out; beyond 1,000 only counted."""
        self._counts[kind] += 1
        self._causes.add(cause)
        if len(self._omitted) < LISTED_MAX:
            self._omitted.append(
                OmittedItem(
                    kind=kind,
                    record_id=revision.record_id,
                    revision=revision.revision,
                    cause=cause,
                )
            )

    def compiled(self, text: str | None, limits: ContextLimits) -> Compiled:
        """Return the reply."""
        return Compiled(
            text=text,
            render_version=RENDER_VERSION,
            items=tuple(self._items),
            omitted=tuple(self._omitted),
            omitted_memory_count=self._counts[ContextKind.MEMORY],
            omitted_session_count=self._counts[ContextKind.SESSION_CONTEXT],
            ignored=tuple(
                IgnoredDecision(each.record_id, each.content.type)
                for each in self._ignored[:LISTED_MAX]
            ),
            ignored_decision_count=len(self._ignored),
            causes=tuple(cause for cause in OmissionCause if cause in self._causes),
            budget=ContextBudget(
                tokens=limits.tokens, items=limits.items, characters_used=len(text or "")
            ),
        )

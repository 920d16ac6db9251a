"""What a context is asked for and what one is: requests, results, and the field rules.

Requests hold what came from the wire, as all requests do: nothing is checked yet.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from broker.domain.errors import Violation
from broker.domain.facets import NAMESPACE_MAX
from broker.domain.fields import FILTER_MAX, Violations, check_text
from broker.domain.requests import UNKNOWN, ScopeInput, Unknown
from providers.model import OriginTier, Sensitivity

QUERY_MAX: Final = 2_000
NAMESPACES_MAX: Final = FILTER_MAX
LISTED_MAX: Final = 1_000
"""Omitted items, and ignored decisions, that one reply lists; the counts go on."""

CHARACTERS_PER_TOKEN: Final = 4
"""Code points that count as one token (004-93)."""


class OmissionCause(StrEnum):
    """Why something was left out, in the order in which causes are told (004-97)."""

    RELEVANCE = "relevance"
    ITEM_LIMIT = "item_limit"
    BUDGET = "budget"


class ContextKind(StrEnum):
    """What a record is in a context, in the order of the text."""

    DECISION = "decision"
    MEMORY = "memory"
    SESSION_CONTEXT = "session_context"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileContext:
    """Asks for a context.

    ``query``, the limits and ``include_pending`` are ``None`` where they are unset; an enum is
    where it is unspecified. ``namespaces``: an empty text stands for memories without one.
    """

    scope: ScopeInput
    query: str | None = None
    max_items: int | None = None
    max_tokens: int | None = None
    include_pending: bool | None = None
    min_origin_tier: OriginTier | Unknown | None = None
    namespaces: tuple[str, ...] = ()
    sensitivity_ceiling: Sensitivity | Unknown | None = None
    skip_oversized: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One record that entered, at the revision that entered (004-97, 004-100)."""

    kind: ContextKind
    record_id: str
    revision: int
    revision_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedItem:
    """One record that was left out, at the revision that was looked at."""

    kind: ContextKind
    record_id: str
    revision: int
    cause: OmissionCause


@dataclass(frozen=True, slots=True)
class IgnoredDecision:
    """One approved decision of a type that no context takes (004-L2)."""

    record_id: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBudget:
    """What a text was allowed and what it took.

    ``tokens`` counts tokens of 4 characters, ``items`` memories; ``characters_used`` counts code
    points of the whole text, 0 where there is none.
    """

    tokens: int
    items: int
    characters_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A context (004-97).

    ``text`` is ``None`` where nothing entered and nothing was left out; otherwise it was rendered
    in the form ``render_version``. ``omitted`` (in order of rank) and ``ignored`` hold at most
    1,000 each, the counts tell how many there are. ``causes`` holds each cause once.
    """

    text: str | None
    render_version: int
    budget: ContextBudget
    items: tuple[ContextItem, ...] = ()
    omitted: tuple[OmittedItem, ...] = ()
    omitted_memory_count: int = 0
    omitted_session_count: int = 0
    ignored: tuple[IgnoredDecision, ...] = ()
    ignored_decision_count: int = 0
    causes: tuple[OmissionCause, ...] = ()


def check_compile(violations: Violations, request: CompileContext) -> None:
    """Check all fields but the scope and the limits, which are judged against those that hold."""
    if request.query is not None:
        check_text(violations, "query", request.query, QUERY_MAX)
    for name in ("min_origin_tier", "sensitivity_ceiling"):
        if getattr(request, name) is UNKNOWN:
            violations.append(Violation(name, "must be a known value"))
    if len(request.namespaces) > NAMESPACES_MAX:
        violations.append(Violation("namespaces", f"must be at most {NAMESPACES_MAX}"))
        return
    for index, namespace in enumerate(request.namespaces):
        check_text(violations, f"namespaces[{index}]", namespace, NAMESPACE_MAX, controls=False)

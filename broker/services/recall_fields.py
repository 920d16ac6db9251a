"""The fields of requests to recall: checked, and told to a provider."""

import string
from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeVar

from broker.domain.errors import Violation
from broker.domain.facets import EPOCH_MAX, NAMESPACE_MAX, SUBJECT_MAX
from broker.domain.fields import (
    FILTER_MAX,
    TAG_MAX,
    Violations,
    check_text,
    check_unit,
    normal_tags,
)
from broker.domain.memories import FilterInput, Recall, RecallByTags
from broker.domain.paging import checked_view
from broker.domain.requests import UNKNOWN, Unknown
from broker.retrieval.spelling import plain
from providers.model import OriginTier, ProjectKey, Sensitivity
from providers.recall import Eligible, Superseded

QUERY_MAX: Final = 2_000
PATTERNS_MAX: Final = 8
LIMIT_DEFAULT: Final = 5
LIMIT_MAX: Final = 50
TAGGED_DEFAULT: Final = 10
TAGGED_MAX: Final = 100

_UNSEEN: Final = f"{string.whitespace}\u200b"

Word = TypeVar("Word")


def check_recall(violations: Violations, request: Recall) -> bool:
    """Check every field; return whether whole records are asked for."""
    if not plain(request.query).strip(_UNSEEN):
        violations.append(Violation("query", f"must be 1-{QUERY_MAX} code points, not blank"))
    check_text(violations, "query", request.query, QUERY_MAX)
    _check_limit(violations, request.limit, LIMIT_MAX)
    for name in ("mode", "as_of"):
        if getattr(request, name) is UNKNOWN:
            violations.append(Violation(name, "must be a known value"))
    _check_filter(violations, request.filter)
    return checked_view(violations, request.full)


def check_by_tags(violations: Violations, request: RecallByTags) -> bool:
    """Check every field; return whether whole records are asked for."""
    _check_limit(violations, request.limit, TAGGED_MAX)
    if not request.filter.tags_all and not request.filter.tags_any_glob:
        rule = "must name a tag, here or in filter.tags_any_glob"
        violations.append(Violation("filter.tags_all", rule))
    _check_filter(violations, request.filter)
    return checked_view(violations, request.full)


def _check_limit(violations: Violations, limit: int, most: int) -> None:
    if not 0 <= limit <= most:
        violations.append(Violation("limit", f"must be 0-{most}"))


def _check_filter(violations: Violations, given: FilterInput) -> None:
    for name, longest in (
        ("namespaces", NAMESPACE_MAX),
        ("tags_all", TAG_MAX),
        ("tags_any_glob", TAG_MAX),
    ):
        _check_list(violations, f"filter.{name}", getattr(given, name), longest)
    if len(given.tags_any_glob) > PATTERNS_MAX:
        violations.append(Violation("filter.tags_any_glob", f"must be at most {PATTERNS_MAX}"))
    if len(given.memory_kinds) > FILTER_MAX:
        violations.append(Violation("filter.memory_kinds", f"must be at most {FILTER_MAX}"))
    for index, kind in enumerate(given.memory_kinds[:FILTER_MAX]):
        if kind is None or isinstance(kind, Unknown):
            violations.append(Violation(f"filter.memory_kinds[{index}]", "must be a known value"))
    check_text(violations, "filter.subject", given.subject, SUBJECT_MAX, controls=False)
    check_text(violations, "filter.epoch", given.epoch, EPOCH_MAX, controls=False)
    if given.importance_min is not None:
        check_unit(violations, "filter.importance_min", given.importance_min)
    for name in ("sensitivity_ceiling", "min_origin_tier"):
        if getattr(given, name) is UNKNOWN:
            violations.append(Violation(f"filter.{name}", "must be a known value"))


def _check_list(violations: Violations, field: str, values: tuple[str, ...], longest: int) -> None:
    if len(values) > FILTER_MAX:
        violations.append(Violation(field, f"must be at most {FILTER_MAX}"))
    blank_allowed = field.endswith("namespaces")
    for index, value in enumerate(values[:FILTER_MAX]):
        if not blank_allowed and not value.strip():
            violations.append(Violation(f"{field}[{index}]", f"must be 1-{longest} code points"))
        check_text(violations, f"{field}[{index}]", value.strip(), longest, controls=False)


def eligible(
    given: FilterInput,
    *,
    project: ProjectKey,
    agent_id: str,
    at: datetime,
    superseded: Superseded = Superseded.NONE,
) -> Eligible:
    """Return which memories a provider may give back; the filter was checked."""
    return Eligible(
        project=project,
        agent_id=agent_id,
        at=at,
        superseded=superseded,
        namespaces=frozenset(given.namespaces),
        memory_kinds=frozenset(_known(given.memory_kinds)),
        subject=given.subject or None,
        epoch=given.epoch or None,
        tags=normal_tags(given.tags_all),
        patterns=tuple(dict.fromkeys(each.strip() for each in given.tags_any_glob)),
        importance_min=given.importance_min or 0.0,
        ceiling=_one(given.sensitivity_ceiling) or Sensitivity.RESTRICTED,
        lowest_tier=_one(given.min_origin_tier) or OriginTier.EXTERNAL,
    )


def superseded_asked(request: Recall) -> Superseded:
    """Return which superseded memories a request asks for."""
    if request.include_superseded:
        return Superseded.ALL
    return Superseded.NONE if request.as_of is None else Superseded.VALID


def _known(words: Iterable[Word | Unknown | None]) -> Iterable[Word]:
    return (word for word in words if word is not None and not isinstance(word, Unknown))


def _one(word: Word | Unknown | None) -> Word | None:
    return None if isinstance(word, Unknown) else word

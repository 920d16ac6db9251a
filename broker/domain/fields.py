"""The field rules of the API: limits, characters, normal forms (004-48, 004-50).

Checks gather violations in a list so that one answer names every bad field. A violation names the
field and the rule with its limit, never the value. Lengths are code points.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from broker.domain.errors import FieldInvalidError, Violation
from broker.domain.requests import ContentInput, ScopeInput
from providers.making import new_content
from providers.model import Content

IDENTIFIER_MAX: Final = 256
IDEMPOTENCY_KEY_MAX: Final = 128
TYPE_MAX: Final = 64
TITLE_MAX: Final = 512
CONTENT_MAX: Final = 40_000
RATIONALE_MAX: Final = 8_000
REASON_MAX: Final = 1_024
TAGS_MAX: Final = 32
TAGS_GIVEN_MAX: Final = 1_024
"""With repetitions. Looking at each of a million tags would hold up every other call."""
TAG_MAX: Final = 64
IMPORTANCE_DEFAULT: Final = 0.5
BATCH_MAX: Final = 25
"""Records that one request may ask for by id."""
FILTER_MAX: Final = 32
"""Values that one filter of a search may list."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9._:-]+\Z")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")

Violations = list[Violation]


def refuse_if_any(violations: Violations) -> None:
    """Raise FieldInvalidError (not retryable) when there are violations."""
    if violations:
        raise FieldInvalidError(tuple(violations))


def is_identifier(value: str, limit: int = IDENTIFIER_MAX) -> bool:
    """Tell whether a value is 1 to ``limit`` ASCII letters, digits and ``. _ : -``."""
    return len(value) <= limit and _IDENTIFIER.match(value) is not None


def check_identifier(
    violations: Violations, field: str, value: str, limit: int = IDENTIFIER_MAX
) -> None:
    """Check one identifier."""
    if not is_identifier(value, limit):
        violations.append(Violation(field, f"must be 1-{limit} ASCII letters, digits, . _ : -"))


def check_scope(scope: ScopeInput) -> None:
    """Check all three parts of a scope: they go to the owner, so this comes before it is asked.

    Raises:
        FieldInvalidError: not retryable.
    """
    violations: Violations = []
    check_identifier(violations, "scope.project_id", scope.project_id)
    check_identifier(violations, "scope.run_id", scope.run_id)
    check_identifier(violations, "scope.agent_id", scope.agent_id)
    refuse_if_any(violations)


def check_text(
    violations: Violations, field: str, value: str, limit: int, *, controls: bool = True
) -> None:
    """Check length and characters of a text.

    ``controls`` allows control characters other than NUL.
    """
    if len(value) > limit:
        violations.append(Violation(field, f"must be at most {limit} code points"))
    elif not is_storable(value):
        violations.append(Violation(field, "must not hold NUL or lone surrogates"))
    elif not controls and has_control(value):
        violations.append(Violation(field, "must not hold control characters"))


def is_storable(value: str) -> bool:
    """Tell whether a text holds neither NUL nor a lone surrogate."""
    return _UNSTORABLE.search(value) is None


def has_control(value: str) -> bool:
    """Tell whether a text holds a control character."""
    return not value.isprintable() and any(unicodedata.category(c) == "Cc" for c in value)


def check_unit(violations: Violations, field: str, value: float) -> None:
    """Check a number between 0 and 1, both included. NaN is refused."""
    if not 0.0 <= value <= 1.0:
        violations.append(Violation(field, "must be a number from 0.0 to 1.0"))


def check_positive(violations: Violations, field: str, value: int) -> None:
    """Check a number that must be given and be above 0."""
    if value <= 0:
        violations.append(Violation(field, "must be greater than 0"))


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Trim, sort and de-duplicate tags without regard to case.

    Of spellings that differ in case the first by code point stays, so the result does not depend on
    the order.
    """
    by_fold: dict[str, str] = {}
    for tag in sorted(tag.strip() for tag in tags):
        by_fold.setdefault(tag.casefold(), tag)
    return tuple(by_fold[fold] for fold in sorted(by_fold))


def checked_content(
    violations: Violations, given: ContentInput, *, importance_default: float | None
) -> Content:
    """Check and normalise the content set.

    The result counts only if nothing was added to ``violations``.
    """
    content = new_content(
        type=given.type.strip(),
        title=given.title or None,
        content=given.content,
        rationale=given.rationale or None,
        importance=_importance(violations, given.importance, importance_default),
        tags=normal_tags(given.tags),
    )
    if not content.type:
        violations.append(Violation("type", f"must be 1-{TYPE_MAX} code points"))
    check_text(violations, "type", content.type, TYPE_MAX, controls=False)
    check_text(violations, "title", given.title, TITLE_MAX)
    if not given.content.strip():
        violations.append(Violation("content", f"must be 1-{CONTENT_MAX} code points, not blank"))
    check_text(violations, "content", given.content, CONTENT_MAX)
    check_text(violations, "rationale", given.rationale, RATIONALE_MAX)
    _check_tags(violations, given.tags, content.tags)
    return content


def _importance(violations: Violations, value: float | None, default: float | None) -> float:
    if value is None:
        if default is None:
            violations.append(Violation("importance", "must be given: 0.0 to 1.0"))
        return default or 0.0
    check_unit(violations, "importance", value)
    return value + 0.0  # -0.0 becomes 0.0: equal requests have equal fingerprints


def _check_tags(violations: Violations, given: tuple[str, ...], normal: tuple[str, ...]) -> None:
    if len(normal) > TAGS_MAX:
        violations.append(Violation("tags", f"must be at most {TAGS_MAX}"))
        return
    if len(given) > TAGS_GIVEN_MAX:
        rule = f"must be at most {TAGS_GIVEN_MAX} with repetitions"
        violations.append(Violation("tags", rule))
        return
    for index, tag in enumerate(given):
        if not tag.strip():
            violations.append(Violation(f"tags[{index}]", f"must be 1-{TAG_MAX} code points"))
        else:
            check_text(violations, f"tags[{index}]", tag.strip(), TAG_MAX, controls=False)

"""The fields of memories that are to be remembered: checked, and given what was not stated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from broker.domain.errors import ContentRefusedError, Violation
from broker.domain.facets import check_facet, new_facet
from broker.domain.fields import (
    IDEMPOTENCY_KEY_MAX,
    IMPORTANCE_DEFAULT,
    Violations,
    check_identifier,
    check_unit,
    checked_content,
    refuse_if_any,
)
from broker.domain.memories import MEMORIES_MAX, DedupInput, MemoryInput, Remember
from broker.domain.requests import FacetInput, Unknown
from broker.memory.admission import judged, steers
from broker.memory.beliefs import belief_faults, believed
from broker.memory.keys import belief_key, content_key
from broker.memory.stamps import stamped
from providers.model import Content, MemoryFacet, SourceType
from providers.rules import TOGETHER_BYTES_MAX

TYPE_DEFAULT: Final = "note"
EXPIRE_DAYS_MAX: Final = 3_650
ALONE_MAX: Final = 2
"""So many memories may be of any size together."""
_THRESHOLD_SOURCES: Final = frozenset({SourceType.OPERATOR, SourceType.MANUAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One memory whose fields are as they must be.

    ``said`` is the content as it came, ``content`` what is kept of it. ``facet`` lacks nothing but
    the time of expiry where ``expire_days`` gives it.
    """

    given: MemoryInput
    said: Content
    content: Content
    facet: MemoryFacet

    def keys(self, agent_id: str) -> tuple[str, ...]:
        """Return the keys at which it meets memories that say the same, or are about the same."""
        space, subject = self.facet.namespace, self.facet.subject
        key = content_key(agent_id, space, self.content.content)
        if subject is None or self.facet.belief_type is None:
            return (key,)
        return key, belief_key(agent_id, space, subject, self.facet.belief_type)

    def facet_at(self, now: datetime) -> MemoryFacet:
        """Return the facet as it is written at a time."""
        days = self.given.expire_days
        return replace(self.facet, expire_time=now + timedelta(days=days)) if days else self.facet


def checked_memories(request: Remember) -> tuple[Checked, ...]:
    """Check every field of a request to remember.

    Raises:
        FieldInvalidError, ContentRefusedError: not retryable.
    """
    violations: Violations = []
    check_identifier(violations, "idempotency_key", request.idempotency_key, IDEMPOTENCY_KEY_MAX)
    if not 1 <= len(request.memories) <= MEMORIES_MAX:
        violations.append(Violation("memories", f"must be 1-{MEMORIES_MAX} memories"))
    _check_dedup(violations, request)
    contents = [
        _checked(violations, path_of(request, place), memory)
        for place, memory in enumerate(request.memories[:MEMORIES_MAX])
    ]
    if len(contents) > ALONE_MAX and sum(map(_size, contents)) > TOGETHER_BYTES_MAX:
        rule = f"must be together at most {TOGETHER_BYTES_MAX} bytes in UTF-8"
        violations.append(Violation("memories", rule))
    refuse_if_any(violations)
    refused: Violations = []
    checked = tuple(
        _completed(refused, path_of(request, place), memory, contents[place])
        for place, memory in enumerate(request.memories)
    )
    if refused:
        raise ContentRefusedError(tuple(refused))
    return checked


def request_fields(request: Remember, checked: tuple[Checked, ...]) -> Mapping[str, object]:
    """Return what a request's fingerprint is made of, beside its scope."""
    fields: dict[str, object] = {"dedup": request.dedup}
    for place, each in enumerate(checked):
        fields[f"content.{place}"] = each.said
        fields[f"facet.{place}"] = each.given.facet
        fields[f"expire_days.{place}"] = each.given.expire_days or None
    return fields


def path_of(request: Remember, place: int) -> str:
    """Return where one memory stands in a request."""
    return f"memories[{place}]" if request.batch else "memory"


def _size(content: Content) -> int:
    return len(content.content.encode(errors="replace"))


def _check_dedup(violations: Violations, request: Remember) -> None:
    dedup: DedupInput = request.dedup
    if isinstance(dedup.mode, Unknown):
        violations.append(Violation("dedup.mode", "must be a known value"))
    if dedup.duplicate_threshold is None:
        return
    check_unit(violations, "dedup.duplicate_threshold", dedup.duplicate_threshold)
    sources = {None if each.facet is None else each.facet.source_type for each in request.memories}
    if not sources <= _THRESHOLD_SOURCES:
        rule = "is only for the source types OPERATOR and MANUAL"
        violations.append(Violation("dedup.duplicate_threshold", rule))


def _checked(violations: Violations, path: str, memory: MemoryInput) -> Content:
    own: Violations = []
    given = memory.content
    if not given.type.strip():
        given = replace(given, type=TYPE_DEFAULT)
    content = checked_content(own, given, importance_default=IMPORTANCE_DEFAULT)
    facet = memory.facet or FacetInput()
    check_facet(own, facet)
    own.extend(belief_faults(content, facet))
    _check_expiry(own, memory, facet)
    violations.extend(Violation(f"{path}.{each.field}", each.rule) for each in own)
    return content


def _check_expiry(violations: Violations, memory: MemoryInput, facet: FacetInput) -> None:
    days = memory.expire_days
    if not 0 <= days <= EXPIRE_DAYS_MAX:
        violations.append(Violation("expire_days", f"must be 0-{EXPIRE_DAYS_MAX}"))
    if days and facet.expire_time is not None:
        violations.append(Violation("expire_days", "must not be set beside facet.expire_time"))


def _completed(refused: Violations, path: str, memory: MemoryInput, content: Content) -> Checked:
    """Let the text in, and state what follows where nothing was stated (000-03, 000-04)."""
    facet = new_facet(memory.facet or FacetInput())
    kept, own = judged(content, facet)
    refused.extend(Violation(f"{path}.{each.field}", each.rule) for each in own)
    facet = believed(stamped(kept.type, facet))
    facet = replace(facet, flagged=steers(kept, facet))
    return Checked(given=memory, said=content, content=kept, facet=facet)

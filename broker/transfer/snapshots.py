"""The checks of one revision of a bundle, by itself (004-48, 004-86)."""

import math
import re
from dataclasses import fields
from typing import Any, Final

from broker.domain.errors import Violation
from broker.domain.facets import check_facet
from broker.domain.fields import (
    REASON_MAX,
    Violations,
    check_identifier,
    check_text,
    checked_content,
    is_identifier,
)
from broker.domain.requests import UNKNOWN, Unknown
from broker.transfer.faults import Faults
from broker.transfer.given import GivenFacet, GivenHead, GivenRevision, GivenSnapshot
from providers.model import Content, Kind, MemoryFacet, Revision, State

KINDS: Final = frozenset({Kind.MEMORY, Kind.DECISION})
STATES: Final = frozenset({State.ACTIVE, State.ARCHIVED, State.SUPERSEDED})
INVALIDATION_REASON_MAX: Final = 256
COUNT_MAX: Final = 2**31 - 1
_FINGERPRINT: Final = re.compile("[0-9a-f]{64}")
_KNOWN: Final = "must be a known value"
_TIME: Final = "must be a time of the years 1 to 9999 in whole microseconds"
_OPTIONAL: Final = frozenset({"source_run_id", "source_session_id"})
_OF_REVISIONS: Final = frozenset({"create_time", "snippet", "content"})
_COMPARED: Final = tuple(
    field.name for field in fields(GivenSnapshot) if field.name not in _OF_REVISIONS
)
_CONTENT: Final = tuple(field.name for field in fields(Content))


def checked_revision(faults: Faults, given: GivenRevision) -> Revision | None:
    """Check everything that one revision says by itself; ``None`` where that is no revision."""
    found: Violations = []
    content = _checked_content(found, given)
    facet = None if given.facet is None else _checked_facet(found, given.facet)
    _check_words(found, given)
    _check_names(found, given)
    faults.take(found)
    _check_link(faults, given)
    faults.require(given.snippet == "", "snippet", "must not be set: a bundle holds all of a text")
    if found or faults:
        return None
    return _revision(given, content, facet)


def _revision(given: GivenRevision, content: Content, facet: MemoryFacet | None) -> Revision:
    said: dict[str, Any] = {
        field.name: getattr(given, field.name) or None
        for field in fields(Revision)
        if field.name not in {"content", "facet"}
    }
    return Revision(**said, content=content, facet=facet)


def _checked_content(found: Violations, given: GivenRevision) -> Content:
    """Check the content set, and that it is in its normal form: it is stored as it stands."""
    content = checked_content(found, given.content, importance_default=None)
    if content.type != given.content.type:
        found.append(Violation("type", "must be trimmed"))
    if given.content.importance == 0.0 and math.copysign(1.0, given.content.importance) < 0.0:
        found.append(Violation("importance", "must not be a negative zero"))
    if content.tags != given.content.tags:
        found.append(Violation("tags", "must be trimmed, sorted and each once, whatever the case"))
    return content


def _checked_facet(found: Violations, given: GivenFacet) -> MemoryFacet:
    """Check a whole facet; what only a broker sets is taken as it is, within bounds."""
    check_facet(found, given)
    if not given.metadata_exact:
        rule = "must hold no negative zero, no null but that of number 0, no value without a kind"
        found.append(Violation("facet.metadata", rule))
    for name in ("origin_tier", "last_reinforce_time", "invalidate_time"):
        if getattr(given, name) is UNKNOWN:
            found.append(Violation(f"facet.{name}", _KNOWN if name == "origin_tier" else _TIME))
    if not 0 <= given.corroboration <= COUNT_MAX:
        found.append(Violation("facet.corroboration", "must not be negative"))
    check_text(
        found,
        "facet.invalidation_reason",
        given.invalidation_reason,
        INVALIDATION_REASON_MAX,
        controls=False,
    )
    said: dict[str, Any] = {each.name: getattr(given, each.name) for each in fields(MemoryFacet)}
    meant: dict[str, Any] = {name: None if said[name] == "" else said[name] for name in said}
    return MemoryFacet(**meant)


def _check_words(found: Violations, given: GivenRevision) -> None:
    if given.kind not in KINDS:
        found.append(Violation("kind", "must be MEMORY or DECISION"))
    if given.state not in STATES:
        found.append(Violation("state", "must be ACTIVE, ARCHIVED or SUPERSEDED"))
    if given.trust is None or given.trust is UNKNOWN:
        found.append(Violation("trust", _KNOWN))
    if given.change_kind is UNKNOWN:
        found.append(Violation("change_kind", _KNOWN))
    if given.create_time is None or isinstance(given.create_time, Unknown):
        found.append(Violation("create_time", _TIME))


def _check_names(found: Violations, given: GivenRevision) -> None:
    check_identifier(found, "record_id", given.record_id)
    check_identifier(found, "revision_id", given.revision_id)
    for name in ("source_run_id", "source_session_id"):
        if getattr(given, name):
            check_identifier(found, name, getattr(given, name))
    if given.actor_fingerprint and not _FINGERPRINT.fullmatch(given.actor_fingerprint):
        found.append(Violation("actor_fingerprint", "must be 64 lower-case hexadecimal digits"))
    check_text(found, "reason", given.reason, REASON_MAX, controls=False)
    if given.promoted_decision_id:
        found.append(Violation("promoted_decision_id", "must not be set: no proposals are moved"))


def _check_link(faults: Faults, given: GivenRevision) -> None:
    """A link stands exactly on superseded decisions, and leads to another record (004-57)."""
    link, field = given.superseded_by_record_id, "superseded_by_record_id"
    if given.state is State.SUPERSEDED and given.kind is not Kind.DECISION:
        faults.add("state", "must not be SUPERSEDED: that is for decisions")
    elif given.state is State.SUPERSEDED and not link:
        faults.add(field, "must be set: the state is SUPERSEDED")
    elif link and given.state is not State.SUPERSEDED:
        faults.add(field, "must not be set: the state is not SUPERSEDED")
    elif link and link == given.record_id:
        faults.add(field, "must not be the record itself")
    elif link and not is_identifier(link):
        faults.add(field, "must be a record's id")


def check_head(faults: Faults, head: GivenHead, revisions: tuple[GivenRevision, ...]) -> None:
    """Require a head to say what its newest revision says, field by field (004-86).

    That revision may leave out where it came from: old histories do not know it.
    """
    first, last = revisions[0], revisions[-1]
    rule = "must be equal to the last revision's"
    for name in _COMPARED:
        said, wanted = getattr(head, name), getattr(last, name)
        faults.require(said == wanted or (name in _OPTIONAL and not wanted), name, rule)
    for name in _CONTENT:
        faults.require(getattr(head.content, name) == getattr(last.content, name), name, rule)
    faults.require(
        head.create_time == first.create_time, "create_time", "must be the first revision's"
    )
    faults.require(
        head.update_time == last.create_time, "update_time", "must be the last revision's"
    )
    faults.require(head.snippet == "", "snippet", "must not be set: a bundle holds all of a text")

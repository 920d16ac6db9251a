"""The rules of a memory facet: limits, origin tier, and how an update changes one.

What its fields do comes from the use cases that read them; here they are checked and kept.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

import orjson

from broker.domain.authority import Authorized
from broker.domain.errors import SourceNotAllowedError, Violation
from broker.domain.fields import Violations, check_text, check_unit, is_storable
from broker.domain.requests import TOO_LARGE, UNKNOWN, FacetInput, TooLarge
from providers.model import MemoryFacet, OriginTier, Sensitivity, SourceType

NAMESPACE_MAX: Final = 256
SUBJECT_MAX: Final = 512
SOURCE_MAX: Final = 256
EPOCH_MAX: Final = 256
METADATA_KEYS_MAX: Final = 64
METADATA_BYTES_MAX: Final = 8_192
METADATA_DEPTH_MAX: Final = 16
"""Objects and lists inside each other. Far below what readers of messages take: a reply nests its
metadata deeper than the request that brought it."""

MASK_PATHS_MAX: Final = 64
"""With repetitions."""

_METADATA_TOO_LARGE: Final = Violation(
    "facet.metadata", f"must be at most {METADATA_BYTES_MAX} bytes as JSON"
)

INPUT_FIELDS: Final = tuple(field.name for field in fields(FacetInput))
"""The fields a caller may give, which are those a facet mask may name."""

OPERATOR_SOURCES: Final = frozenset({SourceType.OPERATOR, SourceType.MANUAL})
_AGENT_SOURCES: Final = frozenset(
    {
        SourceType.AGENT,
        SourceType.EXTRACTED,
        SourceType.HARVEST,
        SourceType.CONVERSATION,
        SourceType.CHAT,
        SourceType.BACKGROUND_REPORT,
        SourceType.ORCHESTRATION,
    }
)
_SENSITIVITY_ORDER: Final = tuple(Sensitivity)
_TIER_ORDER: Final = (OriginTier.EXTERNAL, OriginTier.AGENT, OriginTier.OPERATOR)


def tier_of(source_type: SourceType | None) -> OriginTier:
    """Return the tier of a source type; not stated counts as external (000-08)."""
    if source_type in OPERATOR_SOURCES:
        return OriginTier.OPERATOR
    return OriginTier.AGENT if source_type in _AGENT_SOURCES else OriginTier.EXTERNAL


def claims_operator(given: FacetInput | None) -> bool:
    """Tell whether a request claims a source type that needs an unbound token and WriteProjects."""
    return given is not None and given.source_type in OPERATOR_SOURCES


def named_fields(given: FacetInput | None, mask: tuple[str, ...] | None) -> FacetInput | None:
    """Return the fields of a facet that the mask of an update names; the others are ignored."""
    if given is None or not mask:
        return given
    return FacetInput(**{name: getattr(given, name) for name in INPUT_FIELDS if name in mask})


def may_speak_for_operators(authorized: Authorized) -> bool:
    """Tell whether a caller may claim an operator's source: WriteProjects, bound to nothing."""
    return authorized.grants_write and not authorized.call.caller.bound


def require_operator(authorized: Authorized) -> None:
    """Refuse a claim of an operator's source by somebody else.

    Raises:
        SourceNotAllowedError: not retryable.
    """
    if not may_speak_for_operators(authorized):
        raise SourceNotAllowedError(
            "facet.source_type OPERATOR and MANUAL need an unbound token and WriteProjects"
        )


def tier_cap(authorized: Authorized) -> OriginTier:
    """Return the highest tier that text of a caller may have."""
    return OriginTier.OPERATOR if may_speak_for_operators(authorized) else OriginTier.AGENT


def check_facet(violations: Violations, given: FacetInput) -> None:
    """Check every field a caller gave."""
    for name in INPUT_FIELDS:
        if getattr(given, name) is UNKNOWN:
            violations.append(Violation(f"facet.{name}", "must be a known value"))
    for name, limit in (
        ("namespace", NAMESPACE_MAX),
        ("subject", SUBJECT_MAX),
        ("source", SOURCE_MAX),
        ("epoch", EPOCH_MAX),
    ):
        check_text(violations, f"facet.{name}", getattr(given, name), limit, controls=False)
    if given.confidence is not None:
        check_unit(violations, "facet.confidence", given.confidence)
    if given.metadata is not None:
        _check_metadata(violations, given.metadata)


def _check_metadata(violations: Violations, metadata: Mapping[str, object] | TooLarge) -> None:
    if metadata is TOO_LARGE:
        violations.append(_METADATA_TOO_LARGE)
    elif len(metadata) > METADATA_KEYS_MAX:
        violations.append(
            Violation("facet.metadata", f"must be at most {METADATA_KEYS_MAX} keys at the top")
        )
    elif _depth(metadata) > METADATA_DEPTH_MAX:
        violations.append(
            Violation("facet.metadata", f"must be nested at most {METADATA_DEPTH_MAX} deep")
        )
    elif not _is_json(metadata):
        violations.append(
            Violation("facet.metadata", "must hold finite numbers and no NUL or lone surrogates")
        )
    elif len(orjson.dumps(metadata)) > METADATA_BYTES_MAX:
        violations.append(_METADATA_TOO_LARGE)


def _depth(value: object) -> int:
    """Return how many objects and lists lie inside each other. The wire bounds the recursion."""
    match value:
        case Mapping():
            return 1 + max(map(_depth, value.values()), default=0)
        case list():
            return 1 + max(map(_depth, value), default=0)
        case _:
            return 0


def _is_json(value: object) -> bool:
    """Tell whether a value can be stored. Its depth was checked."""
    match value:
        case str():
            return is_storable(value)
        case float():
            return math.isfinite(value)
        case Mapping():
            return all(_is_json(key) and _is_json(item) for key, item in value.items())
        case list():
            return all(_is_json(item) for item in value)
        case _:
            return True


def check_mask(
    violations: Violations, given: FacetInput | None, mask: tuple[str, ...] | None
) -> None:
    """Check that a facet comes with a mask and that the mask names fields a caller may give."""
    if given is not None and not mask:
        violations.append(Violation("facet_mask", "must name at least one field when facet is set"))
    if mask is not None and len(mask) > MASK_PATHS_MAX:
        violations.append(Violation("facet_mask", f"must name at most {MASK_PATHS_MAX} fields"))
        return
    for index, path in enumerate(mask or ()):
        if path not in INPUT_FIELDS:
            violations.append(
                Violation(f"facet_mask.paths[{index}]", "must name an input field of MemoryFacet")
            )


def new_facet(given: FacetInput | None) -> MemoryFacet | None:
    """Return the facet of a new record: what was given, and the tier that follows from it."""
    if given is None:
        return None
    facet = _given(given, INPUT_FIELDS, MemoryFacet())
    return replace(facet, origin_tier=tier_of(facet.source_type))


def changed_facet(
    current: MemoryFacet | None, given: FacetInput | None, mask: tuple[str, ...] | None
) -> MemoryFacet | None:
    """Return the facet after an update: masked fields replaced, the rest kept, no tier raised."""
    if not mask:
        return current
    base = current or MemoryFacet(origin_tier=OriginTier.EXTERNAL)
    changed = _given(given or FacetInput(), mask, base)
    if "source_type" not in mask:
        return changed
    return capped_tier(replace(changed, origin_tier=base.origin_tier), tier_of(changed.source_type))


def capped_tier(facet: MemoryFacet, cap: OriginTier) -> MemoryFacet:
    """Return the facet with its tier lowered to ``cap`` where it is above it."""
    held = facet.origin_tier or OriginTier.EXTERNAL
    return replace(facet, origin_tier=min(held, cap, key=_TIER_ORDER.index))


def at_least_as_sensitive(
    facet: MemoryFacet | None, as_facet: MemoryFacet | None
) -> MemoryFacet | None:
    """Return the facet with its sensitivity raised to another's where that is above it."""
    held, wanted = _sensitivity(facet), _sensitivity(as_facet)
    if _SENSITIVITY_ORDER.index(wanted) <= _SENSITIVITY_ORDER.index(held):
        return facet
    base = facet or MemoryFacet(origin_tier=OriginTier.EXTERNAL)
    return replace(base, sensitivity=wanted)


def _sensitivity(facet: MemoryFacet | None) -> Sensitivity:
    """Return how sensitive a record is; not stated counts as internal."""
    stated = None if facet is None else facet.sensitivity
    return stated or Sensitivity.INTERNAL


def _given(given: FacetInput, names: tuple[str, ...], base: MemoryFacet) -> MemoryFacet:
    changes: dict[str, Any] = {}
    for name in names:
        value = getattr(given, name)
        changes[name] = None if value == "" else value
    return replace(base, **changes)

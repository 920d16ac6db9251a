"""The rules of the memory facet."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from broker.domain.facets import (
    EPOCH_MAX,
    MASK_PATHS_MAX,
    METADATA_BYTES_MAX,
    METADATA_DEPTH_MAX,
    METADATA_KEYS_MAX,
    NAMESPACE_MAX,
    SOURCE_MAX,
    SUBJECT_MAX,
    changed_facet,
    check_facet,
    check_mask,
    claims_operator,
    named_fields,
    new_facet,
    tier_of,
)
from broker.domain.fields import Violations
from broker.domain.requests import TOO_LARGE, UNKNOWN, FacetInput
from providers.model import MemoryFacet, OriginTier, Sensitivity, SourceType

OPERATOR_TIER = {SourceType.OPERATOR, SourceType.MANUAL}
AGENT_TIER = {
    SourceType.AGENT,
    SourceType.EXTRACTED,
    SourceType.HARVEST,
    SourceType.CONVERSATION,
    SourceType.CHAT,
    SourceType.BACKGROUND_REPORT,
    SourceType.ORCHESTRATION,
}


def refused(given: FacetInput) -> list[str]:
    """Return the fields that are refused."""
    violations: Violations = []
    check_facet(violations, given)
    return [violation.field for violation in violations]


@pytest.mark.parametrize("source_type", [None, *SourceType])
def test_every_source_type_has_its_tier(source_type: SourceType | None) -> None:
    """000-08: fixed in code; not stated counts as external."""
    expected = OriginTier.EXTERNAL
    if source_type in OPERATOR_TIER:
        expected = OriginTier.OPERATOR
    elif source_type in AGENT_TIER:
        expected = OriginTier.AGENT
    assert tier_of(source_type) is expected
    assert claims_operator(FacetInput(source_type=source_type)) is (source_type in OPERATOR_TIER)


@pytest.mark.parametrize(
    ("field", "limit"),
    [
        ("namespace", NAMESPACE_MAX),
        ("subject", SUBJECT_MAX),
        ("source", SOURCE_MAX),
        ("epoch", EPOCH_MAX),
    ],
)
def test_text_limits(field: str, limit: int) -> None:
    """004-48: limit passes, limit+1 and control characters do not."""
    assert refused(FacetInput(**{field: "語" * limit})) == []  # type: ignore[arg-type]
    assert refused(FacetInput(**{field: "語" * (limit + 1)})) == [f"facet.{field}"]  # type: ignore[arg-type]
    assert refused(FacetInput(**{field: "a\nb"})) == [f"facet.{field}"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "field",
    [
        "memory_kind",
        "delivery_policy",
        "belief_type",
        "source_type",
        "sensitivity",
        "expire_time",
        "portability",
    ],
)
def test_unknown_values_of_the_wire_are_refused(field: str) -> None:
    """004-49 with our rule: unknown fields are ignored, unknown values are not."""
    assert refused(FacetInput(**{field: UNKNOWN})) == [f"facet.{field}"]  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_confidence_bounds(confidence: float) -> None:
    """004-48: 0.0 to 1.0."""
    assert refused(FacetInput(confidence=confidence)) == ["facet.confidence"]
    assert refused(FacetInput(confidence=0.0)) == []


def test_metadata_limits() -> None:
    """001-12: a plain object of at most 64 keys and 8 KiB."""
    keys = {f"k{number}": number for number in range(METADATA_KEYS_MAX)}
    assert refused(FacetInput(metadata=keys)) == []
    assert refused(FacetInput(metadata=keys | {"one": "more"})) == ["facet.metadata"]
    room = METADATA_BYTES_MAX - len('{"k":""}')
    assert refused(FacetInput(metadata={"k": "x" * room})) == []
    assert refused(FacetInput(metadata={"k": "x" * (room + 1)})) == ["facet.metadata"]


def test_metadata_that_was_not_taken_apart() -> None:
    """001-12: what the edge saw to be too large is told as the limit it passes."""
    violations: Violations = []
    check_facet(violations, FacetInput(metadata=TOO_LARGE))
    check_facet(violations, FacetInput(metadata={"k": "x" * METADATA_BYTES_MAX}))
    assert len(violations) == 2 and violations[0] == violations[1]


def nested(depth: int, kind: str) -> dict[str, object]:
    """Return metadata with this many objects, or lists in one object, inside each other."""
    value: object = 1
    for _ in range(depth - 1):
        value = {"k": value} if kind == "objects" else [value]
    return {"k": value}


@pytest.mark.parametrize("kind", ["objects", "lists"])
def test_metadata_depth(kind: str) -> None:
    """001-12: what could be written and never be read again by a caller is refused."""
    assert refused(FacetInput(metadata=nested(METADATA_DEPTH_MAX, kind))) == []
    assert refused(FacetInput(metadata=nested(METADATA_DEPTH_MAX + 1, kind))) == ["facet.metadata"]


@pytest.mark.parametrize(
    "bad", [{"k": float("nan")}, {"k": [{"deep": float("inf")}]}, {"k\x00": 1}, {"k": ["\ud800"]}]
)
def test_metadata_must_be_storable(bad: dict[str, object]) -> None:
    """001-12: finite numbers, no NUL, no lone surrogate, at any depth."""
    assert refused(FacetInput(metadata=bad)) == ["facet.metadata"]


def test_mask_rules() -> None:
    """A facet needs a mask; a mask names input fields only."""

    def fields(given: FacetInput | None, mask: tuple[str, ...] | None) -> list[str]:
        violations: Violations = []
        check_mask(violations, given, mask)
        return [violation.field for violation in violations]

    assert fields(None, None) == []
    assert fields(FacetInput(), None) == ["facet_mask"]
    assert fields(FacetInput(), ()) == ["facet_mask"]
    assert fields(None, ("subject",)) == []
    assert fields(FacetInput(), ("subject", "origin_tier", "corroboration", "x.y")) == [
        "facet_mask.paths[1]",
        "facet_mask.paths[2]",
        "facet_mask.paths[3]",
    ]
    assert fields(None, ("subject",) * MASK_PATHS_MAX) == []
    assert fields(None, ("no",) * (MASK_PATHS_MAX + 1)) == ["facet_mask"]


def test_fields_that_no_mask_names_are_not_looked_at() -> None:
    """What is ignored is neither judged nor part of the request."""
    given = FacetInput(subject="s", namespace="\n", source_type=SourceType.OPERATOR)
    named = named_fields(given, ("subject", "no_such_field"))
    assert named == FacetInput(subject="s")
    assert refused(FacetInput(subject="s")) == [] and not claims_operator(named)
    assert named_fields(given, None) is given
    assert named_fields(None, ("subject",)) is None


def test_only_masked_fields_change() -> None:
    """Absent means keep; a named field that is unset is cleared."""
    held = MemoryFacet(
        subject="s",
        namespace="n",
        sensitivity=Sensitivity.RESTRICTED,
        origin_tier=OriginTier.AGENT,
        corroboration=3,
        last_reinforce_time=datetime(2026, 1, 1, tzinfo=UTC),
    )
    given = FacetInput(subject="", namespace="other", sensitivity=Sensitivity.PUBLIC)
    assert changed_facet(held, given, ("subject",)) == replace(held, subject=None)
    assert changed_facet(held, given, ("namespace", "sensitivity")) == replace(
        held, namespace="other", sensitivity=Sensitivity.PUBLIC
    )
    assert changed_facet(held, None, None) is held


@pytest.mark.parametrize(
    ("held", "claimed", "tier"),
    [
        (OriginTier.EXTERNAL, SourceType.OPERATOR, OriginTier.EXTERNAL),
        (OriginTier.AGENT, SourceType.OPERATOR, OriginTier.AGENT),
        (OriginTier.OPERATOR, SourceType.WEB, OriginTier.EXTERNAL),
        (OriginTier.OPERATOR, SourceType.CHAT, OriginTier.AGENT),
        (None, SourceType.CHAT, OriginTier.EXTERNAL),
    ],
)
def test_no_update_raises_a_tier(
    held: OriginTier | None, claimed: SourceType, tier: OriginTier
) -> None:
    """000-08: the tier follows the source type down and never up."""
    base = None if held is None else MemoryFacet(origin_tier=held)
    changed = changed_facet(base, FacetInput(source_type=claimed), ("source_type",))
    assert changed is not None and changed.origin_tier is tier


def test_a_new_facet_gets_its_tier_from_its_source() -> None:
    """000-08: stamped by the broker."""
    assert new_facet(None) is None
    facet = new_facet(FacetInput(source_type=SourceType.CHAT, subject="s"))
    assert facet == MemoryFacet(
        source_type=SourceType.CHAT, subject="s", origin_tier=OriginTier.AGENT
    )

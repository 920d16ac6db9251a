"""The field rules at their limits."""

from dataclasses import replace
from typing import Any

import pytest

from broker.domain.errors import FieldInvalidError
from broker.domain.fields import (
    CONTENT_MAX,
    RATIONALE_MAX,
    TAG_MAX,
    TAGS_GIVEN_MAX,
    TAGS_MAX,
    TITLE_MAX,
    TYPE_MAX,
    Violations,
    check_scope,
    check_text,
    checked_content,
    is_identifier,
    normal_tags,
)
from broker.domain.requests import ContentInput, ScopeInput

GOOD = ContentInput(type="note", title="", content="text", rationale="", importance=None, tags=())


def but(field: str, value: Any) -> ContentInput:
    """Return good content but for one field."""
    changes: dict[str, Any] = {field: value}
    return replace(GOOD, **changes)


def violations_of(given: ContentInput, *, default: float | None = 0.5) -> list[str]:
    """Return the fields that are refused."""
    violations: Violations = []
    checked_content(violations, given, importance_default=default)
    return [violation.field for violation in violations]


@pytest.mark.parametrize(
    ("value", "good"),
    [
        ("a", True),
        ("A.b_c:d-9", True),
        ("x" * 256, True),
        ("x" * 257, False),
        ("", False),
        ("a b", False),
        ("a/b", False),
        ("a\n", False),
        ("ä", False),
        ("a%", False),
    ],
)
def test_identifiers(value: str, good: bool) -> None:
    """004-48: letters, digits, dot, underscore, dash, colon; 1-256; nothing else."""
    assert is_identifier(value) is good


@pytest.mark.parametrize("part", ["project_id", "run_id", "agent_id"])
def test_scope_names_the_bad_part(part: str) -> None:
    """004-48: each part of a scope is an identifier, and the refusal names the part."""
    with pytest.raises(FieldInvalidError) as refused:
        check_scope(replace(ScopeInput("p", "r", "a"), **{part: "no/slash"}))
    assert [v.field for v in refused.value.violations] == [f"scope.{part}"]
    assert "256" in refused.value.violations[0].rule


def test_scope_names_every_bad_part_at_once() -> None:
    """004-48: one refusal names all."""
    with pytest.raises(FieldInvalidError) as refused:
        check_scope(ScopeInput("", "", ""))
    assert len(refused.value.violations) == 3


@pytest.mark.parametrize(
    ("field", "limit"),
    [
        ("type", TYPE_MAX),
        ("title", TITLE_MAX),
        ("content", CONTENT_MAX),
        ("rationale", RATIONALE_MAX),
    ],
)
@pytest.mark.parametrize("character", ["x", "語", "🙂"])
def test_text_limits_count_code_points(field: str, limit: int, character: str) -> None:
    """004-48: limit-1 and limit pass, limit+1 is refused, whatever the encoding takes."""
    assert violations_of(but(field, character * (limit - 1))) == []
    assert violations_of(but(field, character * limit)) == []
    assert violations_of(but(field, character * (limit + 1))) == [field]


@pytest.mark.parametrize("field", ["type", "title", "content", "rationale"])
@pytest.mark.parametrize("bad", [chr(0), chr(0xD800), chr(0xDFFF)])
def test_nul_and_lone_surrogates_are_refused(field: str, bad: str) -> None:
    """004-48: what no store keeps byte for byte is refused with the field's name."""
    assert violations_of(but(field, f"a{bad}b")) == [field]


@pytest.mark.parametrize("control", ["\n", "\t", "\x1b", "\x85"])
def test_control_characters(control: str) -> None:
    """004-48: refused in type and tags, kept in content, title and rationale."""
    assert violations_of(replace(GOOD, type=f"a{control}b")) == ["type"]
    assert violations_of(replace(GOOD, tags=(f"a{control}b",))) == ["tags[0]"]
    assert violations_of(replace(GOOD, content=f"a{control}b")) == []


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000", "\u2028"])
def test_blank_type_and_content_are_refused(blank: str) -> None:
    """004-48: type and content must say something."""
    assert violations_of(replace(GOOD, content=blank)) == ["content"]
    assert violations_of(replace(GOOD, type=blank)) == ["type"]


def test_content_is_kept_as_it_came_and_type_is_trimmed() -> None:
    """004-48: only type and tags are trimmed."""
    content = checked_content(
        [], replace(GOOD, type=" note ", content=" a\r\n"), importance_default=0.5
    )
    assert (content.type, content.content) == ("note", " a\r\n")


def test_tag_limits() -> None:
    """004-48: 32 tags of 64 code points pass, 33 and 65 do not; repetitions do not count."""
    tags = tuple(f"t{number:02}" for number in range(TAGS_MAX))
    assert violations_of(replace(GOOD, tags=tags)) == []
    assert violations_of(replace(GOOD, tags=(*tags, "T00"))) == []
    assert violations_of(replace(GOOD, tags=(*tags, "more"))) == ["tags"]
    assert violations_of(replace(GOOD, tags=("x" * TAG_MAX,))) == []
    assert violations_of(replace(GOOD, tags=("x" * (TAG_MAX + 1),))) == ["tags[0]"]
    assert violations_of(replace(GOOD, tags=("ok", " "))) == ["tags[1]"]


def test_repetitions_of_tags_are_limited_too() -> None:
    """004-48: one refusal for however many, so that no request keeps the process busy."""
    assert violations_of(replace(GOOD, tags=("x",) * TAGS_GIVEN_MAX)) == []
    assert violations_of(replace(GOOD, tags=("x",) * (TAGS_GIVEN_MAX + 1))) == ["tags"]
    assert violations_of(replace(GOOD, tags=("",) * (TAGS_GIVEN_MAX + 1))) == ["tags"]


def test_tags_are_trimmed_deduplicated_and_sorted_without_case() -> None:
    """004-50: the normal form does not depend on order or spelling order."""
    assert normal_tags([" b", "A", "a ", "B"]) == normal_tags(["B", "b", "a", "A"]) == ("A", "B")


@pytest.mark.parametrize(
    ("importance", "good"),
    [(0.0, True), (1.0, True), (-0.01, False), (1.01, False), (float("nan"), False)],
)
def test_importance_bounds(importance: float, good: bool) -> None:
    """004-48: 0.0 to 1.0, both included; NaN is refused."""
    assert violations_of(replace(GOOD, importance=importance)) == ([] if good else ["importance"])


def test_importance_defaults_only_where_allowed() -> None:
    """004-48: absent means 0.5 on create and is refused on update; 0.0 is a value."""
    assert checked_content([], GOOD, importance_default=0.5).importance == 0.5
    zero = replace(GOOD, importance=0.0)
    assert checked_content([], zero, importance_default=0.5).importance == 0.0
    assert violations_of(GOOD, default=None) == ["importance"]


def test_a_violation_never_repeats_the_value() -> None:
    """004-48: the rule and its limit are told, the input is not."""
    violations: Violations = []
    check_text(violations, "title", "canary" * 1_000, 512)
    assert "canary" not in violations[0].rule and "512" in violations[0].rule

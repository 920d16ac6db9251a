"""The field rules of contexts. 004-48."""

from typing import Any

import pytest

from broker.domain.context import CompileContext, check_compile
from broker.domain.fields import Violations
from broker.domain.requests import UNKNOWN, ScopeInput

CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"query": ""}, []),
    ({"query": "é" * 2_000}, []),
    ({"query": "é" * 2_001}, ["query"]),
    ({"query": "a\x00b"}, ["query"]),
    ({"query": "a\nb"}, []),
    (
        {"min_origin_tier": UNKNOWN, "sensitivity_ceiling": UNKNOWN},
        ["min_origin_tier", "sensitivity_ceiling"],
    ),
    ({"namespaces": ("",) * 32}, []),
    ({"namespaces": ("",) * 33}, ["namespaces"]),
    ({"namespaces": ("a", "é" * 256, "é" * 257, "a\nb")}, ["namespaces[2]", "namespaces[3]"]),
    ({"max_items": -1, "max_tokens": 0}, []),
]


@pytest.mark.parametrize(("asked", "bad"), CASES)
def test_fields(asked: dict[str, Any], bad: list[str]) -> None:
    violations: Violations = []
    check_compile(violations, CompileContext(scope=ScopeInput("p", "r", "a"), **asked))
    assert [violation.field for violation in violations] == bad

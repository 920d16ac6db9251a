"""Which items can meet a condition at all, as far as equal texts tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.devstack.cosmos.standin.sql.evaluation import Scope
from broker.devstack.cosmos.standin.sql.syntax import (
    Comparison,
    Expression,
    Function,
    Literal,
    Logic,
    Membership,
    Parameter,
    Path,
)

Find = Callable[[str, str], set[str] | None]
"""Returns the ids of items whose property is, or holds, a text; None where it cannot tell."""


def narrowed(condition: Expression | None, scope: Scope, find: Find) -> set[str] | None:
    """Returns ids among which are all items that meet a condition; None where it may be any.

    Raises:
        RefusalError: A parameter is missing.
    """
    match condition:
        case Comparison("=", left, right):
            path, value = (left, right) if isinstance(left, Path) else (right, left)
            return _equal(path, [value], scope, find)
        case Membership(value, choices):
            return _equal(value, choices, scope, find)
        case Function("ARRAY_CONTAINS", (values, value)):
            return _equal(values, [value], scope, find)
        case Logic(sign, left, right):
            one, other = narrowed(left, scope, find), narrowed(right, scope, find)
            if sign == "AND":
                return one if other is None else other if one is None else one & other
            return None if one is None or other is None else one | other
        case _:
            return None


def _equal(
    path: Expression, values: Iterable[Expression], scope: Scope, find: Find
) -> set[str] | None:
    """Returns ids of items whose property is, or holds, one of some texts."""
    if not isinstance(path, Path) or len(path.names) != 1:
        return None
    ids: set[str] = set()
    for each in values:
        text = scope.value(each, {}) if isinstance(each, Literal | Parameter) else None
        found = find(path.names[0], text) if isinstance(text, str) else None
        if found is None:
            return None
        ids |= found
    return ids

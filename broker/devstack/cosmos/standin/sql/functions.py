"""The functions of the query language that this stand-in knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.devstack.cosmos.standin.refusals import invalid
from broker.devstack.cosmos.standin.sql.values import UNDEFINED, same

AGGREGATES = {"COUNT", "SUM"}
NOW = "GETCURRENTTIMESTAMP"


def _array_contains(values: Any, value: Any) -> Any:
    if not isinstance(values, list) or value is UNDEFINED:
        return UNDEFINED
    return any(same(each, value) for each in values)


def _contains(text: Any, part: Any) -> Any:
    return part in text if isinstance(text, str) and isinstance(part, str) else UNDEFINED


def _starts_with(text: Any, part: Any) -> Any:
    return text.startswith(part) if isinstance(text, str) and isinstance(part, str) else UNDEFINED


FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "ARRAY_CONTAINS": (2, _array_contains),
    "CONTAINS": (2, _contains),
    "IS_DEFINED": (1, lambda value: value is not UNDEFINED),
    "IS_NULL": (1, lambda value: value is None),
    "STARTSWITH": (2, _starts_with),
}
ARGUMENTS = {name: count for name, (count, _) in FUNCTIONS.items()} | {"COUNT": 1, "SUM": 1, NOW: 0}


def total(values: list[Any]) -> float:
    """Returns the sum of what is defined; 0 where nothing is.

    Raises:
        RefusalError: Something is no number.
    """
    defined = [value for value in values if value is not UNDEFINED]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in defined):
        raise invalid("this stand-in only adds numbers")
    added: float = sum(defined)
    return added

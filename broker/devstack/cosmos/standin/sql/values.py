"""Values and their comparison, with what the service calls undefined.

A comparison with undefined, or of values of two types, is itself undefined, and a condition selects
only what is true. What the service's documents leave open is refused.
"""

from __future__ import annotations

import operator
from enum import Enum
from typing import Any, Final

from broker.devstack.cosmos.standin.refusals import invalid


class Undefined(Enum):
    """The one value of what is not there."""

    UNDEFINED = "undefined"


UNDEFINED: Final = Undefined.UNDEFINED
_RANKED = {"boolean", "number", "string"}
_RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def type_of(value: Any) -> str:
    """Names the JSON type of a value."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def same(left: Any, right: Any) -> bool:
    """Whether two defined values are of one type and equal, all the way down."""
    if type_of(left) != type_of(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    return bool(left == right)


def compared(sign: str, left: Any, right: Any) -> bool | Undefined:
    """Returns what a comparison says.

    Raises:
        RefusalError: ``!=`` between two types, or between arrays or objects. The documents say
            undefined; what is told of the service differs.
    """
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return UNDEFINED
    kinds = {type_of(left), type_of(right)}
    if sign == "=":
        return same(left, right) if len(kinds) == 1 else UNDEFINED
    if sign == "!=":
        if len(kinds) > 1 or kinds & {"array", "object"}:
            raise invalid("this stand-in does not know != between two types, arrays or objects")
        return not same(left, right)
    if len(kinds) > 1 or not kinds <= _RANKED:
        return UNDEFINED
    return bool(_RELATIONS[sign](left, right))


def both(left: Any, right: Any) -> bool | Undefined:
    """``AND``, where what is no boolean is undefined."""
    if left is False or right is False:
        return False
    return True if left is True and right is True else UNDEFINED


def either(left: Any, right: Any) -> bool | Undefined:
    """``OR``, where what is no boolean is undefined."""
    if left is True or right is True:
        return True
    return False if left is False and right is False else UNDEFINED


def opposite(value: Any) -> bool | Undefined:
    """``NOT``, where what is no boolean is undefined."""
    return not value if isinstance(value, bool) else UNDEFINED

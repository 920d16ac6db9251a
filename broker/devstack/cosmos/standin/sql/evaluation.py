"""What an expression says of one item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from broker.devstack.cosmos.standin.clock import Clock
from broker.devstack.cosmos.standin.refusals import invalid
from broker.devstack.cosmos.standin.sql.functions import AGGREGATES, FUNCTIONS, NOW
from broker.devstack.cosmos.standin.sql.syntax import (
    Comparison,
    Expression,
    Function,
    Literal,
    Logic,
    Membership,
    Negation,
    Number,
    Parameter,
    Path,
)
from broker.devstack.cosmos.standin.sql.values import (
    UNDEFINED,
    both,
    compared,
    either,
    opposite,
)

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Scope:
    """What expressions are evaluated with.

    Attributes:
        parameters: By name, the at sign included.
        clock: What GetCurrentTimestamp() reads, anew for each item.
    """

    parameters: Mapping[str, Any]
    clock: Clock

    def value(self, expression: Expression, item: Item) -> Any:
        """Returns what an expression says of an item.

        Raises:
            RefusalError: A parameter is missing, or the stand-in does not know the answer.
        """
        match expression:
            case Literal(value):
                return value
            case Parameter(name):
                return self._parameter(name)
            case Path(names):
                return at(item, names)
            case Comparison(sign, left, right):
                return compared(sign, self.value(left, item), self.value(right, item))
            case Logic(sign, left, right):
                joined = both if sign == "AND" else either
                return joined(self.value(left, item), self.value(right, item))
            case Negation(inner):
                return opposite(self.value(inner, item))
            case Membership(value, choices):
                return self._is_among(self.value(value, item), choices, item)
            case Function(name, arguments):
                return self._called(name, [self.value(each, item) for each in arguments])
            case _:
                assert_never(expression)

    def number(self, given: Number | None) -> int | None:
        """Returns a count of results.

        Raises:
            RefusalError: It is no whole number from 0.
        """
        if given is None:
            return None
        value = self._parameter(given.name) if isinstance(given, Parameter) else given.value
        if type(value) is not int or value < 0:
            raise invalid("TOP, OFFSET and LIMIT need a whole number from 0")
        return value

    def _parameter(self, name: str) -> Any:
        if name not in self.parameters:
            raise invalid("the query names a parameter that is not given")
        return self.parameters[name]

    def _is_among(self, value: Any, choices: tuple[Expression, ...], item: Item) -> Any:
        among: Any = False
        for choice in choices:
            among = either(among, compared("=", value, self.value(choice, item)))
        return among

    def _called(self, name: str, arguments: list[Any]) -> Any:
        if name == NOW:
            return self.clock.milliseconds()
        if name in AGGREGATES:
            raise invalid(f"this stand-in knows {name} only as a whole selected value")
        return FUNCTIONS[name][1](*arguments)


def at(item: Any, names: tuple[str, ...]) -> Any:
    """Returns the property of an item that names lead to."""
    for name in names:
        if not isinstance(item, Mapping) or name not in item:
            return UNDEFINED
        item = item[name]
    return item

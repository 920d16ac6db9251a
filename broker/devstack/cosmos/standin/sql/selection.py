"""Runs a query over the items of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from broker.devstack.cosmos.standin.refusals import invalid
from broker.devstack.cosmos.standin.sql.evaluation import Item, Scope
from broker.devstack.cosmos.standin.sql.functions import AGGREGATES, total
from broker.devstack.cosmos.standin.sql.ordering import Place, Sequence
from broker.devstack.cosmos.standin.sql.syntax import Expression, Function, Literal, Query
from broker.devstack.cosmos.standin.sql.values import UNDEFINED

Results = list[tuple[Place, Any]]
"""Results in sequence, each with its place."""


def is_aggregate(query: Query) -> bool:
    """Whether a query has one result for all items.

    Raises:
        RefusalError: It mixes that with what it has no use for.
    """
    whole = [*(column.value for column in query.columns), query.value]
    aggregates = [
        isinstance(each, Function) and each.name in AGGREGATES for each in whole if each is not None
    ]
    if any(aggregates) and (not all(aggregates) or query.orders or query.limit or query.offset):
        raise invalid("this stand-in does not know an aggregate beside anything else")
    return any(aggregates)


def selected(query: Query, scope: Scope, items: Iterable[Item]) -> Results:
    """Returns all results of a query, OFFSET and LIMIT left aside.

    Raises:
        RefusalError: The stand-in does not know the answer.
    """
    where = query.where
    chosen = [item for item in items if where is None or scope.value(where, item) is True]
    if is_aggregate(query):
        return [(("",), _shaped(query, lambda each: _aggregate(each, scope, chosen)))]
    results = [
        (place, _of_item(query, scope, item))
        for place, item in Sequence(query.orders).sorted(chosen)
    ]
    return [(place, result) for place, result in results if result is not UNDEFINED]


def _of_item(query: Query, scope: Scope, item: Item) -> Any:
    return _shaped(query, lambda expression: scope.value(expression, item))


def _shaped(query: Query, value_of: Callable[[Expression], Any]) -> Any:
    if query.value is not None:
        return value_of(query.value)
    members = {column.name: value_of(column.value) for column in query.columns}
    return {name: value for name, value in members.items() if value is not UNDEFINED}


def _aggregate(expression: Expression, scope: Scope, chosen: list[Item]) -> float:
    assert isinstance(expression, Function)
    (argument,) = expression.arguments
    if expression.name == "SUM":
        return total([scope.value(argument, item) for item in chosen])
    if not (isinstance(argument, Literal) and argument.value == 1 and argument.value is not True):
        raise invalid("this stand-in only knows COUNT(1)")
    return len(chosen)

"""The sequence of results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from broker.devstack.cosmos.standin.refusals import invalid
from broker.devstack.cosmos.standin.sql.evaluation import Item, at
from broker.devstack.cosmos.standin.sql.syntax import Order
from broker.devstack.cosmos.standin.sql.values import type_of

Place = tuple[Any, ...]
"""Where an item stands: the values it is ordered by, then what decides between equals."""


class Sequence:
    """An order of items that is total, and the same on every page.

    What no ORDER BY decides is decided by a hash: nobody shall rely on it.
    """

    def __init__(self, orders: tuple[Order, ...]) -> None:
        """Orders by properties, the most important first."""
        self._orders = orders
        self._kinds: list[str] = []

    def place(self, item: Item) -> Place:
        """Returns where an item stands, as it is written into a continuation.

        Raises:
            RefusalError: A property to order by is missing, is neither a number nor a text, or
                has another type than with the items before.
        """
        values = [at(item, order.path.names) for order in self._orders]
        kinds = [type_of(value) for value in values]
        if any(kind not in {"number", "string"} for kind in kinds):
            raise invalid("this stand-in only orders by numbers and texts that every item has")
        self._kinds = self._kinds or kinds
        if kinds != self._kinds:
            raise invalid("this stand-in does not order numbers and texts among each other")
        return (*values, hashlib.sha256(item["_rid"].encode()).hexdigest())

    def sorted(self, items: list[Item]) -> list[tuple[Place, Item]]:
        """Returns items in sequence, each with its place."""
        placed = [(self.place(item), item) for item in items]
        placed.sort(key=_column(-1))
        for index, order in reversed([*enumerate(self._orders)]):
            placed.sort(key=_column(index), reverse=order.descends)
        return placed

    def is_after(self, place: Place, other: Place) -> bool:
        """Whether one place comes after another."""
        descents = [order.descends for order in self._orders]
        for mine, its, descends in zip(place, other, [*descents, False], strict=True):
            if mine != its:
                return bool(mine < its if descends else mine > its)
        return False


def _column(index: int) -> Callable[[tuple[Place, Item]], Any]:
    return lambda placed: placed[0][index]

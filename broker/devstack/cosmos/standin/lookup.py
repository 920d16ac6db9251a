"""Which items of a partition hold a text: what keeps a query from looking at all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]
LENGTH_MAX = 128
"""Longer texts are not looked up."""


class Lookup:
    """Ids by property and text; of a list each element counts. What the service adds is left out.

    No real index: which paths a policy includes makes no difference to it.
    """

    def __init__(self) -> None:
        """Begins without an item."""
        self._ids: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, item: Document) -> None:
        """Takes an item in."""
        for entry in _entries(item):
            self._ids[entry].add(item["id"])

    def remove(self, item: Document) -> None:
        """Forgets an item."""
        for entry in _entries(item):
            self._ids[entry].discard(item["id"])

    def find(self, name: str, text: str) -> set[str] | None:
        """Returns ids of all items whose property is, or holds, a text; None where it cannot."""
        if name.startswith("_") or len(text) > LENGTH_MAX:
            return None
        return self._ids.get((name, text), set())


def _entries(item: Document) -> Iterator[tuple[str, str]]:
    for name, value in item.items():
        if not name.startswith("_"):
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, str) and len(each) <= LENGTH_MAX:
                    yield name, each

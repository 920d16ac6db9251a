"""Indexing policies: what one may hold, and which orders one can serve."""

from __future__ import annotations

from typing import Any

from broker.devstack.cosmos.standin import documents
from broker.devstack.cosmos.standin.refusals import invalid

Order = tuple[tuple[str, ...], bool]
"""A property, by the names that lead to it, and whether it descends."""

DEFAULT: dict[str, Any] = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}],
}


def check(policy: Any) -> None:
    """Refuses a policy that this stand-in does not know.

    Raises:
        RefusalError: It holds something unknown, or a composite index of less than two paths.
    """
    given = documents.mapping(policy, "the indexing policy")
    documents.only(given, {*DEFAULT, "compositeIndexes"}, "the indexing policy")
    if given.get("indexingMode", "consistent") != "consistent" or not given.get("automatic", True):
        raise invalid("this stand-in only knows automatic, consistent indexing")
    for name in ("includedPaths", "excludedPaths"):
        for entry in _listed(given.get(name, []), name):
            documents.only(documents.mapping(entry, name), {"path"}, name)
            _segments(entry.get("path"))
    for index in _listed(given.get("compositeIndexes", []), "compositeIndexes"):
        if not 2 <= len(_listed(index, "a composite index")) <= 8:
            raise invalid("a composite index has 2 to 8 paths")
        for entry in index:
            documents.only(documents.mapping(entry, "a path"), {"path", "order"}, "a path")
            if entry.get("order", "ascending") not in {"ascending", "descending"}:
                raise invalid("an order is ascending or descending")
            if {"*", "?", "[]"} & set(_segments(entry.get("path"))):
                raise invalid("a path of a composite index names one property")


def check_order(policy: dict[str, Any], wanted: list[Order]) -> None:
    """Refuses an order that no index serves.

    Raises:
        RefusalError: One property is not indexed, or several have no composite index of exactly
            these in this sequence, all in these directions or all in the opposite ones.
    """
    if len(wanted) == 1 and not _is_included(policy, wanted[0][0]):
        raise invalid("ORDER BY needs an index of the property, and the policy excludes it")
    if len(wanted) > 1:
        opposite = [(path, not descends) for path, descends in wanted]
        held = [
            [
                (_segments(entry["path"]), entry.get("order", "ascending") == "descending")
                for entry in index
            ]
            for index in policy.get("compositeIndexes", [])
        ]
        if wanted not in held and opposite not in held:
            raise invalid(
                "the order by query does not have a corresponding composite index that it can be"
                " served from"
            )


def _is_included(policy: dict[str, Any], wanted: tuple[str, ...]) -> bool:
    """Whether the path that fits best is an included one."""
    best: tuple[int, bool, bool] = (-1, False, False)
    for name in ("includedPaths", "excludedPaths"):
        for entry in policy.get(name, []):
            *names, last = _segments(entry["path"])
            exact = last == "?" and tuple(names) == wanted
            if exact or (last == "*" and wanted[: len(names)] == tuple(names)):
                best = max(best, (len(names), exact, name == "includedPaths"))
    return best[2]


def _segments(path: Any) -> tuple[str, ...]:
    if not isinstance(path, str) or not path.startswith("/") or path.endswith("/"):
        raise invalid("a path begins with a slash and does not end with one")
    return tuple(part.strip('"') for part in path[1:].split("/"))


def _listed(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise invalid(f"{what} is not a list")
    return value

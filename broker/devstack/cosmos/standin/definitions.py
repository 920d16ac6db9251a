"""Databases and containers as their owners define them."""

from __future__ import annotations

from typing import Any

from broker.devstack.cosmos.standin import documents, identities, indexing
from broker.devstack.cosmos.standin.refusals import invalid

SYSTEM = {"_rid", "_self", "_etag", "_ts"}
_CHILDREN = {"_docs", "_sprocs", "_triggers", "_udfs", "_conflicts"}
_MEMBERS = {"id", "partitionKey", "indexingPolicy", "defaultTtl"}


def database(body: Any, ts: int) -> dict[str, Any]:
    """Returns a new database.

    Raises:
        RefusalError: The body defines none that this stand-in knows.
    """
    given = documents.mapping(body, "a database")
    documents.only(given, {"id"}, "a database")
    rid = identities.database_rid()
    return {
        "id": identities.checked_id(given.get("id"), "a database"),
        "_rid": rid,
        "_self": f"dbs/{rid}/",
        "_etag": identities.new_etag(),
        "_colls": "colls/",
        "_users": "users/",
        "_ts": ts,
    }


def container(body: Any, above: dict[str, Any], ts: int) -> dict[str, Any]:
    """Returns a new container of a database; what was given is read back as it was given.

    Raises:
        RefusalError: The body defines none that this stand-in knows.
    """
    given = documents.mapping(body, "a container")
    documents.only(given, _MEMBERS, "a container")
    rid = identities.container_rid(above["_rid"])
    identities.checked_id(given.get("id"), "a container")
    _check_partition_key(given.get("partitionKey"))
    settings = _settings(given)
    return {
        "id": given["id"],
        "partitionKey": given["partitionKey"],
        **settings,
        "_rid": rid,
        "_self": f"{above['_self']}colls/{rid}/",
        "_etag": identities.new_etag(),
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
        "_ts": ts,
    }


def changed(old: dict[str, Any], body: Any, ts: int) -> dict[str, Any]:
    """Returns a container with another indexing policy or TTL.

    Raises:
        RefusalError: The body changes something else, or is not one that this stand-in knows.
    """
    given = documents.mapping(body, "a container")
    documents.only(given, _MEMBERS | SYSTEM | _CHILDREN, "a container")
    if given.get("id") != old["id"] or given.get("partitionKey") != old["partitionKey"]:
        raise invalid("the id and the partition key of a container cannot be changed")
    kept = {name: value for name, value in old.items() if name != "defaultTtl"}
    return kept | _settings(given) | {"_etag": identities.new_etag(), "_ts": ts}


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    policy = given.get("indexingPolicy", indexing.DEFAULT)
    indexing.check(policy)
    settings = {"indexingPolicy": policy}
    if "defaultTtl" in given:
        settings["defaultTtl"] = checked_ttl(given["defaultTtl"], "defaultTtl")
    return settings


def checked_ttl(value: Any, what: str) -> int:
    """Returns a time to live.

    Raises:
        RefusalError: It is neither -1 nor a whole number of seconds above 0.
    """
    if type(value) is not int or (value != -1 and not 1 <= value <= 2**31 - 1):
        raise invalid(f"{what} is neither -1 nor a number of seconds")
    return value


def _check_partition_key(value: Any) -> None:
    given = documents.mapping(value, "the partition key")
    documents.only(given, {"paths", "kind", "version"}, "the partition key")
    paths = given.get("paths")
    if not isinstance(paths, list) or not paths or given.get("version") != 2:
        raise invalid("a partition key has paths, and version 2")
    if given.get("kind") != ("Hash" if len(paths) == 1 else "MultiHash"):
        raise invalid("a partition key of one path is a Hash, of several a MultiHash")
    for path in paths:
        if not isinstance(path, str) or not path.startswith("/") or '"' in path or "//" in path:
            raise invalid("a path of a partition key is /name or /name/name")

"""The headers of a request: those known here, and what they may say."""

from __future__ import annotations

import json
from typing import Any

from broker.devstack.cosmos.standin.addresses import ITEMS, RANGES
from broker.devstack.cosmos.standin.calls import Call
from broker.devstack.cosmos.standin.refusals import invalid

VERSIONS = {"2018-12-31", "2020-07-15"}
LEVELS = ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual")
"""From the strongest consistency to the weakest."""
BATCH = "x-ms-cosmos-is-batch-request"
QUERY = "x-ms-documentdb-isquery"
UPSERT = "x-ms-documentdb-is-upsert"
PARTITION = "x-ms-documentdb-partitionkey"
PAGE_SIZE = "x-ms-max-item-count"
CONTINUATION = "x-ms-continuation"
INTENDED = "x-ms-cosmos-intended-collection-rid"

_HARMLESS = {
    "x-ms-activity-id",
    "x-ms-client-id",
    "x-ms-cosmos-correlated-activityid",
    "x-ms-cosmos-sdk-supportedcapabilities",
    "x-ms-date",
    "x-ms-session-token",
    "x-ms-thinclient-proxy-operation-type",
    "x-ms-thinclient-proxy-resource-type",
    "x-ms-version",
}
_MEANT = {
    BATCH,
    QUERY,
    UPSERT,
    PARTITION,
    PAGE_SIZE,
    CONTINUATION,
    INTENDED,
    "x-ms-consistency-level",
    "x-ms-cosmos-batch-atomic",
    "x-ms-cosmos-batch-continue-on-error",
    "x-ms-documentdb-query-iscontinuationexpected",
}
_VERBS = {"POST": "create", "GET": "read", "PUT": "replace", "DELETE": "delete"}
_PLACES = {"dbs": "database", "colls": "container"}


def kind_of(call: Call) -> str:
    """Names what a request asks for.

    One of ``account``, ``ranges``; ``create``, ``read``, ``replace``, ``delete``, ``upsert``,
    ``query``, ``batch`` for items; the same verbs or ``list`` with ``database`` or ``container``
    after them, as in ``read container``; ``other``.
    """
    if not call.address.type:
        return "account"
    if call.address.type == RANGES:
        return "ranges"
    if call.address.type == ITEMS and call.method == "POST" and call.address.is_feed:
        flags = {"batch": BATCH, "query": QUERY, "upsert": UPSERT}
        return next((kind for kind, flag in flags.items() if call.flag(flag)), "create")
    verb = _VERBS.get(call.method, "")
    if call.address.is_feed == (verb != "create"):
        verb = "list" if verb == "read" and call.address.type != ITEMS else ""
    if not verb:
        return "other"
    return f"{verb} {_PLACES[call.address.type]}" if call.address.type in _PLACES else verb


def check(call: Call, account_level: str) -> None:
    """Refuses headers that this stand-in does not know, and values that it does not serve.

    Raises:
        RefusalError: There are some.
    """
    if call.headers.get("x-ms-version") not in VERSIONS:
        raise invalid(f"x-ms-version is not one of {sorted(VERSIONS)}")
    for name in call.headers:
        if name.startswith("x-ms-") and name not in _HARMLESS | _MEANT:
            raise invalid(f"this stand-in does not know the header {name}")
    if call.headers.get("x-ms-documentdb-query-iscontinuationexpected", "false").lower() != "false":
        raise invalid("partial aggregates are not served")
    level = call.headers.get("x-ms-consistency-level", account_level)
    if level not in LEVELS or LEVELS.index(level) < LEVELS.index(account_level):
        raise invalid("x-ms-consistency-level is unknown or stronger than the account's")
    if call.headers.get("prefer", "return=minimal") != "return=minimal":
        raise invalid("Prefer only knows return=minimal")
    if "if-none-match" in call.headers and call.method != "GET":
        raise invalid("If-None-Match is only served when reading")
    if "if-match" in call.headers and call.method not in {"PUT", "DELETE"}:
        raise invalid("If-Match is only served when replacing or deleting")


def partition_of(call: Call) -> str:
    """Returns the partition value that a request names.

    Raises:
        RefusalError: It names none, or one that is not a text of at most 2,048 bytes.
    """
    header = call.headers.get(PARTITION)
    if header is None:
        raise invalid("the request names no partition")
    try:
        values: Any = json.loads(header)
    except ValueError:
        raise invalid(f"{PARTITION} is not JSON") from None
    if not isinstance(values, list) or len(values) != 1 or not isinstance(values[0], str):
        raise invalid(f"{PARTITION} is not a list of one text")
    return checked_partition(values[0])


def checked_partition(value: object) -> str:
    """Returns a partition value.

    Raises:
        RefusalError: It is not a text of at most 2,048 bytes.
    """
    if not isinstance(value, str):
        raise invalid("this stand-in only knows partition values that are texts")
    try:
        size = len(value.encode())
    except UnicodeError:
        raise invalid("the partition value is not Unicode") from None
    if size > 2048:
        raise invalid("the partition value has more than 2,048 bytes")
    return value

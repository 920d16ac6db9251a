"""Operations on items of one partition: seen by each other at once, by the world all together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker.devstack.cosmos.standin import definitions, documents, identities
from broker.devstack.cosmos.standin.container import Changes, Container, Document
from broker.devstack.cosmos.standin.refusals import (
    PARTITION_KEY_MISMATCH,
    absent,
    existing,
    invalid,
    stale,
    too_large,
)

BYTES_MAX = 2_000_000
"""Of an item, of a request and of a batch: 2 MB in the stricter reading."""
_SYSTEM = {"_rid", "_self", "_etag", "_attachments", "_ts"}


@dataclass(frozen=True)
class Outcome:
    """What an operation answers.

    Attributes:
        status: 200, 201 or 204.
        item: The item afterwards; None where it is gone.
    """

    status: int
    item: Document | None = None


class Draft:
    """Operations on a partition that are not true yet."""

    def __init__(self, container: Container, partition: str) -> None:
        """Begins without a change."""
        self._container = container
        self._partition = partition
        self._path = container.partition_path
        self._changes: Changes = {}
        self._number = (container.lsn + 1) * 128

    def commit(self) -> None:
        """Makes all operations true."""
        if self._changes:
            self._container.apply(self._partition, self._changes)

    def create(self, body: Any) -> Outcome:
        """Makes an item.

        Raises:
            RefusalError: There is one of this id (409), the body is no item (400), it is too
                large (413).
        """
        given, item_id = self._checked(body)
        if self._find(item_id) is not None:
            raise existing("an item of this id")
        self._number += 1
        rid = identities.item_rid(self._container.rid, self._number)
        link = f"{self._container.definition['_self']}docs/{rid}/"
        return Outcome(201, self._put(item_id, given, rid, link))

    def read(self, item_id: str) -> Outcome:
        """Returns an item.

        Raises:
            RefusalError: There is none (404).
        """
        return Outcome(200, self._present(item_id))

    def replace(self, item_id: str, body: Any, if_match: str | None) -> Outcome:
        """Replaces an item.

        Raises:
            RefusalError: There is none (404), the etag is stale (412), the body is no item or
                has another id (400), it is too large (413).
        """
        given, new_id = self._checked(body)
        if new_id != item_id:
            raise invalid("the item has another id than its address")
        old = self._matched(item_id, if_match)
        return Outcome(200, self._put(item_id, given, old["_rid"], old["_self"]))

    def delete(self, item_id: str, if_match: str | None) -> Outcome:
        """Removes an item.

        Raises:
            RefusalError: There is none (404), the etag is stale (412).
        """
        self._matched(item_id, if_match)
        self._changes[item_id] = None
        return Outcome(204)

    def _find(self, item_id: str) -> Document | None:
        if item_id in self._changes:
            return self._changes[item_id]
        return self._container.find(self._partition, item_id)

    def _present(self, item_id: str) -> Document:
        item = self._find(identities.checked_id(item_id, "an item"))
        if item is None:
            raise absent("the item")
        return item

    def _matched(self, item_id: str, if_match: str | None) -> Document:
        item = self._present(item_id)
        if if_match not in {None, "*", item["_etag"]}:
            raise stale()
        return item

    def _checked(self, body: Any) -> tuple[Document, str]:
        given = documents.mapping(body, "an item")
        item_id = identities.checked_id(given.get("id"), "an item")
        value: Any = given
        for name in self._path:
            value = value.get(name) if isinstance(value, dict) else None
        if value != self._partition:
            raise invalid(
                "the partition value of the item is not that of the request",
                PARTITION_KEY_MISMATCH,
            )
        if given.get("ttl") is not None:
            definitions.checked_ttl(given["ttl"], "ttl")
        return {name: value for name, value in given.items() if name not in _SYSTEM}, item_id

    def _put(self, item_id: str, given: Document, rid: str, link: str) -> Document:
        item = given | {
            "_rid": rid,
            "_self": link,
            "_etag": identities.new_etag(),
            "_attachments": "attachments/",
            "_ts": self._container.clock.seconds(),
        }
        if (size := len(documents.written(item))) > BYTES_MAX:
            raise too_large("the item", size, BYTES_MAX)
        self._changes[item_id] = item
        return item

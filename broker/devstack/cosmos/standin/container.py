"""The items of one container, by partition and id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from broker.devstack.cosmos.standin.clock import Clock
from broker.devstack.cosmos.standin.journal import Journal
from broker.devstack.cosmos.standin.lookup import Lookup
from broker.devstack.cosmos.standin.refusals import invalid

Document = dict[str, Any]
Changes = dict[str, Document | None]
"""By id what an item is afterwards; None where it is gone."""


class Container:
    """Items in memory, each change of them on the disk before it is told.

    Attributes:
        definition: What its owner defined, and what the service added.
        link: Its path by names.
        lsn: The number of the latest change.
    """

    def __init__(self, definition: Document, link: str, path: Path, clock: Clock) -> None:
        """Opens the container's file, and reads what it holds.

        Raises:
            ServerError: The file is damaged.
        """
        self.definition = definition
        self.link = link
        self.lsn = 0
        self.clock = clock
        self._path = path
        self._partitions: dict[str, dict[str, Document]] = {}
        self._lookups: dict[str, Lookup] = {}
        self._journal = Journal(path)
        for entry in self._journal.entries():
            self._take(entry["lsn"], entry["partition"], entry["changes"])

    @property
    def rid(self) -> str:
        """The ``_rid``, another one for each container that was ever made."""
        return str(self.definition["_rid"])

    @property
    def partition_path(self) -> tuple[str, ...]:
        """The names that lead to an item's partition value.

        Raises:
            RefusalError: The container has several paths; items of such are not served.
        """
        paths = self.definition["partitionKey"]["paths"]
        if len(paths) != 1:
            raise invalid("this stand-in keeps no items of containers with several partition paths")
        return tuple(paths[0][1:].split("/"))

    def find(self, partition: str, item_id: str) -> Document | None:
        """Returns an item that has not expired."""
        item = self._partitions.get(partition, {}).get(item_id)
        return None if item is None or self._has_expired(item) else item

    def items(self, partition: str, among: Iterable[str] | None = None) -> Iterator[Document]:
        """Returns items of a partition that have not expired, in no order.

        Args:
            partition: The partition's value.
            among: Ids that are there; by default all.
        """
        there = self._partitions.get(partition, {})
        for item in there.values() if among is None else map(there.__getitem__, among):
            if not self._has_expired(item):
                yield item

    def lookup(self, partition: str) -> Lookup:
        """Returns what finds items of a partition, expired ones too, by texts that they hold."""
        return self._lookups.get(partition) or Lookup()

    def apply(self, partition: str, changes: Changes) -> None:
        """Makes changes true, all at once; they are on the disk when this returns."""
        lsn = self.lsn + 1
        self._journal.append({"lsn": lsn, "partition": partition, "changes": changes})
        self._take(lsn, partition, changes)

    def close(self) -> None:
        """Closes the file."""
        self._journal.close()

    def remove(self) -> None:
        """Deletes the file."""
        self.close()
        self._path.unlink()

    def _take(self, lsn: int, partition: str, changes: Changes) -> None:
        self.lsn = lsn
        items = self._partitions.setdefault(partition, {})
        lookup = self._lookups.setdefault(partition, Lookup())
        for item_id, item in changes.items():
            if (before := items.pop(item_id, None)) is not None:
                lookup.remove(before)
            if item is not None:
                items[item_id] = item
                lookup.add(item)

    def _has_expired(self, item: Document) -> bool:
        default = self.definition.get("defaultTtl")
        if default is None:
            return False
        ttl = item.get("ttl") or default
        return bool(ttl != -1 and self.clock.seconds() >= item["_ts"] + ttl)

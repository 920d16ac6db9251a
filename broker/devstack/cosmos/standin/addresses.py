"""What the path of a request names."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from broker.devstack.cosmos.standin.refusals import invalid

DATABASES, CONTAINERS, ITEMS, RANGES = "dbs", "colls", "docs", "pkranges"
_CHILDREN = {"": {DATABASES}, DATABASES: {CONTAINERS}, CONTAINERS: {ITEMS, RANGES}, ITEMS: set()}


@dataclass(frozen=True)
class Address:
    """One resource, or all resources of a type below one.

    Attributes:
        type: ``dbs``, ``colls``, ``docs`` or ``pkranges``; empty for the account.
        link: What the signature covers: the path of the resource, or of the parent of all.
        names: Ids of the database, the container and the item, as far as they are named.
        is_feed: Whether all of the type are meant.
    """

    type: str
    link: str
    names: tuple[str, ...]
    is_feed: bool

    @classmethod
    def parse(cls, path: str) -> Address:
        """Reads the raw path of a URL.

        Raises:
            RefusalError: It names nothing that this stand-in serves. Only addresses by name are
                served, not those by ``_rid``.
        """
        try:
            parts = [unquote(part, errors="strict") for part in path.strip("/").split("/") if part]
        except UnicodeError:
            raise invalid("the path is not UTF-8") from None
        above = ""
        for kind in parts[::2]:
            if kind not in _CHILDREN.get(above, ()):
                raise invalid("the path names nothing that this stand-in serves")
            above = kind
        is_feed = len(parts) % 2 == 1
        link = "/".join(parts[:-1] if is_feed else parts)
        if above == RANGES and not is_feed:
            raise invalid("partition key ranges are only served as a list")
        return cls(above, link, tuple(parts[1::2]), is_feed)

"""A transactional batch, and whether the service takes it: known before anything is sent."""

import json
from dataclasses import dataclass, field
from typing import Any

from providers.errors import WriteSetTooLargeError

OPERATIONS_MAX = 100
BYTES_MAX = 2_000_000
"""Of a batch as it is sent: 2 MB in the stricter reading."""
_FRAME = 96
"""Bytes at most that stand around a document in a batch, its id and its etag aside."""


@dataclass(slots=True)
class Batch:
    """Operations on one partition, and the bytes that they take."""

    partition: str
    operations: list[Any] = field(default_factory=list)
    size: int = 2

    def create(self, document: dict[str, Any]) -> None:
        """Make a document that must not exist."""
        whole = self._placed(document)
        self._add(whole, ("create", (whole,)))

    def replace(self, document: dict[str, Any], etag: str) -> None:
        """Put a document over the one with this etag."""
        whole = self._placed(document)
        self._add(whole, ("replace", (whole["id"], whole), {"if_match_etag": etag}), etag)

    def put(self, document: dict[str, Any], etag: str | None) -> None:
        """Put a document over the one with this etag; ``None``: it must not exist."""
        if etag is None:
            self.create(document)
        else:
            self.replace(document, etag)

    def delete(self, item_id: str, etag: str) -> None:
        """Remove the document with this etag."""
        self._add({"id": item_id}, ("delete", (item_id,), {"if_match_etag": etag}), etag)

    def join(self, other: "Batch") -> bool:
        """Take over the operations of another one, if the service takes both at once."""
        count = len(self.operations) + len(other.operations)
        if count > OPERATIONS_MAX or self.size + other.size > BYTES_MAX:
            return False
        self.operations += other.operations
        self.size += other.size
        return True

    def check(self) -> None:
        """Refuse a batch that the service would not take.

        Raises:
            WriteSetTooLargeError: It would not. Not retryable.
        """
        if len(self.operations) > OPERATIONS_MAX or self.size > BYTES_MAX:
            raise WriteSetTooLargeError(
                f"{len(self.operations)} operations of {self.size} bytes; at most"
                f" {OPERATIONS_MAX} of {BYTES_MAX} can be done at once"
            )

    def _placed(self, document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "projectId": self.partition}

    def _add(self, document: dict[str, Any], operation: Any, etag: str = "") -> None:
        written = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        self.size += len(written.encode()) + len(document["id"]) + 2 * len(etag) + _FRAME
        self.operations.append(operation)

"""A request and its reply, without the transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.devstack.cosmos.standin import documents
from broker.devstack.cosmos.standin.addresses import Address
from broker.devstack.cosmos.standin.refusals import invalid


@dataclass(frozen=True)
class Call:
    """A request whose path was understood.

    Attributes:
        method: In capitals.
        address: What the path names.
        headers: By lower-case name.
        body: Its bytes.
    """

    method: str
    address: Address
    headers: Mapping[str, str]
    body: bytes

    def flag(self, name: str) -> bool:
        """Whether a header says true."""
        return self.headers.get(name, "").lower() == "true"

    def json(self, content_type: str = "application/json") -> Any:
        """Reads the body.

        Raises:
            RefusalError: It has another content type, or is not what the service can keep.
        """
        if self.headers.get("content-type", "").partition(";")[0] != content_type:
            raise invalid(f"the body needs the content type {content_type}")
        return documents.parse(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        status: The HTTP status.
        body: To be written as JSON; None is no body.
        headers: Those of this answer alone.
    """

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

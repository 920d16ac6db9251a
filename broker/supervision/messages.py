"""What the supervisor and its children say to each other: one JSON object a line, over a socket.

The supervisor sends its order first, and the health process then what it shows. A worker says that
it serves, what it sees of its peers, or why it must not serve. The end of the line is a message
too: whoever holds the other end is gone.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

SERVES: Final = "serves"
"""A child does what it is there for: ``{"serves": true}``."""
STATUSES: Final = "statuses"
"""Health by the names of the health service: ``{"statuses": {"": true, "provider/a": true}}``."""
REFUSED: Final = "refused"
"""A child must not serve; starting it again cannot help: ``{"refused": "why"}``."""

READY: Final = ""
"""Whether calls should come here."""
LIVE: Final = "live"
"""Whether the supervisor does its work."""


def provider_name(provider_id: str) -> str:
    """Return the name of a provider in the health service."""
    return f"provider/{provider_id}"


def encode(message: Mapping[str, object]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Puts lines together from what came in."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._rest = b""

    def feed(self, received: bytes) -> Iterator[dict[str, Any]]:
        """Give the messages that are complete now."""
        *complete, self._rest = (self._rest + received).split(b"\n")
        for line in complete:
            yield json.loads(line)

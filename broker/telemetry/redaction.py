"""Keeps out of the logs whatever is not known to be harmless."""

import re
from typing import Any, Final

from structlog.typing import EventDict

MASK: Final = "[redacted]"
TEXT_MAX: Final = 256

ALLOWED_KEYS: Final = frozenset(
    {
        # every line
        "event",
        "level",
        "pid",
        "timestamp",
        # calls
        "code",
        "duration_ms",
        "error_type",
        "location",
        "method",
        "reason",
        "replayed",
        "request_id",
        # the process
        "attempt",
        "child_pid",
        "component",
        "count",
        "exit_code",
        "fact",
        "grace_s",
        "limit",
        "logger",
        "outcome",
        "port",
        "provider_id",
        "signal",
        "sqlstate",
        "state",
        "version",
        "what",
        "worker",
        "workers",
    }
)
"""Keys whose values a line may show. No key for content, callers, tenants or records is here."""

_CREDENTIAL: Final = re.compile(
    r"(?i:\b(?:bearer|basic|dpop)\s+\S+)"
    r"|eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,4}"  # a JOSE header in base64url
)


def redact(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Mask values of unknown keys, nested values, and whatever looks like a credential.

    A structlog processor; it goes last before the renderer.
    """
    return {key: _shown(value) if key in ALLOWED_KEYS else MASK for key, value in event.items()}


def _shown(value: object) -> object:
    if isinstance(value, str):
        return _CREDENTIAL.sub(MASK, value[:TEXT_MAX])
    if value is None or isinstance(value, bool | int | float):
        return value
    return MASK

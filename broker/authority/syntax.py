"""The two forms that names from outside may have."""

import re

IDENTIFIER_MAX = 256

_IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]{1,256}\Z")


def is_identifier(value: str) -> bool:
    """Tell whether ``value`` is 1-256 ASCII letters, digits and ``. _ : -`` (004-48)."""
    return _IDENTIFIER.match(value) is not None


def is_label(value: str, limit: int = IDENTIFIER_MAX) -> bool:
    """Tell whether ``value`` is 1 to ``limit`` printable characters and not blank.

    Control and format characters, line ends and lone surrogates are not printable.
    """
    return 0 < len(value) <= limit and value.isprintable() and not value.isspace()

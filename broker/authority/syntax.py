"""The form that opaque names from outside may have. Identifiers are the domain's."""

LABEL_MAX = 256


def is_label(value: str, limit: int = LABEL_MAX) -> bool:
    """Tell whether ``value`` is 1 to ``limit`` printable characters and not blank.

    Control and format characters, line ends and lone surrogates are not printable.
    """
    return 0 < len(value) <= limit and value.isprintable() and not value.isspace()

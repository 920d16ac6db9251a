"""Whether a tag fits a pattern (B-2): in time that grows with their lengths, never with the stars.

The caller folds both.
"""

ANY_RUN = "*"
ANY_ONE = "?"


def fits(pattern: str, text: str) -> bool:
    """Tell whether the whole text is what the pattern says.

    ``*`` is any run of characters, none included; ``?`` is any one; all else means itself.
    """
    at = place = 0
    star: int | None = None
    tried = 0
    while at < len(text):
        wanted = pattern[place : place + 1]
        if wanted == ANY_RUN:
            star, tried = place, at
            place += 1
        elif wanted in (ANY_ONE, text[at]):
            place, at = place + 1, at + 1
        elif star is not None:
            tried += 1
            place, at = star + 1, tried
        else:
            return False
    return not pattern[place:].strip(ANY_RUN)

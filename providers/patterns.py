"""Whether a tag fits a pattern (B-2): in time that grows with their lengths, never with the stars.

The caller folds both.
"""

import re
from functools import lru_cache

ANY_RUN = "*"
ANY_ONE = "?"


def fits(pattern: str, text: str) -> bool:
    """Tell whether the whole text is what the pattern says.

    ``*`` is any run of characters, none included; ``?`` is any one; all else means itself.
    """
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return an expression that never gives back: each part is taken where it first stands.

    Only the last part has no choice: it ends the text.
    """
    first, *rest = (_literal(part) for part in pattern.split(ANY_RUN))
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    found = "".join(f"(?>.*?{part})" for part in middle if part)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)


def _literal(part: str) -> str:
    return "".join("." if each == ANY_ONE else re.escape(each) for each in part)

"""Text as a reader sees it: what does not show is gone, and what looks the same is the same.

For looking at text only: nothing that comes from here is stored.
"""

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cf", "Cs", "Cn", "Co"})
_MARKS: Final = frozenset({"Mn", "Me"})
_BLANKS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks that do not show."""

_REMEMBERED_MAX: Final = 0x20000

_TWINS: Final = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
        "\u0432\u043a\u043c\u043d\u0442\u0433\u043f"
        "\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03b3\u03b7\u03c9\u03c3"
        "\u0131\u0269\u0251\u0261\u1d0f\u217c\u2113\u0585\u057d\u0578\u057c",
        "aeopcyxijshdqwbkmhtrnaeikvoptuxynwoiiagollounn",
        strict=True,
    )
)
"""Small letters of other scripts that look like one of ASCII, Cyrillic first, then Greek."""


class _Plain(dict[int, str | int | None]):
    """Maps characters to what shows of them. Learns as it goes: Python has no such table."""

    def __init__(self, hidden: frozenset[str], *, twins: bool) -> None:
        super().__init__()
        self._hidden, self._twins = hidden, twins

    def __missing__(self, code: int) -> str | int | None:
        char = chr(code)
        shown: str | int | None = code
        if char in _BLANKS or unicodedata.category(char) in self._hidden:
            shown = None
        elif self._twins:
            shown = _TWINS.get(char, code)
        if len(self) < _REMEMBERED_MAX:
            self[code] = shown
        return shown


_SHOWN: Final = _Plain(_HIDDEN, twins=False)
_SKELETON: Final = _Plain(_HIDDEN | _MARKS, twins=True)


def shown(text: str) -> str:
    """Return a text in its compatibility form (NFKC), without what does not show."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_SHOWN))


def skeleton(text: str) -> str:
    """Return what texts have in common that look alike: case, accents and scripts do not count.

    Two texts look alike where their skeletons are equal, so both sides of a comparison need one.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKD", text).casefold().translate(_SKELETON)

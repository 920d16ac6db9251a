"""Takes leaked reasoning of a model out of a text (000-03).

Work grows with the length of the text and with nothing else: the one pattern is possessive and each
character is looked at once.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_TAG: Final = re.compile(
    r"<(?P<close>/?)(?P<name>think|thinking|scratch_?pad|reasoning)(?![\w:.-])(?P<rest>[^<>]*+)>",
    re.IGNORECASE | re.ASCII,
)
"""What may be a tag. It holds no further angle bracket, so no search goes beyond the next one."""


def stripped(text: str) -> str:
    """Return a text without its reasoning blocks.

    A block goes from an opening tag to the closing tag that fits it, or to the end of the text.
    Blocks inside of blocks go with them. A closing tag that closes nothing goes by itself, and so
    does a tag that is both. What is left is trimmed where something was taken out, and is the very
    same text where nothing was.
    """
    if "<" not in text:
        return text
    tags = [tag for tag in _TAG.finditer(text) if _is_tag(tag["rest"])]
    if not tags:
        return text
    return "".join(_outside(text, tags)).strip()


def _is_tag(rest: str) -> bool:
    """Tell whether what follows a name are attributes, and not words, as in ``<think twice>``."""
    return "=" in rest or not rest.strip(" \t\r\n/")


def _outside(text: str, tags: list[re.Match[str]]) -> Iterator[str]:
    """Give the pieces of a text that lie in no block."""
    blocks = _Blocks()
    told = 0
    for tag in tags:
        if not blocks.inside:
            yield text[told : tag.start()]
        blocks.meet(tag)
        told = tag.end()
    if not blocks.inside:
        yield text[told:]


class _Blocks:
    """The blocks that are open, the innermost last."""

    def __init__(self) -> None:
        """Begin outside."""
        self._open: list[str] = []
        self._counts: Counter[str] = Counter()

    @property
    def inside(self) -> bool:
        """Whether any is open."""
        return bool(self._open)

    def meet(self, tag: re.Match[str]) -> None:
        """Open a block, or close the innermost of that name and those inside of it."""
        name = tag["name"].lower().replace("_", "")
        if tag["close"]:
            self._close(name)
        elif not tag["rest"].rstrip().endswith("/"):
            self._open.append(name)
            self._counts[name] += 1

    def _close(self, name: str) -> None:
        if not self._counts[name]:
            return
        closed = ""
        while closed != name:
            closed = self._open.pop()
            self._counts[closed] -= 1

"""Looks for one of many literals in a text, at the price of the few that it might hold."""

from collections.abc import Iterable


class Literals:
    """Literals, by one character that each of them holds and that most texts lack.

    A character is looked for faster than a word, and most texts have neither brackets nor
    underscores nor capitals.
    """

    def __init__(self, literals: Iterable[str]) -> None:
        """Take literals, none of them empty."""
        self._by_sign: dict[str, list[str]] = {}
        for literal in literals:
            self._by_sign.setdefault(_sign(literal), []).append(literal)

    def stand_in(self, text: str) -> bool:
        """Tell whether one of them stands anywhere in a text."""
        for sign, literals in self._by_sign.items():
            if sign in text:
                for literal in literals:
                    if literal in text:
                        return True
        return False


def _sign(literal: str) -> str:
    """Return the first character that is no small letter and no digit, or else the first."""
    rare = (char for char in literal if not (char.islower() or char.isdigit()))
    return next(rare, literal[0])

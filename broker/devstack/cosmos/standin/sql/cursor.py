"""Walks along the tokens of a query."""

from __future__ import annotations

from broker.devstack.cosmos.standin.refusals import RefusalError, invalid
from broker.devstack.cosmos.standin.sql.tokens import Token


class Cursor:
    """A place among tokens.

    Attributes:
        given: All tokens; the last is of kind ``end``, and is never passed.
    """

    def __init__(self, given: list[Token]) -> None:
        """Begins at the first token."""
        self.given = given
        self._at = 0

    @property
    def now(self) -> Token:
        """The token that comes next."""
        return self.given[self._at]

    def next(self) -> Token:
        """Returns the next token and goes past it."""
        token = self.now
        if token.kind != "end":
            self._at += 1
        return token

    def took(self, value: str) -> bool:
        """Goes past a keyword or sign, if that is what comes next; tells whether it was."""
        took = self.now.kind in {"keyword", "sign"} and self.now.value == value
        self._at += took
        return took

    def need(self, value: str) -> None:
        """Goes past a keyword or sign, or refuses the query."""
        if not self.took(value):
            raise self.error()

    def name(self) -> str:
        """Goes past a name and returns it, or refuses the query."""
        token = self.next()
        if token.kind != "name":
            raise self.error(token)
        return str(token.value)

    def error(self, token: Token | None = None) -> RefusalError:
        """Refuses the query at a token, or at the next one."""
        at = (token or self.now).at
        return invalid(f"syntax error at character {at}, or something that is not known here")

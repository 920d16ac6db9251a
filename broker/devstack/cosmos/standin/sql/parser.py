"""Reads a query, by recursive descent. What is not written here is refused."""

from __future__ import annotations

from functools import lru_cache

from broker.devstack.cosmos.standin.refusals import invalid
from broker.devstack.cosmos.standin.sql.cursor import Cursor
from broker.devstack.cosmos.standin.sql.functions import ARGUMENTS
from broker.devstack.cosmos.standin.sql.syntax import (
    Column,
    Comparison,
    Expression,
    Function,
    Literal,
    Logic,
    Membership,
    Negation,
    Number,
    Order,
    Parameter,
    Path,
    Query,
)
from broker.devstack.cosmos.standin.sql.tokens import Token, tokens
from broker.devstack.cosmos.standin.sql.values import UNDEFINED

DEPTH_MAX = 64
TERMS_MAX = 250
"""Of AND and OR together: each is a level of the tree."""
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None, "UNDEFINED": UNDEFINED}
_SIGNS = ("=", "!=", "<=", ">=", "<", ">")


@lru_cache(256)
def parse(query: str) -> Query:
    """Reads a query.

    Raises:
        RefusalError: It is not one that this stand-in knows.
    """
    return _Parser([*tokens(query)]).query()


class _Parser(Cursor):
    def __init__(self, given: list[Token]) -> None:
        super().__init__(given)
        self._depth = 0
        self._terms = 0
        self._root = self._alias()

    # --- clauses --------------------------------------------------------------------------

    def query(self) -> Query:
        self.need("SELECT")
        limit = self._number() if self.took("TOP") else None
        columns, value = self._selection()
        self.need("FROM")
        if self.name() != self._root:
            raise self.error()
        where = self._expression() if self.took("WHERE") else None
        orders = self._orders() if self.took("ORDER") else ()
        offset = None
        if self.took("OFFSET"):
            if limit is not None:
                raise self.error()
            offset = self._number()
            self.need("LIMIT")
            limit = self._number()
        if self.now.kind != "end":
            raise self.error()
        return Query(columns, value, where, orders, offset, limit)

    def _alias(self) -> str:
        """Finds the name that stands for an item, which is used before it is given."""
        for word, name in zip(self.given, self.given[1:], strict=False):
            if (word.kind, word.value) == ("keyword", "FROM") and name.kind == "name":
                return str(name.value)
        raise invalid("a query selects FROM one name")

    def _selection(self) -> tuple[tuple[Column, ...], Expression | None]:
        if self.took("*"):
            return (), Path(())
        if self.took("VALUE"):
            return (), self._expression()
        columns = [self._column()]
        while self.took(","):
            columns.append(self._column())
        if len({column.name for column in columns}) != len(columns):
            raise invalid("two selected members have the same name")
        return tuple(columns), None

    def _column(self) -> Column:
        value = self._expression()
        if self.took("AS"):
            return Column(self.name(), value)
        if isinstance(value, Path) and value.names:
            return Column(value.names[-1], value)
        raise invalid("what is selected needs a name: AS")

    def _orders(self) -> tuple[Order, ...]:
        self.need("BY")
        orders = [self._order()]
        while self.took(","):
            orders.append(self._order())
        return tuple(orders)

    def _order(self) -> Order:
        path = self._expression()
        if not isinstance(path, Path) or not path.names:
            raise invalid("this stand-in only orders by properties")
        descends = self.took("DESC")
        if not descends:
            self.took("ASC")
        return Order(path, descends)

    def _number(self) -> Number:
        token = self.next()
        if token.kind == "parameter":
            return Parameter(str(token.value))
        if token.kind == "number":
            return Literal(token.value)
        raise self.error(token)

    # --- expressions ----------------------------------------------------------------------

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise invalid("the query is nested too deeply")
        left = self._conjunction()
        while self.took("OR"):
            left = self._joined("OR", left, self._conjunction())
        self._depth -= 1
        return left

    def _conjunction(self) -> Expression:
        left = self._negation()
        while self.took("AND"):
            left = self._joined("AND", left, self._negation())
        return left

    def _joined(self, sign: str, left: Expression, right: Expression) -> Expression:
        self._terms += 1
        if self._terms > TERMS_MAX:
            raise invalid(f"this stand-in takes at most {TERMS_MAX} conditions")
        return Logic(sign, left, right)

    def _negation(self) -> Expression:
        negative = False
        while self.took("NOT"):
            negative = not negative
        inner = self._comparison()
        return Negation(inner) if negative else inner

    def _comparison(self) -> Expression:
        left = self._primary()
        for sign in _SIGNS:
            if self.took(sign):
                return Comparison(sign, left, self._primary())
        negative = self.took("NOT")
        if self.took("IN"):
            self.need("(")
            among = Membership(left, self._arguments())
            if not among.choices:
                raise self.error()
            return Negation(among) if negative else among
        if negative:
            raise self.error()
        return left

    def _primary(self) -> Expression:
        token = self.next()
        if token.kind in {"number", "text"}:
            return Literal(token.value)
        if token.kind == "parameter":
            return Parameter(str(token.value))
        if token.kind == "keyword" and token.value in _CONSTANTS:
            return Literal(_CONSTANTS[str(token.value)])
        if token.value == "-" and token.kind == "sign":
            return self._negative()
        if token.value == "(" and token.kind == "sign":
            inner = self._expression()
            self.need(")")
            return inner
        if token.kind == "name":
            return self._called(token) if self.took("(") else self._path(token)
        raise self.error(token)

    def _negative(self) -> Expression:
        token = self.next()
        if token.kind != "number" or isinstance(token.value, str):
            raise self.error(token)
        return Literal(-token.value)

    def _called(self, name: Token) -> Expression:
        function = str(name.value).upper()
        arguments = self._arguments()
        if ARGUMENTS.get(function) != len(arguments):
            raise invalid(f"this stand-in does not know {function[:40]} of {len(arguments)} values")
        return Function(function, arguments)

    def _arguments(self) -> tuple[Expression, ...]:
        if self.took(")"):
            return ()
        arguments = [self._expression()]
        while self.took(","):
            arguments.append(self._expression())
        self.need(")")
        return tuple(arguments)

    def _path(self, root: Token) -> Path:
        if root.value != self._root:
            raise invalid(f"the query knows no {str(root.value)[:40]!r}")
        names: list[str] = []
        while True:
            if self.took("."):
                names.append(self.name())
            elif self.took("["):
                token = self.next()
                if token.kind != "text":
                    raise self.error(token)
                names.append(str(token.value))
                self.need("]")
            else:
                return Path(tuple(names))

"""What a query says, as a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Literal:
    """A value written in the query; ``undefined`` is ``values.UNDEFINED``."""

    value: Any


@dataclass(frozen=True)
class Parameter:
    """A value given beside the query."""

    name: str


@dataclass(frozen=True)
class Path:
    """A property of the item, by the names that lead to it; the item itself without names."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Function:
    """A function and what it is applied to; its name in capitals."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Comparison:
    """``=``, ``!=``, ``<``, ``<=``, ``>`` or ``>=`` between two values."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Membership:
    """Whether a value equals one of a list."""

    value: Expression
    choices: tuple[Expression, ...]


@dataclass(frozen=True)
class Logic:
    """``AND`` or ``OR`` between two conditions."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Negation:
    """``NOT`` before a condition."""

    inner: Expression


Expression = Literal | Parameter | Path | Function | Comparison | Membership | Logic | Negation
Number = Literal | Parameter


@dataclass(frozen=True)
class Column:
    """One member of what is selected."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Order:
    """One property to order by."""

    path: Path
    descends: bool


@dataclass(frozen=True)
class Query:
    """A whole query.

    Attributes:
        columns: The members of each result; empty where a result is one value.
        value: That value: the item itself for ``*``.
        where: The condition; None selects all.
        orders: What to order by, the most important first.
        offset: How many results to leave out.
        limit: How many to return at most: ``TOP`` or ``LIMIT``.
    """

    columns: tuple[Column, ...]
    value: Expression | None
    where: Expression | None
    orders: tuple[Order, ...]
    offset: Number | None
    limit: Number | None

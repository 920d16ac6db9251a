"""Splits the text of a query into tokens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from broker.devstack.cosmos.standin.documents import WHOLE_MAX
from broker.devstack.cosmos.standin.refusals import invalid

LENGTH_MAX = 512 * 1024
_WORDS = """
    ALL AND ANY ARRAY AS ASC BETWEEN BY CASE CAST CONVERT CROSS DESC DISTINCT ELSE END ESCAPE
    EXISTS FALSE FOR FROM GROUP HAVING IN INNER INSERT INTO IS JOIN LEFT LET LIKE LIMIT NOT NULL
    OFFSET ON OR ORDER OUTER OVER RANK RIGHT SELECT SET THEN TOP TRUE UDF UNDEFINED UPDATE VALUE
    WHEN WHERE WITH
"""
RESERVED = frozenset(_WORDS.split())
"""Words that are no names; a property of such a name is written ``c["value"]``."""

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
  | (?P<parameter>@[A-Za-z_]\w*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<sign><=|>=|!=|[=<>(),.*\[\]-])
    """,
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True)
class Token:
    """One word, sign or value.

    Attributes:
        kind: ``keyword``, ``name``, ``parameter``, ``number``, ``text``, ``sign`` or ``end``.
        value: The value of a number or text; keywords in capitals; otherwise as written.
        at: Where it begins.
    """

    kind: str
    value: str | float
    at: int


def tokens(query: str) -> Iterator[Token]:
    """Returns the tokens of a query, and one of kind ``end``.

    Raises:
        RefusalError: It holds something that is no token, or is longer than 512 KiB.
    """
    if len(query.encode()) > LENGTH_MAX:
        raise invalid(f"a query has at most {LENGTH_MAX} bytes")
    at = 0
    while at < len(query):
        match = _TOKEN.match(query, at)
        if match is None:
            raise invalid(f"syntax error at character {at}")
        if match.lastgroup != "space":
            yield _token(str(match.lastgroup), match.group(), at)
        at = match.end()
    yield Token("end", "", at)


def _token(kind: str, written: str, at: int) -> Token:
    if kind == "number":
        return Token(kind, _number(written, at), at)
    if kind == "text":
        return Token(kind, _unquoted(written, at), at)
    if kind == "word":
        word = written.upper()
        return Token("keyword", word, at) if word in RESERVED else Token("name", written, at)
    return Token(kind, written, at)


def _number(written: str, at: int) -> float:
    value = int(written) if written.isdigit() and len(written) < 20 else float(written)
    if math.isinf(value) or (value > WHOLE_MAX and written.isdigit()):
        raise invalid(f"the number at character {at} is not exact as a double")
    return value


def _unquoted(written: str, at: int) -> str:
    inner = written[1:-1]
    if written[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        value: str = json.loads(f'"{inner}"', strict=False)
    except ValueError:
        raise invalid(f"the text at character {at} has an escape that is not known") from None
    return value

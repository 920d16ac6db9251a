"""How much work a function does, in lines of Python that ran: no clock is looked at."""

import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

SIZE = 1_000
GROWTH_MAX = 4.5
"""Of work, where a text is four times as long: what is linear grows by four and a little."""

BOUND_MAX = 64
"""Of repeats that may give something back."""


def lines_run(function: Callable[[str], object], text: str) -> int:
    """Count the lines that a call runs, those of what it calls included."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(text)
    finally:
        sys.settrace(before)
    return count


def growth(function: Callable[[str], object], unit: str) -> float:
    """Return how many times the work a text of four times the length takes."""
    function(unit)  # what is made once, at the first call
    short = lines_run(function, unit * (SIZE // len(unit)))
    long = lines_run(function, unit * (4 * SIZE // len(unit)))
    return long / max(short, 1)


def patterns_of(module: ModuleType) -> Iterator[re.Pattern[str]]:
    """Give the patterns of a module."""
    for value in vars(module).values():
        if isinstance(value, re.Pattern):
            yield value


def loose_repeats(pattern: re.Pattern[str]) -> list[str]:
    """Name what in a pattern may be tried in more ways than one.

    What is possessive gives nothing back, nor does a repeat that is all of an atomic group. Another
    has a small bound, and is of one class of characters or of a fixed number. So what is tried at
    one place is bounded.
    """
    parser: Any = __import__("re._parser", fromlist=["parse"])
    return list(_loose(parser.parse(pattern.pattern, pattern.flags)))


def _loose(parsed: Any) -> Iterator[str]:
    for op, argument in parsed:
        if str(op) == "ATOMIC_GROUP" and [str(each) for each, _ in argument] == ["MAX_REPEAT"]:
            yield from _inner(argument[0][1])
            continue
        if str(op) in {"MAX_REPEAT", "MIN_REPEAT"}:
            least, most, body = argument
            if most > BOUND_MAX:
                yield f"{op} up to {most}"
            if len(body) > 1 and least != most and most > 1:
                yield f"{op} of several"
        yield from _inner(argument)


def _inner(argument: Any) -> Iterator[str]:
    if isinstance(argument, tuple | list):
        for each in argument:
            yield from _inner(each)
    elif hasattr(argument, "data"):
        yield from _loose(argument)

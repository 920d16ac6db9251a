"""JSON as the service keeps it: strict to read, one form to write."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from broker.devstack.cosmos.standin.refusals import invalid

DEPTH_MAX = 128
WHOLE_MAX = 2**53
"""Numbers are doubles: a larger integer would come back as another one."""


def parse(body: bytes) -> Any:
    """Reads JSON.

    Raises:
        RefusalError: It is none, or holds what the service cannot keep: a number that is not
            exact as a double, a surrogate by itself, a name twice, too deep a nest.
    """
    try:
        value = json.loads(
            body.decode("utf-8"),
            parse_constant=_no_number,
            parse_int=_whole,
            parse_float=_fraction,
            object_pairs_hook=_unique,
        )
        written(value)
    except RecursionError:
        raise invalid("the body is nested too deeply") from None
    except UnicodeError:
        raise invalid("the body holds text that is not Unicode") from None
    except json.JSONDecodeError as error:
        raise invalid(f"the body is not JSON, at character {error.pos}") from None
    if _depth(value) > DEPTH_MAX:
        raise invalid(f"the body is nested more than {DEPTH_MAX} levels deep")
    return value


def written(value: Any) -> bytes:
    """Returns JSON without white space, in UTF-8: the form whose size counts."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def mapping(value: Any, what: str) -> dict[str, Any]:
    """Returns an object.

    Raises:
        RefusalError: It is something else.
    """
    if not isinstance(value, dict):
        raise invalid(f"{what} is not an object")
    return value


def only(given: dict[str, Any], known: set[str], what: str) -> None:
    """Refuses members that this stand-in does not know.

    Raises:
        RefusalError: There are some.
    """
    if unknown := sorted(given.keys() - known):
        raise invalid(f"{what} has members that this stand-in does not know: {unknown}")


def _no_number(name: str) -> NoReturn:
    raise invalid(f"{name} is not JSON")


def _whole(digits: str) -> int:
    value = int(digits) if len(digits) < 20 else WHOLE_MAX + 1
    if abs(value) > WHOLE_MAX:
        raise invalid("a number is not exact as a double; the service would change it")
    return value


def _fraction(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise invalid("a number is too large for a double")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise invalid("an object has two members of one name")
    return value


def _depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [
            inner
            for outer in level
            for inner in (
                outer.values()
                if isinstance(outer, dict)
                else outer
                if isinstance(outer, list)
                else ()
            )
        ]
    return deepest - 1

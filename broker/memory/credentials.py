"""What a word looks like that could be a secret, and what only stands in for one."""

import re
from itertools import pairwise
from typing import Final

SHORT: Final = 6
"""Code points; what is shorter and stands by itself is no credential."""

_RANDOM_MIN: Final = 12
"""Code points, in one piece: names of things join short ones, such as ``order-5b7c1e-a``."""

_TURNS_PER_LETTER: Final = 0.2
"""Of what was drawn at random about half of the neighbours are of different sorts; of what was
written by people, words with a number between them, far fewer."""

_DIGIT: Final = re.compile("[0-9]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_UUID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PIECE: Final = re.compile(r"[^\W_]{1,128}+")
_MEASURE: Final = re.compile("[0-9]{1,4}-[a-z]{2,20}")
_WRAPPED: Final = (("<", ">"), ("{", "}"), ("[", "]"), ("(", ")"), ("%", "%"), ("$(", ")"))
_VARIABLE: Final = re.compile(r"\$[A-Z_]{1,64}+|\$\{.{0,96}+")
_MASKS: Final = frozenset("*.x\u2022-_#?")


def is_masked(value: str) -> bool:
    """Tell whether a value is empty or stands in for another: ``***``, ``<here>``, ``${NAME}``."""
    if len(value) < 1 or _VARIABLE.fullmatch(value):
        return True
    if len(set(value.lower())) == 1 and value[0].lower() in _MASKS:
        return True
    return any(value.startswith(left) and value.endswith(right) for left, right in _WRAPPED)


def is_credential(value: str) -> bool:
    """Tell whether a word, by itself, looks drawn by a machine: letters and digits, or random."""
    value = value.rstrip(".=")
    if len(value) < SHORT or not is_mixed(value) or _UUID.fullmatch(value):
        return False
    return value.isalnum() or any(map(_is_random, _PIECE.findall(value)))


def is_mixed(value: str) -> bool:
    """Tell whether there are letters and digits, and no measure such as ``8-character``."""
    return bool(_DIGIT.search(value) and _LETTER.search(value)) and not _MEASURE.fullmatch(value)


def _is_random(piece: str) -> bool:
    if len(piece) < _RANDOM_MIN or not is_mixed(piece):
        return False
    turns = sum(_sort(one) != _sort(other) for one, other in pairwise(piece))
    return turns >= _TURNS_PER_LETTER * len(piece)


def _sort(char: str) -> int:
    if char.isdigit():
        return 0
    return 1 if char.isupper() else 2

"""Looks at the metadata of bundles before anything of them is taken apart."""

from math import copysign
from typing import Any

from google.protobuf.struct_pb2 import ListValue, Struct, Value


def count_values(metadata: Struct, most: int) -> int:
    """Count what objects and lists hold, at every depth; stop as soon as it is more than ``most``.

    So it costs no more than ``most`` asks for, whatever there is (004-83).
    """
    count = 0
    coming: list[Struct | ListValue] = [metadata]
    while coming and count <= most:
        each = coming.pop()
        held = each.fields if isinstance(each, Struct) else each.values
        count += len(held)
        if count <= most:
            coming += _inside(each)
    return count


def is_exact(metadata: Struct) -> bool:
    """Tell whether every value is stored as it stands (004-86).

    A null is written with number 0, a value has a kind, and no zero is negative: as JSON all of
    that would be lost.
    """
    coming: list[Struct | ListValue] = [metadata]
    while coming:
        each = coming.pop()
        if not all(map(_stays, _values(each))):
            return False
        coming += _inside(each)
    return True


def _stays(value: Value) -> bool:
    match value.WhichOneof("kind"):
        case None:
            return False
        case "null_value":
            return value.null_value == 0
        case "number_value":
            return value.number_value != 0.0 or copysign(1.0, value.number_value) > 0.0
        case _:
            return True


def _inside(held: Struct | ListValue) -> list[Struct | ListValue]:
    """Return the objects and lists that one holds itself."""
    found: list[Struct | ListValue] = []
    for value in _values(held):
        kind = value.WhichOneof("kind")
        if kind == "struct_value":
            found.append(value.struct_value)
        elif kind == "list_value":
            found.append(value.list_value)
    return found


def _values(held: Struct | ListValue) -> Any:
    return held.fields.values() if isinstance(held, Struct) else held.values

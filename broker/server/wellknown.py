"""Timestamps and structs of the wire, both ways, without the cost of ``json_format``."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from broker.domain.requests import UNKNOWN, Unknown

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S: Final = 86_400
_NANOS_END: Final = 1_000_000_000
_MICROSECOND_NANOS: Final = 1_000


def put_time(message: Timestamp, time: datetime) -> None:
    """Write a time into a timestamp that belongs to a message."""
    since = time - _EPOCH
    message.seconds = since.days * _DAY_S + since.seconds
    message.nanos = since.microseconds * _MICROSECOND_NANOS


def time_of(message: Timestamp) -> datetime | Unknown:
    """Return the time in microseconds, rounded down; ``UNKNOWN`` outside of the years 1 to 9999."""
    if not 0 <= message.nanos < _NANOS_END:
        return UNKNOWN
    try:
        return _EPOCH + timedelta(
            seconds=message.seconds, microseconds=message.nanos // _MICROSECOND_NANOS
        )
    except OverflowError:
        return UNKNOWN


def bound_of(message: Timestamp) -> datetime | Unknown:
    """Return a bound of times in microseconds, rounded up, so that it parts what is stored alike.

    ``UNKNOWN`` outside of the years 1 to 9999.
    """
    time = time_of(message)
    if isinstance(time, Unknown) or message.nanos % _MICROSECOND_NANOS == 0:
        return time
    try:
        return time + timedelta(microseconds=1)
    except OverflowError:
        return UNKNOWN


def put_struct(message: Struct, mapping: Mapping[str, object]) -> None:
    """Write JSON-like data into a struct that belongs to a message, also when it is empty.

    Raises:
        TypeError: a value is not JSON; a bug, since what is stored was checked.
    """
    message.SetInParent()
    fields = message.fields
    for key, value in mapping.items():
        _put_value(fields[key], value)


def _put_value(message: Value, value: object) -> None:
    match value:
        case str():
            message.string_value = value
        case bool():
            message.bool_value = value
        case int() | float():
            message.number_value = value
        case None:
            message.null_value = 0  # type: ignore[assignment]  # the only value of its enum
        case Mapping():
            put_struct(message.struct_value, value)
        case Sequence():
            items = message.list_value
            items.SetInParent()
            for item in value:
                _put_value(items.values.add(), item)
        case _:
            raise TypeError(f"no JSON: {type(value).__name__}")


def mapping_of(message: Struct) -> dict[str, object]:
    """Return the data of a struct. A value without a kind is ``None``; numbers stay floats."""
    return {key: _value_of(value) for key, value in message.fields.items()}


def _value_of(message: Value) -> object:
    match message.WhichOneof("kind"):
        case "string_value":
            return message.string_value
        case "number_value":
            return message.number_value
        case "bool_value":
            return message.bool_value
        case "struct_value":
            return mapping_of(message.struct_value)
        case "list_value":
            return _list_of(message.list_value)
        case _:
            return None


def _list_of(message: ListValue) -> list[object]:
    return [_value_of(value) for value in message.values]

"""Timestamps and structs: everything comes back, and odd input never fails."""

from datetime import UTC, datetime

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.requests import UNKNOWN
from broker.server.wellknown import bound_of, mapping_of, put_struct, put_time, time_of


@pytest.mark.parametrize(
    ("seconds", "nanos", "expected"),
    [
        (0, 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1, 999_999_999, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        (-62_135_596_800, 0, datetime(1, 1, 1, tzinfo=UTC)),
        (253_402_300_799, 999_999_999, datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        (-62_135_596_801, 0, UNKNOWN),
        (253_402_300_800, 0, UNKNOWN),
        (-(2**63), 0, UNKNOWN),
        (2**63 - 1, 0, UNKNOWN),
        (0, -1, UNKNOWN),
        (0, 1_000_000_000, UNKNOWN),
    ],
)
def test_times_read_in_microseconds(seconds: int, nanos: int, expected: object) -> None:
    assert time_of(Timestamp(seconds=seconds, nanos=nanos)) == expected


@pytest.mark.parametrize(
    ("seconds", "nanos", "expected"),
    [
        (0, 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (0, 1, datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)),
        (0, 1_000, datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)),
        (0, 1_001, datetime(1970, 1, 1, microsecond=2, tzinfo=UTC)),
        (-1, 999_999_001, datetime(1970, 1, 1, tzinfo=UTC)),
        (253_402_300_799, 999_999_000, datetime.max.replace(tzinfo=UTC)),
        (253_402_300_799, 999_999_001, UNKNOWN),
        (0, 1_000_000_000, UNKNOWN),
    ],
)
def test_bounds_are_rounded_up(seconds: int, nanos: int, expected: object) -> None:
    """What is stored has microseconds, so a bound between two of them parts as the later does."""
    assert bound_of(Timestamp(seconds=seconds, nanos=nanos)) == expected


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_time_comes_back(time: datetime) -> None:
    message = Timestamp()
    put_time(message, time)
    assert time_of(message) == time


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_every_struct_comes_back(data: dict[str, object]) -> None:
    message = Struct()
    put_struct(message, data)
    again = Struct.FromString(message.SerializeToString())
    assert mapping_of(again) == data


def test_a_struct_value_without_a_kind_is_nothing() -> None:
    message = Struct()
    message.fields["a"].SetInParent()
    assert mapping_of(message) == {"a": None}


def test_only_json_is_written() -> None:
    with pytest.raises(TypeError):
        put_struct(Struct(), {"a": object()})

"""Numbers become vectors of length 1, or none."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.embeddings.vectors import unit_length


def test_the_bytes_are_little_endian_float32() -> None:
    assert unit_length([3, 4]) == struct.pack("<2f", 0.6, 0.8)


@pytest.mark.parametrize("row", [[0.0], [0.0, -0.0], [math.nan, 1], [math.inf, 1], [-math.inf]])
def test_no_direction_no_vector(row: list[float]) -> None:
    assert unit_length(row) is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=64))
def test_every_other_row_has_length_1(row: list[float]) -> None:
    packed = unit_length(row)
    assert (packed is None) == (not any(row))
    if packed is not None:
        assert len(packed) == 4 * len(row)
        numbers = struct.unpack(f"<{len(row)}f", packed)
        assert math.fsum(number * number for number in numbers) == pytest.approx(1.0, abs=1e-5)

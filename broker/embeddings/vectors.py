"""Numbers of a model as the vectors that stores keep."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT32 = np.dtype("<f4")


def unit_length(numbers: Sequence[float] | NDArray[Any]) -> bytes | None:
    """Return numbers as little-endian float32 that have length 1 together.

    ``None`` where they have no direction: all are zero, or one is not finite. They are scaled by
    the largest first, so that none is too large or too small to be squared.
    """
    row = np.asarray(numbers, dtype=np.float64)
    largest = np.abs(row).max()
    if not np.isfinite(largest) or largest == 0.0:
        return None
    row = row / largest
    return bytes((row / np.sqrt(row @ row)).astype(FLOAT32).tobytes())

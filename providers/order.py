"""Times and numbers as text that sorts as they are to be read, in any store (S-2, K-4)."""

import struct
from datetime import UTC, datetime, timedelta

_EPOCH = datetime.min.replace(tzinfo=UTC)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


def newest_first(time: datetime, *, after: int = 0) -> str:
    """Return 16 hex digits that sort as times descending; ``after``: so many microseconds later."""
    micros = (time - _EPOCH) // timedelta(microseconds=1)
    return f"{max(_LAST - micros + after, 0):016x}"


def largest_first(number: float) -> str:
    """Return 16 hex digits that sort as numbers descending."""
    (bits,) = struct.unpack("!Q", struct.pack("!d", number + 0.0))
    ascending = bits ^ (_ALL if bits & _SIGN else _SIGN)
    return f"{ascending ^ _ALL:016x}"

"""What memories are recalled by, as the statements take it."""

import struct
from uuid import uuid4

from providers.entries import FLOAT_BYTES, RecallEntry
from providers.model import MemoryFacet

_FILTERED = (
    "namespace",
    "memory_kind",
    "subject",
    "epoch",
    "sensitivity",
    "origin_tier",
    "expire_time",
    "invalidate_time",
)


def filter_columns(facet: MemoryFacet | None) -> dict[str, object]:
    """Return what recall filters by, by column name; what a facet does not say is left out."""
    if facet is None:
        return {}
    values = ((name, getattr(facet, name)) for name in _FILTERED)
    return {name: value for name, value in values if value is not None}


def entry_columns(entry: RecallEntry, numbers: list[float]) -> dict[str, object]:
    """Return an entry by column name.

    Args:
        entry: One that keeps its limits.
        numbers: Gets those of the vector at its end. They go to the server beside the JSON, in
            fewer bytes; each row says where its own begin.
    """
    counts = entry.terms.counts
    terms = sorted(counts)
    columns: dict[str, object] = {
        "length": entry.terms.length,
        "terms": terms,
        "counts": [counts[term] for term in terms],
    }
    vector = entry.vector
    if vector is not None:
        columns |= {
            "vector_id": uuid4().hex,
            "vector_model": vector.model,
            "vector_dimension": vector.dimension,
            "vector_from": len(numbers) + 1,
        }
        numbers += to_numbers(vector.packed)
    return columns


def to_numbers(packed: bytes) -> list[float]:
    """Return the numbers of a vector."""
    count = len(packed) // FLOAT_BYTES
    return list(struct.unpack(f"<{count}f", packed))

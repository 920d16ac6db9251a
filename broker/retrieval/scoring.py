import math

import numpy as np

from providers.entries import Vector
from providers.recall import Recalled


def cosine(a: Vector, b: Vector) -> float | None:
    if (a.model, a.dimension) != (b.model, b.dimension):
        return None
    return float(np.dot(np.frombuffer(a.packed, "<f4"), np.frombuffer(b.packed, "<f4")))


def bm25(recalled: Recalled) -> dict[str, float]:
    n = recalled.documents
    avg = recalled.length_total / max(1, n) or 1.0
    idf = [math.log(1 + (n - f + 0.5) / (f + 0.5)) for f in recalled.frequencies]
    return {
        m.record_id: sum(
            i * c * 2.2 / (c + 1.2 * (0.25 + 0.75 * m.length / avg)) for i, c in zip(idf, m.counts)
        )
        for m in recalled.matches
    }

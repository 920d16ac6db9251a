"""How well memories fit a query, by words and by vectors."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from providers.entries import Vector
from providers.recall import Recalled

K1: Final = 1.2
B: Final = 0.75
WORDS_SHARE: Final = 0.5
"""What the words count for where both arms ran; the vectors count for the rest."""


def bm25(recalled: Recalled) -> dict[str, float]:
    """Return the BM25 of each match over the statistics of its scope; above 0.

    Equal counts and lengths give equal scores to the last bit: they are added up term by term.
    """
    mean = recalled.length_total / recalled.documents if recalled.documents else 1.0
    matches = recalled.matches
    norms = K1 * (1 - B + B * np.array(matches.lengths, np.float64) / mean)
    scores = np.zeros(len(matches))
    for held, frequency in zip(matches.counts, recalled.frequencies, strict=False):
        counts = np.array(held, np.float64)
        scores += _weight(recalled.documents, frequency) * (K1 + 1) * counts / (counts + norms)
    return dict(zip(matches.record_ids, scores.tolist(), strict=True))


def _weight(documents: int, frequency: int) -> float:
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def cosine(one: Vector, other: Vector) -> float | None:
    """Return the cosine of two vectors of one model; ``None``: they are not to be compared."""
    if (one.model, one.dimension) != (other.model, other.dimension):
        return None
    return float(np.dot(np.frombuffer(one.packed, "<f4"), np.frombuffer(other.packed, "<f4")))


def fused(words: Mapping[str, float], similarities: Mapping[str, float]) -> dict[str, float]:
    """Return one score for all that either arm found, 0.0 to 1.0.

    Each arm is divided by its best score, and both count for half. What the vector arm did not
    find is at most as near as the last that it did. Where it found nothing the words decide alone.
    """
    top = max(words.values(), default=0.0) or 1.0
    if not similarities:
        return {record_id: score / top for record_id, score in words.items()}
    nearest = max(*similarities.values(), 0.0) or 1.0
    last = max(min(similarities.values()), 0.0)
    return {
        record_id: WORDS_SHARE * words.get(record_id, 0.0) / top
        + (1 - WORDS_SHARE) * max(similarities.get(record_id, last), 0.0) / nearest
        for record_id in {**words, **similarities}
    }


def ordered(scores: Mapping[str, float], most: int | None = None) -> list[str]:
    """Return what has scores, the best first; equal ones by record id (R10, 002-25).

    ``most``: the best of them, so many at most.
    """
    if most is not None and len(scores) > most:
        least = sorted(scores.values(), reverse=True)[most - 1]
        scores = {record_id: score for record_id, score in scores.items() if score >= least}
    # Twice, since equals stay as they stood, and neither order has to make a pair for each.
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:most]


def places(order: Sequence[str]) -> dict[str, int]:
    """Return the places of an order, from 1 (R10)."""
    return dict(zip(order, range(1, len(order) + 1), strict=True))

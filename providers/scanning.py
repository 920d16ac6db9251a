"""Recall by looking through a whole scope: for stores that index neither words nor vectors.

Such a scope is bounded (Q-8), and below what Q-5 cuts: of matches none is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from providers.driving import driving
from providers.packing import counts_of
from providers.recall import Match, Matches, Near, Recalled, RecallRequest

_FLOAT = "<f4"


@dataclass(frozen=True, slots=True)
class Scanned:
    """One of the memories that recall looks through (Q-3).

    Attributes:
        record_id: Its name.
        length: That of its term vector; ``None``: it has no entry.
        terms: Its terms, as ``packing`` packs them; looked at only where terms are asked for.
        vector: Its numbers, where they are of the model and dimension asked for.
        is_eligible: Whether it may be given back; asked only where it would be.
    """

    record_id: str
    length: int | None
    terms: str
    vector: bytes | None
    is_eligible: Callable[[], bool]


def scan(request: RecallRequest, heads: Sequence[Scanned]) -> Recalled:
    """Return what is found among all the memories that recall looks through.

    Raises:
        ValueError: The terms of one are damaged.
    """
    indexed = [(each, each.length) for each in heads if each.length is not None]
    terms = request.terms
    counts = [counts_of(each.terms, terms) if terms else () for each, _ in indexed]
    frequencies = tuple(sum(row[place] > 0 for row in counts) for place in range(len(terms)))
    driven = driving(terms, frequencies)
    matches: list[Match] = []
    vectors: dict[str, bytes] = {}
    for (each, length), row in zip(indexed, counts, strict=True):
        is_match = any(row[place] for place in driven)
        if (is_match or each.vector is not None) and each.is_eligible():
            if is_match:
                matches.append(Match(each.record_id, row, length))
            if each.vector is not None:
                vectors[each.record_id] = each.vector
    return Recalled(
        documents=len(indexed),
        length_total=sum(length for _, length in indexed),
        frequencies=frequencies,
        unindexed=len(heads) - len(indexed),
        matches=Matches.of(matches),
        nearest=_nearest(request, vectors),
    )


def _nearest(request: RecallRequest, vectors: Mapping[str, bytes]) -> tuple[Near, ...]:
    """Return the nearest by exact cosines.

    Each is added up by itself and in the same order: equal vectors are equally near, so that their
    names decide, which a product of matrices would not promise.
    """
    if request.vector is None or not vectors:
        return ()
    wanted = np.frombuffer(request.vector.packed, _FLOAT).astype(np.float64)
    rows = np.frombuffer(b"".join(vectors.values()), _FLOAT).reshape(len(vectors), -1)
    cosines = np.clip((rows * wanted).sum(axis=1), -1.0, 1.0)
    near = [Near(name, cosine) for name, cosine in zip(vectors, cosines.tolist(), strict=True)]
    near.sort(key=lambda each: (-each.similarity, each.record_id))
    return tuple(near[: request.nearest_max])

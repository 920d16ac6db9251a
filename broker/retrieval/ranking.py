from collections.abc import Mapping

from broker.domain.memories import Recollection
from broker.retrieval.scoring import bm25
from providers.model import Record
from providers.recall import Recalled


def fused(recalled: Recalled) -> list[tuple[str, float]]:
    words = bm25(recalled)
    near = {n.record_id: n.similarity for n in recalled.nearest}
    top = max(words.values(), default=0) or 1
    hi = max(near.values(), default=0) or 1
    w = 0.65 if near else 1.0
    score = {
        i: w * words.get(i, 0) / top + (1 - w) * max(0, near.get(i, 0)) / hi
        for i in {*words, *near}
    }
    return sorted(score.items(), key=lambda e: (-e[1], e[0]))


def shortlisted(recalled: Recalled) -> tuple[str, ...]:
    return tuple(i for i, _ in fused(recalled)[:100])


def ranked(
    recalled: Recalled, heads: Mapping[str, Record], *, limit: int
) -> tuple[Recollection, ...]:
    words = bm25(recalled)
    by_word = {i: n for n, i in enumerate(sorted(words, key=lambda i: (-words[i], i)), 1)}
    near = {n.record_id: n.similarity for n in recalled.nearest}
    by_vec = {n.record_id: k for k, n in enumerate(recalled.nearest, 1)}
    return tuple(
        Recollection(
            record=heads[i],
            score=s,
            similarity=near.get(i),
            keyword_rank=by_word.get(i),
            vector_rank=by_vec.get(i),
        )
        for i, s in fused(recalled)
        if i in heads
    )[:limit]

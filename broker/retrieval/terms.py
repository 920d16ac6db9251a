from collections import Counter
from collections.abc import Sequence

from broker.retrieval.tokens import query_terms as _q
from broker.retrieval.tokens import terms as _terms
from providers.entries import RECORD_TERMS_MAX, TermVector


def query_terms(text: str) -> tuple[str, ...]:
    return tuple(_q(text))


def distinct_terms(text: str) -> frozenset[str]:
    return frozenset(_terms(text))


def term_vector(
    *, title: str | None, content: str, tags: Sequence[str], subject: str | None
) -> TermVector:
    all_ = [t for x in (title or "", content, *tags, subject or "") for t in _terms(x)]
    counts = Counter(all_)
    kept = dict(list(counts.items())[:RECORD_TERMS_MAX])
    return TermVector(kept, len(all_))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0

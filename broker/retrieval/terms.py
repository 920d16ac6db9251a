"""Term vectors of memories, terms of queries, and how many two texts share."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice

from broker.retrieval.tokens import asked_terms, terms
from providers.entries import RECORD_TERMS_MAX, TermVector
from providers.recall import QUERY_TERMS_MAX


def term_vector(
    *, title: str | None, content: str, tags: Sequence[str], subject: str | None
) -> TermVector:
    """Return what words find a memory by: the first 2,048 terms that differ, with their counts.

    The content comes last, so that a long one takes the others no place. The length counts all
    terms, those beyond the limit too.
    """
    texts = (title or "", subject or "", *tags, content)
    counts = Counter(chain.from_iterable(map(terms, texts)))
    return TermVector(dict(islice(counts.items(), RECORD_TERMS_MAX)), counts.total())


def query_terms(text: str) -> tuple[str, ...]:
    """Return the first 64 terms of a query that differ.

    Stop words count only where there is nothing else (000-02).
    """
    found = dict.fromkeys(asked_terms(text)) or dict.fromkeys(terms(text))
    return tuple(islice(found, QUERY_TERMS_MAX))


def distinct_terms(text: str) -> frozenset[str]:
    """Return the terms of a text, each once."""
    return frozenset(terms(text))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of common terms, 0.0 to 1.0; of a text without terms 0.0 (000-15)."""
    return len(one & other) / len(one | other) if one and other else 0.0

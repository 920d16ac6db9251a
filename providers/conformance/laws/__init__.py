"""The laws, one module for each area; a law's area and name make its test id."""

from providers.conformance.law import Law
from providers.conformance.laws import (
    candidates,
    cas,
    claims,
    counters,
    deliveries,
    exporting,
    faults,
    history,
    identifiers,
    importing,
    leases,
    lifecycle,
    limits,
    loading,
    negotiation,
    precedence,
    recall_filters,
    recall_index,
    recall_vectors,
    recalling,
    receipts,
    search_text,
    searching,
    sizes,
    supersession,
    text,
)

AREAS = (
    negotiation,
    lifecycle,
    cas,
    history,
    receipts,
    claims,
    counters,
    supersession,
    precedence,
    identifiers,
    loading,
    text,
    searching,
    search_text,
    candidates,
    recalling,
    recall_filters,
    recall_vectors,
    recall_index,
    sizes,
    limits,
    exporting,
    importing,
    leases,
    deliveries,
    faults,
)


def all_laws() -> tuple[Law, ...]:
    """Collect every law of every area, in the order they are written."""
    found: list[Law] = []
    for area in AREAS:
        for value in vars(area).values():
            if isinstance(value, Law):
                found.append(value)
            elif isinstance(value, tuple):
                found += [each for each in value if isinstance(each, Law)]
    return tuple(found)

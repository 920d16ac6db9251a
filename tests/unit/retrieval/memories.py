"""Heads of memories to be ranked."""

from dataclasses import replace
from datetime import timedelta

from providers.model import MemoryFacet, Record
from tests.unit.domain.test_records import NOW, head


def record(
    record_id: str,
    text: str = "",
    *,
    title: str | None = None,
    importance: float = 0.0,
    after: timedelta = timedelta(),
    **facet: object,
) -> Record:
    """Return a memory that says something of its own, stored so long after the others."""
    made = head(facet=MemoryFacet(**facet))  # type: ignore[arg-type]
    content = replace(
        made.current.content,
        title=title,
        content=text or f"text {record_id}",
        importance=importance,
    )
    stored = NOW + after
    current = replace(made.current, record_id=record_id, content=content, create_time=stored)
    return Record(current, stored)
